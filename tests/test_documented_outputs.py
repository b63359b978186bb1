"""What pages show below a command is what the command prints: the tutorial's run, and the how-tos' figures."""

from __future__ import annotations

import re
import shlex
from fnmatch import fnmatch
from pathlib import Path

import pytest
from tests.commands import answer_here
from tests.conftest import REPOSITORY

from batkube.experiments.results.result_files import read_results

DOCS = REPOSITORY / "docs"


def blocks(page: str) -> list[str]:
    """Return a page's blocks of commands and what they print: those that name no language."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block for language, block in found if not language]


def lines_of(text: str) -> list[str]:
    """Return the lines of a text with single spaces, as tables are wider here and there."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip() and line.strip() != "…"]


def run(folder: Path, command: str) -> str:
    result = answer_here(folder, *shlex.split(command)[1:])
    assert result.returncode == 0, f"{command}\n{result.stderr}"
    return str(result.stdout + result.stderr)


def test_the_tutorials_numbers_are_those_of_its_commands(tmp_path: Path) -> None:
    shown = blocks("tutorial.md")
    first = next(number for number, one in enumerate(shown) if "workload generate" in one)
    workload, command, table = shown[first : first + 3]
    comparison = next(one for one in shown if "compare fcfs easy" in one)
    printed, compared = (
        "".join(run(tmp_path, line) for line in commands.splitlines()) for commands in (workload + command, comparison)
    )

    assert [line for line in lines_of(table) if line not in lines_of(printed)] == []
    change = re.search(r"mean wait +s .* (-[\d.]+)", compared)
    assert change is not None
    assert 60 < -float(change[1]) < 67  # "almost two thirds"


@pytest.mark.parametrize("page", ["how-to/prepare-a-workload.md", "how-to/compare-runs.md"])
def test_what_is_shown_of_a_real_trace_is_so(page: str, tmp_path: Path, shared_data: Path) -> None:
    """Commands with a dollar are shown with what they print; those before them make what they need."""
    (tmp_path / "KTH-SP2-1996-2.swf").symlink_to(shared_data / "swf" / "KTH-SP2-1996-2.swf")
    if page.endswith("compare-runs.md"):
        week = next(one for one in blocks("how-to/prepare-a-workload.md") if "-o week.json" in one)
        run(tmp_path, week.splitlines()[0].removeprefix("$ "))
        for policy in ("fcfs", "easy"):
            run(
                tmp_path,
                f"batkube run --workload week.json --platform 100x1 --scheduler policy:{policy} --out out/{policy}",
            )
    shown = [one for one in blocks(page) if one.startswith("$ batkube") and "\n" in one.strip()]
    shown = [one for one in shown if "KTH" in one or "compare out" in one]

    assert shown
    for block in shown:
        command, _, told = block.partition("\n")
        printed = lines_of(run(tmp_path, command.removeprefix("$ ")))
        assert [line for line in lines_of(told) if line not in printed] == []


def test_the_frame_of_an_experiment_is_the_one_shown(tmp_path: Path) -> None:
    examples = REPOSITORY / "examples" / "experiments"
    run(tmp_path, f"batkube experiment {examples / 'backfilling.yaml'} --out {tmp_path / 'out'} --no-report --quiet")
    frame = read_results(tmp_path / "out")
    pivot = frame.pivot_table(index="machines", columns="scheduler", values="mean_waiting_time")

    shown = next(one for one in blocks("how-to/run-an-experiment.md") if one.startswith("scheduler"))
    assert lines_of(shown) == lines_of(str(pivot))


def test_a_job_that_is_tried_again_is_the_one_shown(tmp_path: Path) -> None:
    run(tmp_path, f"batkube run {REPOSITORY / 'examples' / 'anything' / 'scenario.yaml'} --out out --quiet")
    shown = next(one for one in blocks("how-to/run-anything.md") if "grep flaky" in one)
    pods = (tmp_path / "out" / "pods.csv").read_text(encoding="utf-8").splitlines()

    assert lines_of(shown)[2:] == [line for line in pods if "flaky" in line]


def columns_of(file: str) -> list[str]:
    """Return the columns that the pages of outputs list for a file; `…` stands for the rest of a column's name.

    They are the first cells of the tables that are headed `column`.
    """
    pages = "\n".join(page.read_text(encoding="utf-8") for page in sorted((DOCS / "reference").glob("outputs*.md")))
    section = pages.partition(f"\n## {file}\n")[2].partition("\n## ")[0]
    tables = re.findall(r"^\| column \|.*\n((?:\|.*\n)+)", section, re.MULTILINE)
    cells = [cell for table in tables for cell in re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE)]
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


@pytest.mark.parametrize("file", ["jobs.csv", "schedule.csv", "machine_states.csv", "pods.csv"])
def test_the_columns_of_outputs_are_those_of_the_page(file: str, tmp_path: Path) -> None:
    run(tmp_path, "batkube workload generate burst --jobs 2 -o w.json")
    run(tmp_path, "batkube run --workload w.json --platform 2x1 --out out --quiet")
    written = (tmp_path / "out" / file).read_text(encoding="utf-8").splitlines()[0].split(",")
    told = columns_of(file)

    assert [name for name in written if not any(fnmatch(name, one.replace("…", "*")) for one in told)] == []
    # What only some runs have: gangs and what resources are shared by.
    sometimes = {"submitted_as", "admitted_time", "member_wait"}
    assert [
        one
        for one in told
        if one not in sometimes
        and not one.startswith("utilisation_")
        and not any(fnmatch(name, one.replace("…", "*")) for name in written)
    ] == []


#: The runs that a page's Python finds, by the folder: those that the page itself, or its reader, has made before.
RUNS = {
    "tutorial.md": (),
    "how-to/compare-runs.md": ("out/fcfs", "out/easy"),
    "how-to/compare-with-a-real-cluster.md": ("real", "simulated"),
    "how-to/use-from-python.md": ("out/fcfs",),
    "reference/cli-compare.md": ("out/fcfs", "out/easy"),
    "reference/cli-gantt.md": ("out", "fcfs"),
    "reference/cli-report.md": ("out",),
    "reference/outputs.md": ("out",),
    "reference/platforms.md": (),
}


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the workloads that pages speak of, in which we are."""
    for name in ("trace.swf", "workload.json"):
        run(tmp_path, f"batkube workload generate lublin --jobs 30 --machines 32 -o {name}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", RUNS)
def test_the_python_of_a_page_runs(page: str, workplace: Path) -> None:
    for folder in RUNS[page]:
        policy = "easy" if folder.endswith("easy") else "fcfs"
        run(workplace, f"batkube run --workload trace.swf --platform 100x1 --scheduler policy:{policy} --out {folder}")
    if "study" in (text := (DOCS / page).read_text(encoding="utf-8")):
        base, axes = "{workload: trace.swf, platform: 100x1}", "{scheduler: [policy:fcfs, policy:sjf]}"
        (workplace / "e.yaml").write_text(f"base: {base}\naxes: {axes}\n")
        run(workplace, "batkube experiment e.yaml --out study --no-report --quiet --jobs 1")
    shown = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    world: dict[str, object] = {"__name__": "__main__"}

    assert shown
    for block in shown:
        if "evalys" not in block:  # which has a test of its own
            exec(compile(block, page, "exec"), world)
