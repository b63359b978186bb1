"""The output folder of a run, read back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from batkube.kernel.errors import InputError
from batkube.outputs.results import Results

if TYPE_CHECKING:
    from tests.run_folders import MakeRun

    from conftest import Simulate


def test_a_folder_is_read_as_frames(make_run: MakeRun) -> None:
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


def test_the_files_of_a_run_are_read_as_written(simulate: Simulate) -> None:
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


def test_without_a_manifest_machines_are_counted_by_the_highest_id(make_run: MakeRun) -> None:
    results = make_run([("1", 0, 0, 1, "0-2 9")])

    assert results.machine_count == 10
    assert results.machine_count_recorded is None


def test_an_old_batsim_file_is_read_with_its_schedule(shared_data: Path) -> None:
    results = Results(shared_data / "medium_late" / "easy" / "out_jobs.csv")

    assert len(results.jobs) == 801
    assert results.machine_count == 32
    assert set(results.jobs["final_state"]) == {"COMPLETED_SUCCESSFULLY"}
    assert results.schedule["makespan"] == 16088.51
    assert results.jobs["profile"].tolist() == [""] * 801
    assert results.manifest == {}


def test_a_folder_with_one_prefixed_jobs_file_is_a_run(shared_data: Path) -> None:
    assert len(Results(shared_data / "medium_late" / "easy").jobs) == 801


def test_a_folder_that_is_not_a_run_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"contains no jobs\.csv"):
        Results(tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        Results(tmp_path / "nowhere")


def test_a_folder_with_several_runs_is_rejected(tmp_path: Path) -> None:
    for name in ("a_jobs.csv", "b_jobs.csv"):
        (tmp_path / name).write_text("")

    with pytest.raises(InputError, match=r"2 runs \(a_jobs.csv, b_jobs.csv"):
        Results(tmp_path)


def test_a_manifest_that_is_not_json_is_rejected(make_run: MakeRun) -> None:
    results = make_run([("1", 0, 0, 1, "0")])
    (results.path / "manifest.json").write_text("{")

    with pytest.raises(InputError, match="cannot be read as JSON"):
        _ = results.manifest
