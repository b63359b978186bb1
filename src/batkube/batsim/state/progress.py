"""The progress of a job, as JOB_KILLED reports it.

A leaf of the profile tree has a fraction that is done; a sequence has the index and the progress of its current part.
Imitated: Batsim 4.2.1, BatTask::compute_tasks_progress in src/jobs.cpp and initialize_sequential_tasks in
src/jobs_execution.cpp, which also pairs the parts of a job's profile with those of its additional_io_job.
"""

from __future__ import annotations

from collections.abc import Callable

from batkube.batsim.protocol.messages import JsonObject
from batkube.batsim.state.errors import BatsimAbort
from batkube.kernel.instants import Duration, Instant
from batkube.workloads.model import Composed, Profile


class JobProgress:
    """The progress of one profile, computed on request."""

    def __init__(self, profile: str, io_profile: Profile | None = None) -> None:
        self._profile = profile
        #: The profile that runs beside it; beside a sequence, a sequence of as many parts.
        self.io_profile = io_profile
        #: Returns the fraction that is done, for a leaf that has begun.
        self._fraction_done: Callable[[Instant], float] | None = None
        #: The index of the current part of a sequence, and its progress.
        self._current_part: tuple[int, JobProgress] | None = None
        self._has_selected = False

    def begin_delay(self, length: Duration, now: Instant) -> None:
        """Record the start of a delay."""
        self._fraction_done = lambda at: 1.0 if length == 0 else (at - now) / length

    def begin_task(self, fraction_done: Callable[[Instant], float]) -> None:
        """Record the start of a task; `fraction_done` returns how much of it is done."""
        self._fraction_done = fraction_done

    def begin_part(self, index: int, part: str) -> JobProgress:
        """Record the start of a part of the sequence, and return its progress."""
        io_parts = self.io_profile.parts if isinstance(self.io_profile, Composed) else ()
        progress = JobProgress(part, io_parts[index % len(io_parts)] if io_parts else None)
        self._current_part = index, progress
        return progress

    def begin_selected_profile(self, profile: str) -> JobProgress:
        """Record that a `recv` profile continues with another one, and return the progress of the latter."""
        self._has_selected = True
        return JobProgress(profile)

    def to_json(self, now: Instant) -> JsonObject:
        """Return the value for `job_progress`; Batsim 4.2.1 writes the profile as `profile_name`.

        Raise BatsimAbort for a `recv` that continues with another profile: Batsim treats it as a leaf with a part.
        """
        if self._has_selected:
            raise BatsimAbort(
                f"Leaves should not contain sub tasks: '{self._profile}' cannot be killed while it runs another profile"
            )
        if self._fraction_done is not None:
            return {"profile_name": self._profile, "progress": float(self._fraction_done(now))}
        if self._current_part is None:
            return {"profile_name": self._profile, "current_task_index": -1}
        index, part = self._current_part
        return {"profile_name": self._profile, "current_task_index": index, "current_task": part.to_json(now)}
