"""How far a job is: a leaf that was begun, or a sequence and the place reached in it.

What runs together with a job (`additional_io_job`) is told here too, part by part, as Batsim's own tree of tasks does
(Batsim 4.2.1, src/jobs_execution.cpp, initialize_sequential_tasks).
"""

from __future__ import annotations

from collections.abc import Callable

from batkube.batsim.protocol.messages import JsonObject
from batkube.batsim.state.errors import BatsimAbort
from batkube.kernel.instants import Duration, Instant
from batkube.workloads.model import Composed, Profile


class JobProgress:
    """How far a profile is, told when somebody asks."""

    def __init__(self, profile: str, beside: Profile | None = None) -> None:
        self._profile = profile
        #: What runs together with it; beside a sequence it is one of as many parts.
        self.io_profile = beside
        #: The share that is done of a leaf that was begun.
        self._fraction_done: Callable[[Instant], float] | None = None
        #: Of a sequence: how many of its parts are done, and the one that runs.
        self._current_part: tuple[int, JobProgress] | None = None
        self._has_chosen = False

    def begin_delay(self, length: Duration, now: Instant) -> None:
        """It waits."""
        self._fraction_done = lambda at: 1.0 if length == 0 else (at - now) / length

    def begin_task(self, share: Callable[[Instant], float]) -> None:
        """It computes or communicates; `share` tells how much of that is done."""
        self._fraction_done = share

    def begin_part(self, index: int, part: str) -> JobProgress:
        """Its part number `index` begins."""
        beside = self.io_profile.parts if isinstance(self.io_profile, Composed) else ()
        inner = JobProgress(part, beside[index % len(beside)] if beside else None)
        self._current_part = index, inner
        return inner

    def begin_chosen_profile(self, part: str) -> JobProgress:
        """It goes on with another profile, of which nobody can tell how far it is."""
        self._has_chosen = True
        return JobProgress(part)

    def to_json(self, now: Instant) -> JsonObject:
        """Return it as a JOB_KILLED event has it; `profile_name` is what Batsim 4.2.1 calls the profile.

        Raises Refusal for a `recv` that goes on with another profile: that is no sequence, and so a leaf with a part.
        """
        if self._has_chosen:
            raise BatsimAbort(
                f"Leaves should not contain sub tasks: '{self._profile}' cannot be killed while it goes on"
            )
        if self._fraction_done is not None:
            return {"profile_name": self._profile, "progress": float(self._fraction_done(now))}
        if self._current_part is None:
            return {"profile_name": self._profile, "current_task_index": -1}
        index, part = self._current_part
        return {"profile_name": self._profile, "current_task_index": index, "current_task": part.to_json(now)}
