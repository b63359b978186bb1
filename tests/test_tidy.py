"""The style guide, as far as a test can check it."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
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


def test_modules_stay_small_and_so_do_functions() -> None:
    """Most are far below; these bounds only stop the file that grows unnoticed."""
    for module in MODULES:
        text = module.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 350, module
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                assert (node.end_lineno or 0) - node.lineno < 70, f"{module}: {node.name}"


def test_there_is_no_drawer_for_odds_and_ends() -> None:
    assert not [module for module in MODULES if module.stem in ("utils", "helpers", "common", "misc")]


def test_no_loop_runs_over_a_set() -> None:
    """The order of a set changes with the hash seed, and results would with it."""
    for module in MODULES:
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.For | ast.comprehension):
                made = node.iter
                is_set = isinstance(made, ast.Set | ast.SetComp) or (
                    isinstance(made, ast.Call) and getattr(made.func, "id", "") in ("set", "frozenset")
                )
                assert not is_set, f"{module}:{made.lineno}"


def test_the_readme_is_short_and_links_lead_somewhere() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 150
    for page in [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"


def test_nothing_of_this_machine_is_in_the_repository() -> None:
    machine_paths = re.compile(r"/(?:work|root|home)/[a-z]")
    for path, text in tracked_texts():
        if path != Path("tests/test_tidy.py"):
            assert not machine_paths.search(text), path
            assert "TODO" not in text, path
            assert "FIXME" not in text, path
