"""The files of the 2020 study: they define the runs of the study's README, and the data is at the stated paths."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, stdev

import pytest
import yaml

from batkube.experiments.description.experiment_file import read_experiment
from batkube.experiments.plan.runs import make_plan
from batkube.timing.time_rules import TimeMode
from conftest import REPOSITORY

STUDY = REPOSITORY / "examples" / "study-2020"
FILES = sorted(STUDY.glob("*.yaml"))
#: Names and runs of the README's table.
TOLD = dict(re.findall(r"^\| `([a-z-]+\.yaml)` \|.*\| (\d+) \| \d+ h \|$", (STUDY / "README.md").read_text(), re.M))


@pytest.fixture
def study(tmp_path: Path, shared_data: Path) -> Path:
    """A copy of the study's folder with its data in place."""
    folder = tmp_path / "study"
    shutil.copytree(STUDY, folder, ignore=shutil.ignore_patterns("data", "out"))
    (folder / "data").symlink_to(shared_data / "batkube")
    return folder


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_an_experiment_file_has_as_many_runs_as_its_readme_says_paced_and_exact(file: Path, study: Path) -> None:
    plan = make_plan(read_experiment(study / file.name), lambda name, _: Path(__file__))

    assert len(plan.runs) == int(TOLD[file.name])
    assert {run.scenario.time.mode for run in plan.runs} == {TimeMode.PACED, TimeMode.EXACT}


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_all_published_data_is_found(file: Path, study: Path) -> None:
    named = list(_published(yaml.safe_load(file.read_text())))

    assert named
    for pattern in named:
        assert list(study.glob(pattern)), pattern


def _published(content: object) -> Iterator[str]:
    """Yield the paths of published data in all sections."""
    if isinstance(content, dict):
        yield from (content[key] for key in ("file", "jobs") if key in content)
        for value in content.values():
            yield from _published(value)
    elif isinstance(content, list):
        for value in content:
            yield from _published(value)


#: A workload, a node's capacity, and the over-allocated pods in twenty runs, from docs/explanation/study-2020.md.
CASES = [("200_delay170", 1.0, 39), ("spaced_200_delay170", 1.0, 60), ("KIT_10h_80", 6.0, 22)]


@pytest.mark.parametrize(("workload", "capacity", "told"), CASES)
def test_the_published_runs_over_allocate_nodes(workload: str, capacity: float, told: int, shared_data: Path) -> None:
    found = _published_runs(shared_data, workload, capacity)

    assert len(found) == 20
    assert sum(over for over, _ in found) == told


def test_some_of_the_published_realistic_runs_over_allocate_and_the_others_do_not(
    shared_data: Path,
) -> None:
    found = _published_runs(shared_data, "KIT_10h_80", 6.0)
    short = [wait for over, wait in found if over]
    long = [wait for over, wait in found if not over]

    assert (len(short), len(long)) == (9, 11)
    assert max(short) < 1900 < 2300 < min(long)


def test_the_published_columns_of_the_page_are_those_of_the_files(shared_data: Path) -> None:
    page = (REPOSITORY / "docs" / "explanation" / "study-2020.md").read_text(encoding="utf-8")
    names = {"200_delay170": "burst", "spaced_200_delay170": "spaced", "KIT_10h_80": "realistic"}
    for workload, name in names.items():
        spans, waits = [], []
        for path in (shared_data / "batkube" / "simulated").glob(f"{workload}_simu_*_jobs.csv"):
            with path.open(newline="") as file:
                rows = list(csv.DictReader(file))
            spans.append(max(float(row["finish_time"]) for row in rows))
            waits.append(fmean(float(row["waiting_time"]) for row in rows))
        digits = 0 if name == "realistic" else 1
        assert f"| {name}, makespan | {fmean(spans):.1f} ± {stdev(spans):.1f} |" in page
        assert f"| {name}, mean wait | {fmean(waits):.{digits}f} ± {stdev(waits):.{digits}f} |" in page


def _published_runs(shared_data: Path, workload: str, capacity: float) -> list[tuple[int, float]]:
    """Return, for each published run, how many jobs began on a node without room for them, and the mean wait."""
    content = json.loads((shared_data / "batkube" / "workloads" / f"{workload}.json").read_text())
    cpus = {str(job["id"]): float(content["profiles"][job["profile"]]["cpu"]) for job in content["jobs"]}
    found = []
    for path in (shared_data / "batkube" / "simulated").glob(f"{workload}_simu_*_jobs.csv"):
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        nodes: dict[str, list[tuple[float, float, float]]] = {}
        for row in rows:
            job = float(row["starting_time"]), float(row["finish_time"]), cpus[row["job_id"]]
            nodes.setdefault(row["allocated_resources"], []).append(job)
        over = sum(_asked(job, jobs) > capacity + 1e-9 for jobs in nodes.values() for job in jobs)
        found.append((over, sum(float(row["waiting_time"]) for row in rows) / len(rows)))
    return found


def _asked(job: tuple[float, float, float], on_node: list[tuple[float, float, float]]) -> float:
    """Return the total requests of a job and of the jobs on its node when it begins.

    Times are in whole milliseconds.
    """
    begin, _, cpu = job
    return cpu + sum(other for start, end, other in on_node if start < begin and end > begin + 0.001)
