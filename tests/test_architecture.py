"""The map of the source agrees with the source: page, folders and import contracts name the same rooms."""

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
    """Return the layers that the page draws, the highest first; a line with a bar in front belongs to the one above."""
    layers: list[set[str]] = []
    for line in re.findall(r"^    (.+)$", PAGE.split("## Inside")[0], re.MULTILINE):
        names = {word for word in re.split(r"\s{2,}", line)[0].replace("|", " ").split() if word in PACKAGES}
        if not names:
            continue
        if line.startswith("|"):
            layers[-1] |= names
        else:
            layers.append(names)
    return layers


def checked_layers() -> list[set[str]]:
    """Return the layers that import-linter checks, the highest first."""
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
    """What the contract says of siblings, said of every two modules."""
    graph = grimp.build_graph("batkube", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}

    # A cycle raises CycleError, which names its modules.
    assert set(TopologicalSorter(imports).static_order()) == graph.modules


def test_every_package_is_in_a_layer_and_on_the_map() -> None:
    mapped = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))

    assert set.union(*checked_layers()) == PACKAGES
    assert mapped | {"cli"} == PACKAGES


def test_every_module_and_folder_that_the_map_names_is_there() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", PAGE, re.MULTILINE)
    missing = [
        f"{package}/{module}"
        for package, text in rows
        for module in re.findall(r"`([\w/]+(?:\.py|/))`", text)
        if not (REPOSITORY / "src" / "batkube" / package / module).exists()
    ]

    assert rows
    assert missing == []


def test_every_module_that_the_other_pages_name_is_there() -> None:
    packages = "|".join(sorted(PACKAGES))
    pages = [*(REPOSITORY / "docs").rglob("*.md"), REPOSITORY / "README.md"]
    texts = {page: page.read_text(encoding="utf-8") for page in pages}
    named = {
        (page.name, module)
        for page, text in texts.items()
        for module in re.findall(rf"`((?:{packages})/[\w/]+\.py)`", text)
    } | {
        (page.name, dotted.replace(".", "/") + ".py")
        for page, text in texts.items()
        for dotted in re.findall(r"^from batkube\.(\w+\.[\w.]+) import", text, re.MULTILINE)
    }

    assert named
    assert [name for name in sorted(named) if not (REPOSITORY / "src" / "batkube" / name[1]).is_file()] == []


def test_the_model_lists_the_ranks_in_their_order() -> None:
    page = (REPOSITORY / "docs" / "explanation" / "model.md").read_text(encoding="utf-8")

    assert re.findall(r"^\d\. `([A-Z]+)`:", page, re.MULTILINE) == [rank.name for rank in sorted(Rank)]


def test_every_class_on_one_jobs_way_exists() -> None:
    way = PAGE[PAGE.index("## One job") : PAGE.index("## Habits")]
    source = "".join(path.read_text(encoding="utf-8") for path in (REPOSITORY / "src").rglob("*.py"))
    named = set(re.findall(r"`([A-Z]\w+)`", way))

    assert named
    assert [name for name in sorted(named) if f"class {name}" not in source] == []


def modules_with(pattern: str) -> list[str]:
    """Return the modules with a line that has the pattern, as `package/module.py`."""
    source = REPOSITORY / "src" / "batkube"
    texts = {path.relative_to(source).as_posix(): path.read_text(encoding="utf-8") for path in source.rglob("*.py")}
    return sorted(module for module, text in texts.items() if re.search(pattern, text, re.MULTILINE))


def test_what_speaks_to_the_world_outside_stands_where_the_page_says() -> None:
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
        "programs/startup/extenders.py",
        "timing/pages/session_page.py",
    ]
    assert all(f"`{module}`" in PAGE for module in [*sockets, "simulation/time_limit.py"])
    assert modules_with(r"os\.environ") == ["clock/__init__.py", "schedulers/installed.py"]
    assert modules_with(r"time\.(time|time_ns|perf_counter|monotonic)\(") == ["kernel/stopwatch.py"]
