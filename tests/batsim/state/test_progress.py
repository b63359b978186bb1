"""The progress of jobs, as JOB_KILLED reports it."""

from __future__ import annotations

import pytest

from batkube.batsim.state.errors import BatsimAbort
from batkube.batsim.state.progress import JobProgress
from batkube.kernel.instants import Duration, Instant
from batkube.workloads.model import Composed, Delay


def test_a_delay_progresses_with_time() -> None:
    progress = JobProgress("wait")
    progress.begin_delay(Duration(100), Instant(20))

    assert progress.to_json(Instant(45)) == {"profile_name": "wait", "progress": 0.25}


def test_an_empty_delay_is_complete_at_once() -> None:
    progress = JobProgress("none")
    progress.begin_delay(Duration(0), Instant(20))

    assert progress.to_json(Instant(20)) == {"profile_name": "none", "progress": 1.0}


def test_a_sequence_has_the_progress_of_its_current_part() -> None:
    progress = JobProgress("seq")
    progress.begin_part(0, "first").begin_delay(Duration(10), Instant(0))

    progress.begin_part(1, "task").begin_task(lambda now: 0.5)

    current = {"profile_name": "task", "progress": 0.5}
    assert progress.to_json(Instant(12)) == {"profile_name": "seq", "current_task_index": 1, "current_task": current}


def test_a_profile_that_has_not_begun_has_no_current_part() -> None:
    assert JobProgress("seq").to_json(Instant(0)) == {"profile_name": "seq", "current_task_index": -1}


def test_the_parts_of_a_job_are_paired_with_those_of_its_io_profile() -> None:
    parts = tuple(Delay(name=name, duration=Duration(1)) for name in ("a", "b"))
    progress = JobProgress("seq", Composed(name="io", parts=parts))

    assert [progress.begin_part(index, "part").io_profile for index in range(3)] == [*parts, parts[0]]


def test_a_recv_that_continues_with_another_profile_cannot_be_reported() -> None:
    progress = JobProgress("hear")
    progress.begin_selected_profile("then").begin_delay(Duration(10), Instant(0))

    with pytest.raises(BatsimAbort, match="'hear' cannot be killed while it runs another profile"):
        progress.to_json(Instant(5))
