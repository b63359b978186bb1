"""The tables of an experiment: optional columns, Parquet, and the description."""

from __future__ import annotations

import csv
import hashlib
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.experiments.conftest import Study

import batkube
from batkube.experiments.results.result_files import label_as_number, read_results
from batkube.outputs.files.manifest import add_to_manifest
from batkube.outputs.files.parquet import arrow_array

AXES = {"scheduler": ["policy:fcfs", "policy:sjf"]}


@pytest.fixture
def finished_study(study: Study) -> Study:
    """A finished experiment of two runs."""
    resume(study)
    return study


def resume(study: Study) -> list[dict[str, str]]:
    """Execute unfinished runs, write the tables again, and return the rows of results.csv."""
    with ThreadPoolExecutor(1) as executor:
        batkube.experiment(study.file(axes=AXES, title="Two policies"), study.out, executor=executor)
    with (study.out / "results.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def run_folders(study: Study) -> list[Path]:
    return sorted((study.out / "runs").iterdir())


def replace_file(path: Path, text: str) -> None:
    """Replace a file of a run, as if the run had written it."""
    path.write_text(text)
    add_to_manifest(path)


def test_pods_bound_to_nodes_without_room_are_counted(finished_study: Study) -> None:
    notes = [
        {"subject": "scheduler", "severity": "violation", "message": message, "count": count, "example": ""}
        for message, count in (
            ("bound a pod to a node without room for it (OutOfcpu)", 3),
            ("bound a pod to a node without room for it (OutOfmemory)", 4),
            ("bound a pod to a node that does not exist", 100),
        )
    ]
    replace_file(run_folders(finished_study)[0] / "fidelity.json", json.dumps(notes))

    assert [row["overallocations"] for row in resume(finished_study)] == ["7", "0"]


def test_columns_that_only_some_runs_have_are_empty_in_the_others(finished_study: Study) -> None:
    schedule = run_folders(finished_study)[1] / "schedule.csv"
    header, row = schedule.read_text().splitlines()
    replace_file(schedule, f"{header},late_decisions,over_allocations\n{row},5,2\n")

    rows = resume(finished_study)

    assert [row["late_decisions"] for row in rows] == ["", "5"]
    assert [row["overallocations"] for row in rows] == ["0", "2"]
    assert "over_allocations" not in rows[0]
    assert read_results(finished_study.out)["late_decisions"].isna().tolist() == [True, False]


def test_real_times_are_in_a_separate_table(finished_study: Study) -> None:
    header = (finished_study.out / "timings.csv").read_text().splitlines()[0].split(",")

    assert header == ["run", "real_s", "cpu_s", "scheduler_cpu_s", "peak_memory_bytes", "virtual_per_real"]
    assert not set(header[1:]) & set((finished_study.out / "results.csv").read_text().splitlines()[0].split(","))


def test_the_parquet_file_equals_the_table(finished_study: Study) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")

    columns = parquet.read_table(finished_study.out / "results.parquet").to_pydict()

    frame = read_results(finished_study.out)
    assert columns["scheduler"] == AXES["scheduler"]
    assert columns["makespan"] == frame["makespan"].tolist()
    assert columns["nb_jobs"] == [4, 4]


COLUMNS = st.one_of(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]))),
    st.lists(st.none() | st.integers(-(1 << 63), (1 << 63) - 1)),
    st.lists(st.none() | st.integers(-(1 << 53), 1 << 53) | st.floats(allow_nan=False)),
)


@given(COLUMNS)
def test_a_column_keeps_its_values_in_arrow(values: list[str | float | None]) -> None:
    pytest.importorskip("pyarrow")

    assert arrow_array(values).to_pylist() == values


def test_a_parquet_file_is_written_without_pandas_and_threads(finished_study: Study) -> None:
    """Threads of Arrow sometimes abort a process at its end, and pandas takes long to import."""
    pytest.importorskip("pyarrow.parquet")
    program = (
        "import os, sys, threading; from pathlib import Path; import numpy, pyarrow.parquet\n"
        "count = lambda: len(os.listdir('/proc/self/task'))\n"
        "before = count()\n"
        "from batkube.experiments.results.table_files import write_parquet\n"
        f"write_parquet(Path({str(finished_study.out)!r}))\n"
        "print(count() - before, 'pandas' in sys.modules)"
    )

    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert result.stdout == "0 False\n"


def test_the_description_lists_axes_seeds_and_inputs(finished_study: Study) -> None:
    description = json.loads((finished_study.out / "experiment.json").read_text())

    assert description["title"] == "Two policies"
    assert description["base"] == {"workload": "w.json", "platform": "2x1"}
    assert description["axes"] == [{"name": "scheduler", "values": AXES["scheduler"]}]
    assert description["inputs"] == {
        "w.json": hashlib.sha256((finished_study.folder / "w.json").read_bytes()).hexdigest()
    }
    assert description["total"] == 2
    assert [(run["axes"], run["seed"], run["repeat"], run["state"], run["failure"]) for run in description["runs"]] == [
        ({"scheduler": policy}, 0, 1, "done", None) for policy in AXES["scheduler"]
    ]
    assert [run["run"] for run in description["runs"]] == [folder.name for folder in run_folders(finished_study)]


@pytest.mark.parametrize(
    ("label", "number"),
    [
        ("3", 3),
        ("-0.5", -0.5),
        ("250ms", 0.25),
        ("1h30m", 5400),
        ("policy:easy", None),
        ("inf", None),
        ("9" * 400, None),
    ],
)
def test_a_label_that_parses_as_a_number_is_a_number(label: str, number: float | None) -> None:
    assert label_as_number(label) == number


def test_a_folder_without_an_experiment_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(batkube.InputError, match="is not the folder of an experiment"):
        read_results(tmp_path)
