"""Job executions: the shared state of the pods of one job.

A job's work begins when the last of its pods runs and ends for all of them at once. Job schedulers and kubelets
therefore look up the execution of a pod. An execution exists from the creation of its pods until all of them are gone.
A job that is stopped and resubmitted gets a new execution, which carries the record of the earlier attempts.
"""

from __future__ import annotations

import itertools
import operator
from collections import deque
from collections.abc import Mapping, Sequence
from typing import cast

from batkube.cluster.jobs.outcomes import NO_ATTEMPTS, ONE_ATTEMPT, FinalState, PastAttempts
from batkube.cluster.pods.pod_groups import PodGroup
from batkube.cluster.store import Key
from batkube.kernel.instants import Instant
from batkube.kernel.quantities import CPU, MACHINE
from batkube.workloads.model import Job, Requests

#: Shared by all executions whose pods no controller creates, since a long trace has many.
_NO_RELEASE_TIMES: dict[int, Instant] = {}
_NO_RANKS: dict[Key, int] = {}


class JobExecution(PodGroup):
    """The pods of one job and their progress."""

    __slots__ = (
        "aborted",
        "created",
        "creation_times",
        "end_appointment",
        "ended",
        "has_lost_node",
        "job",
        "machine_ids",
        "owner",
        "past",
        "ranks_by_key",
        "release_times",
        "running_count",
        "started",
        "state",
    )

    def __init__(
        self, job: Job, keys: list[Key], demand: Requests, created: Instant, past_attempts: PastAttempts
    ) -> None:
        super().__init__(keys, demand)
        self.job = job
        self.created = created
        self.past = past_attempts
        #: For pods created by a controller: the controller, such as `Job/w0-7`, and when each pod was created. The key
        #: of a pod that does not exist yet is "".
        self.owner = ""
        self.creation_times: list[Instant] | None = None
        #: When each pod left its node, of those for which that was not the end of the work.
        self.release_times = _NO_RELEASE_TIMES
        #: The ranks of pods, including replaced ones; filled when needed (`rank_of`).
        self.ranks_by_key: dict[Key, int] = _NO_RANKS
        size = job.size
        #: Of each pod: the machine it was bound to, and when it started.
        self.machine_ids: list[int | None] = [None] * size
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
    def title(self) -> str:
        """The job, for messages."""
        return f"job {self.job.key}"

    def rank_of(self, key: Key) -> int:
        """Return the rank of a pod."""
        if len(self.keys) == 1:
            return 0
        if not self.ranks_by_key:
            self.ranks_by_key = dict(zip(self.keys, itertools.count(), strict=False))
        return self.ranks_by_key[key]

    def record_key(self, rank: int, key: Key) -> None:
        """Record a pod that a controller has created, perhaps to replace another one."""
        if not self.ranks_by_key:
            self.ranks_by_key = {}
        self.keys[rank], self.ranks_by_key[key] = key, rank

    def record_machines(self, ranks: Sequence[int], machine_ids: Sequence[int | None]) -> None:
        """Record the machines to which pods were bound."""
        if self.are_all(ranks):
            self.machine_ids[:] = machine_ids
            return
        for rank, machine_id in zip(ranks, machine_ids, strict=True):
            self.machine_ids[rank] = machine_id

    def record_start(self, ranks: Sequence[int], now: Instant) -> None:
        """Record that pods run."""
        self.running_count += len(ranks)
        if self.are_all(ranks):
            self.started[:] = [now] * len(ranks)
            return
        for rank in ranks:
            self.started[rank] = now

    def record_release(self, ranks: Sequence[int], now: Instant) -> None:
        """Record that pods left their nodes."""
        if now != self.ended:
            if self.release_times is _NO_RELEASE_TIMES:
                self.release_times = {}
            self.release_times.update(dict.fromkeys(ranks, now))

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
        """The job's past attempts; this one counts as completed."""
        if not self.was_placed:
            return self.past
        return ONE_ATTEMPT if self.past is NO_ATTEMPTS else self.past._replace(attempts=self.past.attempts + 1)

    def past_if_discarded(self, now: Instant) -> PastAttempts:
        """Return the job's past attempts, including this one with the run time of its pods as lost work."""
        until = now if self.aborted is None else self.aborted
        ran = sum(until - started for started in self.started if started is not None)
        return self.past_if_completed._replace(lost_work=self.past.lost_work + work_milli(dict(self.demand)) * ran)


def work_milli(demand: Mapping[str, int]) -> int:
    """Return the weight of a pod's run time in lost work: 1000 for a machine of its own, else its CPU in millicores."""
    return 1000 if MACHINE in demand else demand.get(CPU, 0)


ExecutionGroup = tuple[JobExecution, Sequence[int], Sequence[int]]
"""An execution with its pods in a batch: their positions in the batch and their ranks. A tuple, for speed."""


class JobExecutions:
    """Looks up the execution of a pod."""

    def __init__(self) -> None:
        #: Exactly the pods of live executions.
        self._by_pod: dict[Key, JobExecution] = {}
        #: The latest pods that were grouped, and their groups: several subscribers group the pods of each batch.
        self._latest_groups: tuple[Sequence[Key], Sequence[ExecutionGroup]] = (), ()

    def add(self, execution: JobExecution) -> None:
        """Add a new execution."""
        self._latest_groups = (), ()
        self._by_pod |= dict.fromkeys(execution.keys, execution)

    def add_pod(self, execution: JobExecution, rank: int, key: Key) -> None:
        """Add a pod that was created after its execution."""
        execution.record_key(rank, key)
        self._by_pod[key] = execution
        self._latest_groups = (), ()

    def remove(self, execution: JobExecution) -> None:
        """Remove an execution whose pods are gone."""
        deque(map(self._by_pod.pop, execution.keys, itertools.repeat(None)), maxlen=0)
        self._latest_groups = (), ()

    def live(self) -> list[JobExecution]:
        """Return the executions that have pods, in the order in which they were added."""
        return list(dict.fromkeys(self._by_pod.values()))

    def find(self, key: Key) -> JobExecution | None:
        """Return the execution of a pod; None if it belongs to no workload job."""
        return self._by_pod.get(key)

    def group_by_execution(self, keys: Sequence[Key]) -> Sequence[ExecutionGroup]:
        """Group pods by execution, leaving out those of none.

        Usually `keys` is the list of one execution itself; then only the first pod is looked up.
        """
        latest_keys, groups = self._latest_groups
        if keys is latest_keys:
            return groups
        first = self._by_pod.get(keys[0]) if keys else None
        if first is None and len(keys) <= 1:
            groups = ()
        elif first is not None and (keys is first.keys or len(first.keys) == len(keys) == 1):
            ranks = range(len(keys))
            groups = ((first, ranks, ranks),)
        else:
            owners = zip(itertools.count(), keys, map(self._by_pod.get, keys))
            by_execution = itertools.groupby(owners, key=operator.itemgetter(2))
            members = [(owner, list(group)) for owner, group in by_execution if owner is not None]
            groups = [
                (owner, [position for position, _, _ in group], [owner.rank_of(key) for _, key, _ in group])
                for owner, group in members
            ]
        self._latest_groups = keys, groups
        return groups
