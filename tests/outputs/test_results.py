from __future__ import annotations

import sys
from pathlib import Path
from subprocess import run as run_program
from typing import TYPE_CHECKING

import numpy as np
import pytest

from batkube.kernel.errors import InputError
from batkube.outputs.results import Results

if TYPE_CHECKING:
    from conftest import Simulate
    from outputs.conftest import MakeRun


def test_a_folder_is_read_back_as_frames(make_run: MakeRun) -> None:
    results = make_run(
        [("007", 0, 1, 3, "0-1", {"user": "ada"}), ("NA", 2, 3, 4, "3")],
        manifest={"scheduler": "policy:easy", "platform": {"machines": [{"name": f"m{i}"} for i in range(5)]}},
    )

    assert results.jobs["job_id"].tolist() == ["007", "NA"]
    assert results.jobs["execution_time"].tolist() == [2, 1]
    assert results.jobs["user"].tolist() == ["ada", ""]
    assert results.machine_count == 5
    assert results.machine_names == ["m0", "m1", "m2", "m3", "m4"]
    assert results.scheduler == "policy:easy"
    assert results.name == "run"


def test_what_a_run_writes_is_what_is_read(simulate: Simulate) -> None:
    run = simulate(
        [{"id": str(i), "subtime": i, "res": 1 + i % 2, "profile": "p"} for i in range(6)],
        {"p": {"type": "delay", "delay": 10}},
        platform="2x1",
    )

    assert run.machine_count == 2
    assert len(run.jobs) == run.schedule["nb_jobs"] == 6
    assert run.pods["job_id"].tolist() == list("011233455")
    assert run.machine_states["nb_computing"].max() == 2
    assert run.metrics.makespan_s == run.schedule["makespan"]
    assert run.metrics.wait_s_mean == pytest.approx(run.schedule["mean_waiting_time"], abs=1e-6)
    assert run.metrics.slowdown_mean == pytest.approx(run.schedule["mean_slowdown"], abs=1e-6)
    assert run.metrics.utilisation == pytest.approx(run.schedule["mean_utilisation"], abs=1e-6)


def test_the_machines_are_counted_by_the_highest_id_when_nothing_states_them(make_run: MakeRun) -> None:
    results = make_run([("1", 0, 0, 1, "0-2 9")])

    assert results.machine_count == 10
    assert results.machine_count_stated is None


def test_jobs_that_never_started_have_no_times(make_run: MakeRun) -> None:
    results = make_run([("1", 5, None, None, "", {"final_state": "REJECTED", "success": 0})])

    assert np.isnan(results.jobs["starting_time"].iloc[0])
    assert np.isnan(results.jobs["waiting_time"].iloc[0])
    assert results.jobs["submission_time"].iloc[0] == 5


def test_batsims_infinite_stretch_is_no_number(make_run: MakeRun) -> None:
    results = make_run([("1", 0, 0, 0, "0", {"stretch": "inf"}), ("2", 0, 0, 0, "0", {"stretch": "-nan"})])

    assert results.jobs["stretch"].isna().all()


def test_an_old_batsim_file_is_read_with_its_schedule_beside_it(shared_data: Path) -> None:
    results = Results(shared_data / "medium_late" / "easy" / "out_jobs.csv")

    assert len(results.jobs) == 801
    assert results.machine_count == 32
    assert set(results.jobs["final_state"]) == {"COMPLETED_SUCCESSFULLY"}
    assert results.schedule["makespan"] == 16088.51
    assert results.jobs["profile"].tolist() == [""] * 801
    assert results.manifest == {}


def test_a_folder_with_one_prefixed_jobs_file_is_a_run(shared_data: Path) -> None:
    assert len(Results(shared_data / "medium_late" / "easy").jobs) == 801


def test_states_are_derived_where_a_file_has_none(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text(
        "job_id,submission_time,requested_time,success,starting_time,finish_time,allocated_resources\n"
        "1,0,10,1,0,5,0\n2,0,10,0,0,10,1\n3,0,10,0,0,4,2\n4,0,10,0,,,\n"
    )

    assert Results(tmp_path).jobs["final_state"].tolist() == [
        "COMPLETED_SUCCESSFULLY",
        "COMPLETED_WALLTIME_REACHED",
        "COMPLETED_FAILED",
        "REJECTED",
    ]


def test_every_published_file_can_be_read(shared_data: Path) -> None:
    files = sorted((shared_data / "batkube").glob("*lated/*_jobs.csv"))

    assert len(files) == 81
    assert all(len(Results(file).jobs) in (200, 39) for file in files)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("a,b\n1,2\n", "lacks the columns job_id"),
        ("job_id,job_id\n", "line 1: names a column twice"),
        ("job_id,submission_time,starting_time,finish_time,allocated_resources\n1,0,0\n", "line 2: has 3 fields"),
        (
            "job_id,submission_time,starting_time,finish_time,allocated_resources\n1,0,0,1,0\n2,soon,0,1,0\n",
            "line 3, column submission_time: 'soon' is not a number",
        ),
        (
            "job_id,submission_time,starting_time,finish_time,allocated_resources\n1,0,0,1,7-3\n",
            "line 2, column allocated_resources: '7-3' is not an interval",
        ),
    ],
)
def test_a_broken_jobs_csv_is_named_with_its_place(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "jobs.csv").write_text(content)

    with pytest.raises(InputError, match=message):
        _ = Results(tmp_path).jobs


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no jobs\.csv"):
        Results(tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        Results(tmp_path / "nowhere")


def test_a_folder_with_several_runs_asks_which(tmp_path: Path) -> None:
    for name in ("a_jobs.csv", "b_jobs.csv"):
        (tmp_path / name).write_text("")

    with pytest.raises(InputError, match=r"2 runs \(a_jobs.csv, b_jobs.csv"):
        Results(tmp_path)


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_bytes(b"\x89PNG\xff")

    with pytest.raises(InputError, match="cannot be read as CSV"):
        _ = Results(tmp_path).jobs


def test_a_manifest_that_is_not_json_is_refused(make_run: MakeRun) -> None:
    results = make_run([("1", 0, 0, 1, "0")])
    (results.path / "manifest.json").write_text("{")

    with pytest.raises(InputError, match="cannot be read as JSON"):
        _ = results.manifest


def test_neither_pandas_nor_matplotlib_is_imported_before_it_is_needed() -> None:
    program = (
        "import sys, batkube.outputs.results, batkube.outputs.gantt.chart, "
        "batkube.cli.commands.gantt, batkube.cli.commands.compare;"
        "sys.exit('pandas' in sys.modules or 'matplotlib' in sys.modules)"
    )

    assert run_program([sys.executable, "-c", program], check=False).returncode == 0
