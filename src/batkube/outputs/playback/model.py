"""The nodes, jobs and pods of a run, each from its creation to its end.

Instants are nanoseconds, with the resolution of the tables: a microsecond. Amounts are those of the simulation:
millicores of cpu, whole units of everything else. Positions (`number`) are indices into the tuples of `Playback`.
"""

from __future__ import annotations

import enum
from bisect import bisect_right
from collections.abc import Mapping

import msgspec

from batkube.kernel.instants import Duration, Instant

Field = str | int | float | bool | None


class NodeStatus(enum.StrEnum):
    """The status of an existing node: whether it can run pods."""

    READY = "ready"
    CORDONED = "cordoned"
    FAILED = "failed"
    SWITCHING_OFF = "switching-off"
    ASLEEP = "asleep"
    SWITCHING_ON = "switching-on"


class NodePeriod(msgspec.Struct, frozen=True):
    """A period of time; `end` is None if it lasted beyond the end of the run."""

    begin: Instant
    end: Instant | None = None

    def contains(self, at: Instant) -> bool:
        """Return whether the period has begun at `at`, and has not ended."""
        return self.begin <= at and (self.end is None or at < self.end)


class StatusChange(msgspec.Struct, frozen=True):
    """A node has this status from `at` on."""

    at: Instant
    status: NodeStatus


class RecordedNode(msgspec.Struct, frozen=True):
    """A node. A node that was removed and created again with the same name is the same node."""

    number: int
    name: str
    #: Its id in the journal and in jobs.csv.
    machine: int
    capacity: Mapping[str, int]
    #: Empty if its labels do not tell.
    zone: str
    rack: str
    pool: str
    #: When it existed, in order of time.
    periods: tuple[NodePeriod, ...]
    #: In order of time. A node is ready when it is created.
    statuses: tuple[StatusChange, ...] = ()

    def exists(self, at: Instant) -> bool:
        """Return whether the node exists at an instant."""
        return any(period.contains(at) for period in self.periods)

    def status_at(self, at: Instant) -> NodeStatus:
        """Return the status of the node at an instant at which it exists."""
        position = bisect_right(self.statuses, at, key=lambda change: change.at)
        return self.statuses[position - 1].status if position else NodeStatus.READY


class Execution(msgspec.Struct, frozen=True):
    """One attempt to run a job, from a submission or resubmission on; a time is None if that did not happen."""

    queued: Instant
    #: When all its pods were running.
    started: Instant | None = None
    #: When the job finished, or was queued again.
    ended: Instant | None = None


class RecordedJob(msgspec.Struct, frozen=True):
    """A job of a workload, or a Job object."""

    number: int
    #: `workload!name`, as in the journal.
    key: str
    name: str
    workload: str
    executions: tuple[Execution, ...]
    #: As in jobs.csv; "" if the job had no outcome at the end of the run. Then the fields below are unknown, too.
    final_state: str = ""
    #: The requested number of machines or pods.
    size: int | None = None
    walltime: Duration | None = None
    user: str = ""
    priority: int = 0
    #: The scheduler that it names; "" for the run's default scheduler.
    scheduler: str = ""
    #: The machines of its last execution, as an interval set.
    machines: str = ""
    #: The numbers of its pods, in the order of `Playback.pods`.
    pods: tuple[int, ...] = ()

    @property
    def submitted(self) -> Instant:
        """When the job was submitted."""
        return self.executions[0].queued


class RecordedPod(msgspec.Struct, frozen=True):
    """A pod, from its creation to its end; a time is None if that did not happen during the run.

    The pods of a job that was resubmitted may have the names of the earlier ones.
    """

    number: int
    #: As in pods.csv: with its namespace outside of `default`.
    name: str
    #: The number of its job; None if it has none.
    job: int | None
    #: The name of its node; "" if it was never bound.
    node: str
    created: Instant
    bound: Instant | None
    started: Instant | None
    #: When its end was reported and its resources were free again; until then the API shows it as running.
    ended: Instant | None
    #: The phase in which it ended, or was in at the end of the run.
    phase: str
    attempts: int
    reason: str
    owner: str
    #: The amounts that it takes from its node, without its slot in `pods`.
    requests: Mapping[str, int]

    def exists(self, at: Instant) -> bool:
        """Return whether the pod was created and has not ended at an instant."""
        return self.created <= at and (self.ended is None or at < self.ended)

    def is_bound(self, at: Instant) -> bool:
        """Return whether the pod exists and has a node at an instant."""
        return self.bound is not None and self.bound <= at and self.exists(at)

    def is_running(self, at: Instant) -> bool:
        """Return whether the containers of the pod run at an instant."""
        return self.started is not None and self.started <= at and self.exists(at)


class JournalEntry(msgspec.Struct, frozen=True):
    """A line of journal.jsonl. Its time is exact."""

    #: The line's position in the file, from 0.
    number: int
    at: Instant
    event: str
    fields: Mapping[str, Field]
