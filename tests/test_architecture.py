"""The architecture page, the folders of the source and the import contracts agree."""

from __future__ import annotations

import re
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import grimp

from batkube.kernel.agenda import Rank

REPOSITORY = Path(__file__).parent.parent
PAGE = (REPOSITORY / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
PACKAGES = {path.parent.name for path in (REPOSITORY / "src" / "batkube").glob("*/__init__.py")}


SETTINGS = tomllib.loads((REPOSITORY / "importlinter.toml").read_text(encoding="utf-8"))
CONTRACTS = [contract for contract in SETTINGS["tool"]["importlinter"]["contracts"] if contract["type"] == "layers"]


def drawn_layers() -> list[set[str]]:
    """Return the layers drawn on the page, highest first; a line that begins with a bar continues the one above."""
    layers: list[set[str]] = []
    for line in re.findall(r"^    (.+)$", PAGE.split("## Where to find")[0], re.MULTILINE):
        names = {word for word in re.split(r"\s{2,}", line)[0].replace("|", " ").split() if word in PACKAGES}
        if not names:
            continue
        if line.startswith("|"):
            layers[-1] |= names
        else:
            layers.append(names)
    return layers


def checked_layers() -> list[set[str]]:
    """Return the layers that import-linter checks, highest first."""
    (contract,) = (contract for contract in CONTRACTS if contract["containers"] == ["batkube"])
    return [set(re.split(r"\s*\|\s*", layer)) for layer in contract["layers"]]


def test_the_page_draws_the_layers_that_are_checked() -> None:
    assert drawn_layers() == checked_layers()


def test_every_child_of_every_package_is_in_a_layer() -> None:
    graph = grimp.build_graph("batkube", cache_dir=None)
    packages = {module for module in graph.modules - {"batkube"} if len(graph.find_children(module)) > 1}
    exhaustive = {contract["containers"][0] for contract in CONTRACTS if contract.get("exhaustive")}

    assert exhaustive == packages


def test_no_module_imports_itself_indirectly() -> None:
    """The contracts check siblings only; this checks all modules."""
    graph = grimp.build_graph("batkube", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}

    # A cycle raises CycleError, which names its modules.
    assert set(TopologicalSorter(imports).static_order()) == graph.modules


def test_every_package_is_in_a_layer_and_in_a_table() -> None:
    listed_packages = set(re.findall(r"^\| `(\w+)/", PAGE, re.MULTILINE))

    assert set.union(*checked_layers()) == PACKAGES
    assert listed_packages | {"cli"} == PACKAGES


def test_every_module_and_folder_in_a_table_exists() -> None:
    named = re.findall(r"^(?:\| |\d+\. )`(\w+/[\w./]+)`", PAGE, re.MULTILINE)

    assert named
    assert [path for path in named if not (REPOSITORY / "src" / "batkube" / path).exists()] == []


def test_every_file_of_the_repository_that_a_page_names_is_there() -> None:
    """Names in capitals stand for any name: `tests/controllers/test_NAME.py`."""
    pages = [*(REPOSITORY / "docs").rglob("*.md"), *REPOSITORY.glob("*.md")]
    path = re.compile(r"`(?:python )?((?:src|tests|docs|examples|benchmarks|scripts)/[\w./-]+)[` ]")
    named = {(page.name, name) for page in pages for name in path.findall(page.read_text(encoding="utf-8"))}

    assert named
    assert [
        (page, name)
        for page, name in sorted(named)
        if not re.search(r"\b[A-Z]{1,8}\b|_NAME|_FORMAT", name) and not (REPOSITORY / name).exists()
    ] == []


def test_every_module_named_on_other_pages_exists() -> None:
    packages = "|".join(sorted(PACKAGES))
    pages = [*(REPOSITORY / "docs").rglob("*.md"), REPOSITORY / "README.md"]
    texts = {page: page.read_text(encoding="utf-8") for page in pages}
    names = {
        (page.name, module)
        for page, text in texts.items()
        for module in re.findall(rf"`((?:{packages})/[\w/]+\.py)`", text)
    } | {
        (page.name, dotted.replace(".", "/") + ".py")
        for page, text in texts.items()
        for dotted in re.findall(r"^from batkube\.(\w+\.[\w.]+) import", text, re.MULTILINE)
    }

    assert names
    assert [name for name in sorted(names) if not (REPOSITORY / "src" / "batkube" / name[1]).is_file()] == []


def test_the_model_lists_the_ranks_in_their_order() -> None:
    page = (REPOSITORY / "docs" / "explanation" / "model.md").read_text(encoding="utf-8")

    assert re.findall(r"^\d\. `([A-Z]+)`:", page, re.MULTILINE) == [rank.name for rank in sorted(Rank)]


def test_every_class_in_the_section_on_one_job_exists() -> None:
    section = PAGE[PAGE.index("## A job") : PAGE.index("## Conventions")]
    source = "".join(path.read_text(encoding="utf-8") for path in (REPOSITORY / "src").rglob("*.py"))
    names = set(re.findall(r"`([A-Z]\w+)`", section))

    assert names
    assert [name for name in sorted(names) if f"class {name}" not in source] == []


def modules_with(pattern: str) -> list[str]:
    """Return the modules with a line that matches the pattern, as `package/module.py`."""
    source = REPOSITORY / "src" / "batkube"
    texts = {path.relative_to(source).as_posix(): path.read_text(encoding="utf-8") for path in source.rglob("*.py")}
    return sorted(module for module, text in texts.items() if re.search(pattern, text, re.MULTILINE))


def test_output_sockets_environment_and_clocks_are_used_where_the_page_says() -> None:
    printing = [module for module in modules_with(r"(?<![.\w])print\(") if not module.startswith("cli/")]
    elsewhere = ("api/", "emulation/", "clock/")
    connecting = modules_with(r"^import (socket|http\.client|urllib\.request)$")
    sockets = [module for module in connecting if not module.startswith(elsewhere)]

    assert printing == [
        "experiments/experiment.py",
        "simulation/progress.py",
        "simulation/run.py",
        "simulation/time_limit.py",
    ]
    assert sockets == [
        "cli/machine_checks.py",
        "pacing/server.py",
        "page/live/api_client.py",
        "page/server.py",
        "programs/startup/extenders.py",
        "timing/pages/session_page.py",
    ]
    assert all(f"`{module}`" in PAGE for module in [*sockets, "simulation/time_limit.py"])
    assert modules_with(r"os\.environ") == ["clock/__init__.py", "schedulers/installed.py"]
    assert modules_with(r"time\.(time|time_ns|perf_counter|monotonic)\(") == ["kernel/stopwatch.py"]
