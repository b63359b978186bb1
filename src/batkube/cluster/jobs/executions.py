"""Job executions: the shared state of the pods of one job.

A job's work begins when the last of its pods runs and ends for all of them at once. Job schedulers and kubelets
therefore look up the execution of a pod. An execution exists from the creation of its pods until all of them are gone.
A job that is stopped and resubmitted gets a new execution, which carries the record of the earlier attempts.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, cast

from batkube.cluster.jobs.outcomes import NO_ATTEMPTS, ONE_ATTEMPT, FinalState, PastAttempts
from batkube.cluster.store import Key
from batkube.kernel.instants import Instant
from batkube.kernel.quantities import CPU, MACHINE
from batkube.workloads.model import Job, Requests

#: Shared by all executions whose pods no controller creates, since a long trace has many.
_NO_RELEASE_TIMES: dict[int, Instant] = {}


class JobExecution:
    """The pods of one job and their progress; index i of every list is the pod of rank i."""

    __slots__ = (
        "aborted",
        "created",
        "creation_times",
        "demand",
        "end_appointment",
        "ended",
        "has_lost_node",
        "job",
        "keys",
        "machine_ids",
        "nodes",
        "owner",
        "past",
        "release_times",
        "running_count",
        "scheduled",
        "started",
        "state",
    )

    def __init__(
        self, job: Job, keys: list[Key], demand: Requests, created: Instant, past_attempts: PastAttempts
    ) -> None:
        self.job = job
        self.keys = keys
        #: The resources that each pod takes from its node.
        self.demand = demand
        self.created = created
        self.past = past_attempts
        #: For pods created by a controller: the controller, such as `Job/w0-7`, and when each pod was created and left
        #: its node. The key of a pod that does not exist yet is "".
        self.owner = ""
        self.creation_times: list[Instant] | None = None
        self.release_times = _NO_RELEASE_TIMES
        size = job.size
        #: Of each pod: the machine it was bound to, the node that runs it, when that node admitted it, when it started.
        self.machine_ids: list[int | None] = [None] * size
        self.nodes: list[str | None] = [None] * size
        self.scheduled: list[Instant | None] = [None] * size
        self.started: list[Instant | None] = [None] * size
        #: The number of pods that have started; the work begins when all have.
        self.running_count = 0
        #: The appointment for the end of the work, while the work runs.
        self.end_appointment: int | None = None
        #: How and when the work ended; None before that, and if it was aborted.
        self.state: FinalState | None = None
        self.ended: Instant | None = None
        #: When the first pod was stopped before the end of the work, and whether its node had failed or was deleted.
        self.aborted: Instant | None = None
        self.has_lost_node = False

    @property
    def is_owned(self) -> bool:
        """Whether a controller creates and deletes the pods."""
        return self.creation_times is not None

    @property
    def began(self) -> Instant | None:
        """When the last pod started; None until all have."""
        return None if None in self.started else max(cast(list[Instant], self.started))

    @property
    def was_placed(self) -> bool:
        """Whether a node has admitted any of the pods."""
        return self.scheduled.count(None) < len(self.scheduled)

    @property
    def past_if_completed(self) -> PastAttempts:
        """The job's past attempts, including this one, if its work completes."""
        if not self.was_placed:
            return self.past
        return ONE_ATTEMPT if self.past is NO_ATTEMPTS else self.past._replace(attempts=self.past.attempts + 1)

    def past_if_discarded(self, now: Instant) -> PastAttempts:
        """Return the job's past attempts, including this one, if its work is lost: the run time of its pods counts."""
        until = now if self.aborted is None else self.aborted
        ran = sum(until - started for started in self.started if started is not None)
        return self.past_if_completed._replace(lost_work=self.past.lost_work + work_milli(dict(self.demand)) * ran)


def work_milli(demand: Mapping[str, int]) -> int:
    """Return the weight of a pod's run time in lost work: 1000 for a machine of its own, else its CPU in millicores."""
    return 1000 if MACHINE in demand else demand.get(CPU, 0)


class ExecutionDriver(Protocol):
    """Runs the work of job executions; the kubelets call it."""

    def record_binding(self, execution: JobExecution, ranks: Sequence[int], nodes: Sequence[str], now: Instant) -> None:
        """Record that pods were bound; their nodes have not admitted them yet."""

    #: Called at the end of work whose end was not known at its start. The kubelets set it.
    on_end: Callable[[JobExecution, Instant], None] | None

    def start(self, execution: JobExecution, now: Instant) -> Instant | None:
        """Start the work, once all pods run. Return when it ends, or None if `on_end` will report that."""

    def complete(self, execution: JobExecution, now: Instant) -> None:
        """Record that all pods have ended with the work, in a run where pod statuses are not written."""

    def abort(self, execution: JobExecution, now: Instant) -> None:
        """Stop the work before its end."""

    def handle_node_loss(self, execution: JobExecution, now: Instant) -> None:
        """Handle that a node with pods of the execution failed or was deleted."""


ExecutionGroup = tuple[JobExecution, Sequence[int], Sequence[int]]
"""An execution with its pods in a batch: their positions in the batch and their ranks. A tuple, for speed."""


class JobExecutions:
    """Looks up the execution and the rank of a pod."""

    def __init__(self) -> None:
        #: Exactly the pods of live executions.
        self._by_pod: dict[Key, tuple[JobExecution, int]] = {}

    def add(self, execution: JobExecution) -> None:
        """Add a new execution."""
        self._by_pod.update(zip(execution.keys, zip(itertools.repeat(execution), itertools.count()), strict=False))

    def add_pod(self, execution: JobExecution, rank: int, key: Key) -> None:
        """Add a pod that was created after its execution."""
        execution.keys[rank] = key
        self._by_pod[key] = execution, rank

    def remove(self, execution: JobExecution) -> None:
        """Remove an execution whose pods are gone."""
        for key in execution.keys:
            self._by_pod.pop(key, None)

    def live(self) -> list[JobExecution]:
        """Return the executions that have pods, in the order in which they were added."""
        return list(dict.fromkeys(execution for execution, _ in self._by_pod.values()))

    def find(self, key: Key) -> tuple[JobExecution, int] | None:
        """Return the execution and the rank of a pod; None if it belongs to no workload job."""
        return self._by_pod.get(key)

    def group_by_execution(self, keys: Sequence[Key]) -> Sequence[ExecutionGroup]:
        """Group pods by execution, leaving out those of none.

        Usually `keys` is the list of one execution itself; then only the first pod is looked up.
        """
        entry = self._by_pod.get(keys[0]) if keys else None
        if entry is not None and keys is entry[0].keys:
            ranks = range(len(keys))
            return ((entry[0], ranks, ranks),)
        entries = [(position, self._by_pod.get(key)) for position, key in enumerate(keys)]
        members = [(position, entry[0], entry[1]) for position, entry in entries if entry is not None]
        grouped = ((owner, list(group)) for owner, group in itertools.groupby(members, key=operator.itemgetter(1)))
        return [(owner, [member[0] for member in group], [member[2] for member in group]) for owner, group in grouped]
