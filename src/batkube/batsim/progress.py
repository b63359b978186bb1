"""How far a job is: a leaf that was begun, or a sequence and the place reached in it."""

from __future__ import annotations

from collections.abc import Callable

from batkube.batsim.messages import JsonObject
from batkube.kernel.instants import Duration, Instant


class JobProgress:
    """How far a profile is, told when somebody asks."""

    def __init__(self, profile: str) -> None:
        self._profile = profile
        #: The share that is done of a leaf that was begun.
        self._share: Callable[[Instant], float] | None = None
        #: Of a sequence: how many of its parts are done, and the one that runs.
        self._place: tuple[int, JobProgress] | None = None

    def begin_delay(self, length: Duration, now: Instant) -> None:
        """It waits."""
        self._share = lambda at: 1.0 if length == 0 else (at - now) / length

    def begin_task(self, share: Callable[[Instant], float]) -> None:
        """It computes or communicates; `share` tells how much of that is done."""
        self._share = share

    def begin_part(self, index: int, part: str) -> JobProgress:
        """Its part number `index` begins."""
        inner = JobProgress(part)
        self._place = index, inner
        return inner

    def tree(self, now: Instant) -> JsonObject:
        """Return it as a JOB_KILLED event has it; `profile_name` is what Batsim 4.2.1 calls the profile."""
        if self._share is not None:
            return {"profile_name": self._profile, "progress": float(self._share(now))}
        if self._place is None:
            return {"profile_name": self._profile, "current_task_index": -1}
        index, part = self._place
        return {"profile_name": self._profile, "current_task_index": index, "current_task": part.tree(now)}
