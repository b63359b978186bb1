"""jobs.csv as a frame, whichever program wrote it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from batkube.outputs.results import Results

if TYPE_CHECKING:
    from tests.run_folders import MakeRun


def test_jobs_that_never_started_have_no_times(make_run: MakeRun) -> None:
    results = make_run([("1", 5, None, None, "", {"final_state": "REJECTED", "success": 0})])

    assert np.isnan(results.jobs["starting_time"].iloc[0])
    assert np.isnan(results.jobs["waiting_time"].iloc[0])
    assert results.jobs["submission_time"].iloc[0] == 5


def test_an_infinite_stretch_of_batsim_is_nan(make_run: MakeRun) -> None:
    results = make_run([("1", 0, 0, 0, "0", {"stretch": "inf"}), ("2", 0, 0, 0, "0", {"stretch": "-nan"})])

    assert results.jobs["stretch"].isna().all()


def test_missing_states_are_derived(tmp_path: Path) -> None:
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
