"""The jobs a policy scheduler knows, waiting and running."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence

from batkube.cluster.store import Key
from batkube.kernel.instants import Instant
from batkube.policies.interface import Start
from batkube.policies.rooms import Placement
from batkube.workloads.model import Job


class RunningJob:
    """A job that was started and has not ended."""

    __slots__ = ("_peek", "end", "job", "nodes", "number", "placement", "since")

    def __init__(
        self,
        start: Start,
        nodes: Sequence[str],
        since: Instant,
        end: Instant,
        number: int,
        peek: Callable[[Job], None] | None,
    ) -> None:
        self.job = start.job
        #: What it has taken out of the view's free room.
        self.placement: Placement = start.placement
        #: The node of each pod.
        self.nodes = nodes
        self.since = since
        #: When it must have ended, for our own use.
        self.end = end
        #: Counts the starts of the run, so that jobs which end at one instant still have an order in `running`.
        self.number = number
        #: Called when the policy looks at an end that no real scheduler could know.
        self._peek = peek

    @property
    def until(self) -> Instant:
        """When it must have ended, as the policy sees it."""
        if self._peek is not None:
            self._peek(self.job)
        return self.end


class Member:
    """A job the scheduler knows."""

    __slots__ = ("job", "keys", "lost", "run", "seen")

    def __init__(self, job: Job, keys: Sequence[Key]) -> None:
        self.job = job
        self.keys = keys
        #: How many of its pods have come; it can be started when all have.
        self.seen = 0
        #: The ranks of pods that have ended or are gone, while others are left.
        self.lost: set[int] = set()
        #: None while it waits.
        self.run: RunningJob | None = None


def insert(running: list[RunningJob], run: RunningJob) -> None:
    """Put a job among those that run, in order."""
    bisect.insort(running, run, key=_by_end)


def remove(running: list[RunningJob], run: RunningJob) -> None:
    """Take a job out of those that run."""
    del running[bisect.bisect_left(running, _by_end(run), key=_by_end)]


def _by_end(run: RunningJob) -> tuple[Instant, int]:
    return run.end, run.number
