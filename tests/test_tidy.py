"""Rules of style that a test can check."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
MODULES = sorted((ROOT / "src").rglob("*.py"))


def tracked_texts() -> Iterator[tuple[Path, str]]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode:
        pytest.skip("needs a git checkout")
    for name in filter(None, listing.stdout.split("\0")):
        path = ROOT / name
        if path.is_file() and path.suffix in (".py", ".md", ".sh", ".toml", ".yaml", ".json", ".csv", ""):
            yield path.relative_to(ROOT), path.read_text(encoding="utf-8")


def test_modules_and_functions_are_small() -> None:
    """Most are far smaller than these limits."""
    for module in MODULES:
        text = module.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 400, module
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                assert (node.end_lineno or 0) - node.lineno < 70, f"{module}: {node.name}"


def test_no_module_is_named_utils() -> None:
    assert not [module for module in MODULES if module.stem in ("utils", "helpers", "common", "misc")]


def test_no_loop_runs_over_a_set() -> None:
    """The order of a set depends on the hash seed."""
    for module in MODULES:
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.For | ast.comprehension):
                iterable = node.iter
                is_set = isinstance(iterable, ast.Set | ast.SetComp) or (
                    isinstance(iterable, ast.Call) and getattr(iterable.func, "id", "") in ("set", "frozenset")
                )
                assert not is_set, f"{module}:{iterable.lineno}"


def names_called(function: ast.FunctionDef) -> set[str]:
    calls = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
    return {call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls}


def asserts(function: ast.FunctionDef, asserting: Collection[str]) -> bool:
    """Return whether a function asserts something, itself or through one of the functions `asserting`.

    Playwright's assertions begin with `expect(…)`.
    """
    called = names_called(function)
    return (
        any(isinstance(node, ast.Assert) for node in ast.walk(function))
        or bool(called & {"raises", "fail", "AssertionError", "expect", *asserting})
        or any(name.startswith("assert_") for name in called)
    )


def asserting_functions(path: Path) -> set[str]:
    """Return the names of a module's functions that assert something."""
    functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
    names: set[str] = set()
    while new_names := {one.name for one in functions if one.name not in names and asserts(one, names)}:
        names |= new_names
    return names


def test_every_test_asserts_something() -> None:
    """Assertions in helpers count."""
    helpers = set().union(*(asserting_functions(path) for path in TESTS.rglob("*.py") if "test_" not in path.name))
    for path in sorted(TESTS.rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
        asserting = asserting_functions(path) | (helpers & imported)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                assert asserts(node, asserting), f"{path.relative_to(ROOT)}: {node.name}"


def test_messages_about_limits_contain_the_limit() -> None:
    """Except for messages of the API, which are those of Kubernetes."""
    excess = re.compile(r"\btoo (large|many|long|deeply|big|much)\b")
    for module in MODULES:
        if "api" in module.parts or module.stem == "cron":
            continue
        tree = ast.parse(module.read_text(encoding="utf-8"))
        documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        templates = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and excess.search(node.value):
                has_limit = id(node) in documentation or id(node) in templates or re.search(r"\d", node.value)
                assert has_limit or node.value in WITHOUT_LIMIT, f"{module}:{node.lineno}: {node.value}"


#: The limit of the whole machine, which only its administrator can change.
WITHOUT_LIMIT = ("has too many open files, of all programs together",)


FOLDERS = ("docs", "examples", "benchmarks", "tests", ".github")
PAGES = [*sorted(ROOT.glob("*.md")), *(page for folder in FOLDERS for page in sorted((ROOT / folder).rglob("*.md")))]
#: Code blocks, which contain no headings and links.
_BLOCK = re.compile(r"^ *(?P<fence>`{3,}).*?^ *(?P=fence)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?P<target>[^)#\s]*)(?:#(?P<anchor>[^)\s]+))?\)")


def test_the_readme_is_short() -> None:
    before_results = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Results")[0]
    assert len(before_results.split()) <= 400


def prose_of(page: Path) -> str:
    """Return a page without its blocks of code."""
    return _BLOCK.sub("", page.read_text(encoding="utf-8"))


def anchors_of(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to headings; the second heading of the same text gets the suffix `-1`."""
    anchors: Counter[str] = Counter()
    for heading in re.findall(r"^#+ (.*)$", prose_of(page), re.MULTILINE):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        anchors[re.sub(r"[^\w\- ]", "", text).strip().lower().replace(" ", "-")] += 1
    return {f"{anchor}-{number}" if number else anchor for anchor in anchors for number in range(anchors[anchor])}


def test_targets_of_links_exist() -> None:
    link_count = 0
    for page in PAGES:
        for link in _LINK.finditer(prose_of(page)):
            target, anchor = link["target"], link["anchor"]
            if re.match(r"[a-z]+:", target):
                continue
            path = (page.parent / target).resolve() if target else page
            assert path.exists(), f"{page.relative_to(ROOT)} links to {target}"
            assert path.is_relative_to(ROOT), f"{page.relative_to(ROOT)} links to {target}, outside the repository"
            if anchor:
                assert anchor in anchors_of(path), f"{page.relative_to(ROOT)} links to {target}#{anchor}"
            link_count += 1
    assert link_count > 500  # otherwise the pattern no longer matches


def test_tables_on_pages_have_no_empty_lines() -> None:
    """Rows after an empty line would be shown as text."""
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
            assert re.match(r".*\n\|[\s:|-]+\|\n", block), f"{page.relative_to(ROOT)}: {block[:100]}"


def test_the_results_page_names_all_headline_tests() -> None:
    """Tests with the mark `headline` fail in CI if they are skipped."""
    page = ROOT / "docs" / "explanation" / "results.md"
    names_on_page = set(re.findall(r"test_\w+\.py", page.read_text(encoding="utf-8")))
    marked = {path.name for path in TESTS.rglob("test_*.py") if "pytest.mark.headline" in path.read_text()}
    assert marked - {"test_skip_summary.py", "test_tidy.py"} <= names_on_page


def test_no_path_of_a_machine_is_in_the_repository() -> None:
    machine_paths = re.compile(r"/(?:work|root|home)/[a-z]")
    for path, text in tracked_texts():
        if path != Path("tests/test_tidy.py"):
            assert not machine_paths.search(text), path
            assert "TODO" not in text, path
            assert "FIXME" not in text, path


def test_drawings_of_the_documentation_have_a_white_background() -> None:
    drawings = sorted((ROOT / "docs" / "images").rglob("*.svg"))

    assert drawings
    for path in drawings:
        shapes = re.findall(r"<(?:path|rect)\b[^>]*>", path.read_text(encoding="utf-8").partition("</defs>")[2])
        assert "#ffffff" in shapes[0], f"{path.name}: dark text is unreadable on a dark page"
