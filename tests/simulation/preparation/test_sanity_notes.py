"""Notes on runs that say little."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import batkube
from batkube.simulation.preparation.sanity_notes import LATE_START, NOTHING_WAITED, OTHER_SIZE, UNUSUAL_LOAD

DAY = 86_400


def swf(folder: Path, *, machines: int = 4, jobs: int = 40, gap: int = 100, run: int = 380, first: int = 0) -> Path:
    """Write a trace of one-processor jobs at regular intervals."""
    path = folder / "t.swf"
    lines = [f"{n} {first + gap * n} 5 {run} 1 -1 -1 1 900 -1 1 1 1 -1 -1 -1 -1 -1\n" for n in range(jobs)]
    path.write_text(f"; MaxProcs: {machines}\n" + "".join(lines))
    return path


def notes_of(folder: Path, platform: str = "4x1", **trace: int) -> dict[str, Any]:
    result = batkube.run(
        workload=swf(folder, **trace), platform=platform, scheduler="policy:fcfs", out=folder / "out", force=True
    )
    return {note["message"]: note["example"] for note in result.notes}


def test_a_loaded_machine_of_the_traces_size_has_no_note(tmp_path: Path) -> None:
    assert notes_of(tmp_path, run=420) == {}


def test_a_platform_of_another_size_than_the_trace_is_noted(tmp_path: Path) -> None:
    example = notes_of(tmp_path, "5x1", run=420)[OTHER_SIZE.message]

    assert example == "4 processors in the workload, 5 machines"


def test_one_machine_of_as_many_cores_as_the_trace_has_processors_proposes_machines(tmp_path: Path) -> None:
    example = notes_of(tmp_path, "1x128", machines=128)[OTHER_SIZE.message]

    assert example == "128 processors in the workload, 1 machines; jobs take whole machines: use --platform 128x1"


def test_a_late_first_submission_is_noted(tmp_path: Path) -> None:
    example = notes_of(tmp_path, run=420, first=581 * DAY)[LATE_START.message]

    assert example.startswith("the jobs are submitted from 581 d to 581 d")


@pytest.mark.parametrize(("run", "load"), [(30, "0.08"), (1000, "2.56")])
def test_an_offered_load_far_from_1_is_noted(tmp_path: Path, run: int, load: str) -> None:
    assert notes_of(tmp_path, run=run)[UNUSUAL_LOAD.message] == f"{load} of 4 machines"


def test_a_run_in_which_no_job_waited_is_noted(tmp_path: Path) -> None:
    notes = notes_of(tmp_path, run=200)

    assert notes == {NOTHING_WAITED.message: "40 jobs"}


def test_few_jobs_and_bursts_are_examples_without_notes(tmp_path: Path) -> None:
    assert notes_of(tmp_path, jobs=5, run=10) == {}
    assert notes_of(tmp_path, gap=0) == {}
