"""The outputs that pages show after commands are those of the commands."""

from __future__ import annotations

import re
import shlex
import sys
import types
from fnmatch import fnmatch
from pathlib import Path

import pytest
from tests.commands import run_in_process
from tests.conftest import REPOSITORY
from tests.simulated_cluster import Cluster

from batkube.experiments.results.result_files import read_results
from batkube.kernel.errors import InputError
from batkube.kernel.instants import seconds
from batkube.workloads import reader

DOCS = REPOSITORY / "docs"


def blocks(page: str) -> list[str]:
    """Return a page's code blocks without a language: commands and outputs."""
    text = (DOCS / page).read_text(encoding="utf-8")
    all_blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block for language, block in all_blocks if not language]


def lines_of(text: str) -> list[str]:
    """Return the lines of a text with single spaces, because the widths of tables differ."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip() and line.strip() != "…"]


def run(folder: Path, command: str) -> str:
    result = run_in_process(folder, *shlex.split(command)[1:])
    assert result.returncode == 0, f"{command}\n{result.stderr}"
    return str(result.stdout + result.stderr)


def test_the_outputs_of_the_tutorial_are_those_of_its_commands(tmp_path: Path) -> None:
    documented = blocks("tutorial.md")
    first = next(number for number, block in enumerate(documented) if "workload generate" in block)
    workload, command, table = documented[first : first + 3]
    comparison = next(block for block in documented if "compare fcfs easy" in block)
    output, comparison_output = (
        "".join(run(tmp_path, line) for line in commands.splitlines()) for commands in (workload + command, comparison)
    )

    assert [line for line in lines_of(table) if line not in lines_of(output)] == []
    change = re.search(r"mean wait +s .* (-[\d.]+)", comparison_output)
    assert change is not None
    assert 60 < -float(change[1]) < 67  # "almost two thirds"


@pytest.mark.parametrize("page", ["how-to/prepare-a-workload.md", "how-to/compare-runs.md"])
def test_documented_outputs_for_a_real_trace_are_those_of_the_commands(
    page: str, tmp_path: Path, shared_data: Path
) -> None:
    """Commands after a dollar are followed by their output; other commands create their inputs."""
    (tmp_path / "KTH-SP2-1996-2.swf").symlink_to(shared_data / "swf" / "KTH-SP2-1996-2.swf")
    if page.endswith("compare-runs.md"):
        week = next(block for block in blocks("how-to/prepare-a-workload.md") if "-o week.json" in block)
        run(tmp_path, week.splitlines()[0].removeprefix("$ "))
        for policy in ("fcfs", "easy"):
            run(
                tmp_path,
                f"batkube run --workload week.json --platform 100x1 --scheduler policy:{policy} --out out/{policy}",
            )
    documented = [block for block in blocks(page) if block.startswith("$ batkube") and "\n" in block.strip()]
    documented = [block for block in documented if "KTH" in block or "compare out" in block]

    assert documented
    for block in documented:
        command, _, expected = block.partition("\n")
        output = lines_of(run(tmp_path, command.removeprefix("$ ")))
        assert [line for line in lines_of(expected) if line not in output] == []


def test_the_documented_frame_of_an_experiment_is_its_result(tmp_path: Path) -> None:
    examples = REPOSITORY / "examples" / "experiments"
    run(tmp_path, f"batkube experiment {examples / 'backfilling.yaml'} --out {tmp_path / 'out'} --no-report --quiet")
    frame = read_results(tmp_path / "out")
    pivot = frame.pivot_table(index="machines", columns="scheduler", values="mean_waiting_time")

    documented = next(block for block in blocks("how-to/run-an-experiment.md") if block.startswith("scheduler"))
    assert lines_of(documented) == lines_of(str(pivot))


def test_the_documented_explanations_are_those_of_the_command(tmp_path: Path) -> None:
    run(
        tmp_path, f"batkube run {REPOSITORY / 'examples' / 'backfilling' / 'scenario.yaml'} --explain --out out --quiet"
    )
    documented = [block for block in blocks("how-to/explain-a-run.md") if block.startswith("$ batkube explain")]

    assert len(documented) == 3
    for block in documented:
        command, _, expected = block.partition("\n")
        assert run(tmp_path, command.removeprefix("$ ")) == expected


def test_the_documented_pods_of_a_retried_job_are_those_of_the_run(tmp_path: Path) -> None:
    run(tmp_path, f"batkube run {REPOSITORY / 'examples' / 'anything' / 'scenario.yaml'} --out out --quiet")
    documented = next(block for block in blocks("how-to/run-anything.md") if "grep flaky" in block)
    pods = (tmp_path / "out" / "pods.csv").read_text(encoding="utf-8").splitlines()

    assert lines_of(documented)[2:] == [line for line in pods if "flaky" in line]


def columns_of(file: str) -> list[str]:
    """Return the documented columns of an output file; `…` stands for the rest of a name.

    They are the first cells of tables with the heading `column`.
    """
    pages = "\n".join(page.read_text(encoding="utf-8") for page in sorted((DOCS / "reference").glob("outputs*.md")))
    section = pages.partition(f"\n## {file}\n")[2].partition("\n## ")[0]
    tables = re.findall(r"^\| column \|.*\n((?:\|.*\n)+)", section, re.MULTILINE)
    cells = [cell for table in tables for cell in re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE)]
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


@pytest.mark.parametrize("file", ["jobs.csv", "schedule.csv", "machine_states.csv", "pods.csv", "nodes.csv"])
def test_the_columns_of_output_files_are_documented(file: str, tmp_path: Path) -> None:
    run(tmp_path, "batkube workload generate burst --jobs 2 -o w.json")
    run(tmp_path, "batkube run --workload w.json --platform 2x1 --out out --quiet")
    columns = (tmp_path / "out" / file).read_text(encoding="utf-8").splitlines()[0].split(",")
    patterns = columns_of(file)

    assert [name for name in columns if not any(fnmatch(name, pattern.replace("…", "*")) for pattern in patterns)] == []
    # Only some runs have these columns, and those of utilisations.
    optional = {"submitted_as", "admitted_time", "member_wait"}
    assert [
        pattern
        for pattern in patterns
        if pattern not in optional
        and not pattern.startswith("utilisation_")
        and not any(fnmatch(name, pattern.replace("…", "*")) for name in columns)
    ] == []


#: The folders of the runs that the Python code of each page uses.
RUNS = {
    "tutorial.md": (),
    "how-to/compare-runs.md": ("out/fcfs", "out/easy"),
    "how-to/compare-with-a-real-cluster.md": ("real", "simulated"),
    "how-to/see-a-run-in-a-notebook.md": (),
    "how-to/use-from-python.md": ("out/fcfs",),
    "reference/cli-compare.md": ("out/fcfs", "out/easy"),
    "reference/cli-gantt.md": ("out", "fcfs"),
    "reference/cli-report.md": ("out",),
    "reference/outputs.md": ("out",),
    "reference/platforms.md": (),
}


@pytest.fixture
def workload_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the workloads that pages mention."""
    for name in ("trace.swf", "workload.json"):
        run(tmp_path, f"batkube workload generate lublin --jobs 30 --machines 32 -o {name}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", RUNS)
def test_the_python_code_of_a_page_runs(page: str, workload_folder: Path) -> None:
    for folder in RUNS[page]:
        policy = "easy" if folder.endswith("easy") else "fcfs"
        run(
            workload_folder,
            f"batkube run --workload trace.swf --platform 100x1 --scheduler policy:{policy} --out {folder}",
        )
    if "study" in (DOCS / page).read_text(encoding="utf-8"):
        base, axes = "{workload: trace.swf, platform: 100x1}", "{scheduler: [policy:fcfs, policy:sjf]}"
        (workload_folder / "e.yaml").write_text(f"base: {base}\naxes: {axes}\n")
        run(workload_folder, "batkube experiment e.yaml --out study --no-report --quiet --jobs 1")
    documented = python_of(page)
    namespace: dict[str, object] = {"__name__": "__main__"}

    assert documented
    for block in documented:
        if "evalys" not in block:  # which has a test of its own
            exec(compile(block, page, "exec"), namespace)


def python_of(page: str) -> list[str]:
    """Return a page's blocks of Python."""
    return re.findall(r"^```python\n(.*?)^```$", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def module_of(name: str, source: str, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """Import a block of a page as the module `name`."""
    module = types.ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    exec(compile(source, name, "exec"), module.__dict__)
    return module


def test_the_controller_of_the_page_passes_the_test_of_the_page(
    world: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller, start, test = python_of("how-to/add-a-controller.md")
    name = "batkube.controllers.config_map_protection"
    exec(start, {**vars(module_of(name, controller, monkeypatch)), "world": world.world, "client": world.api})
    checks = vars(module_of("tests.controllers.test_config_map_protection", test, monkeypatch))

    checks["test_a_labelled_config_map_gets_a_finalizer"](world)

    finalizers = [obj["metadata"].get("finalizers") for obj in world.store.all("configmaps").values()]
    assert ["example.org/keep"] in finalizers


def test_the_workload_format_of_the_page_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (reader_of_tasks,) = python_of("how-to/add-a-workload-format.md")
    module_of("batkube.workloads.formats.traces.tasks", reader_of_tasks, monkeypatch)
    monkeypatch.setitem(reader._READERS, "tasks", ("formats.traces.tasks", "read_tasks"))
    monkeypatch.setitem(reader._FORMAT_OF_SUFFIX, ".tasks", "tasks")
    trace, bad = tmp_path / "a.tasks", tmp_path / "b.tasks"
    trace.write_text("5 1.5 1\n0 90 4\n")
    bad.write_text("0 90 4\n0 90\n")

    jobs = reader.read_workload(trace).jobs

    assert [(job.name, job.submit, job.size, job.profile.name) for job in jobs] == [
        ("2", 0, 4, "delay90"),
        ("1", seconds(5), 1, "delay1.5"),
    ]
    with pytest.raises(InputError, match="line 2: is not a job"):
        reader.read_workload(bad)
