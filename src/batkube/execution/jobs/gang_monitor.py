"""Watches over jobs that a scheduler starts in part: how long their pods wait for the others, and whether for good.

A deadlock is told as soon as it is certain. Whoever only binds never takes a binding back, so where nobody can evict
pods, what `deadlock` finds stays as it is. Others get their time: a pod of a higher priority may preempt when it is
tried again, and some programs roll back by themselves what they began (kube-scheduler looks at pods that did not fit
at least every five minutes: pkg/scheduler/backend/queue, DefaultPodMaxInUnschedulablePodsDuration).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from batkube.cluster.decisions import Binding
from batkube.cluster.jobs.executions import JobExecution
from batkube.cluster.mapping import NODE, POD
from batkube.cluster.object_meta import is_being_deleted
from batkube.cluster.pods.accessors import TERMINAL_PHASES, is_finished, node_of_pod
from batkube.cluster.pods.resources import allocatable_of, demand_of
from batkube.cluster.store import ADDED, DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.execution.jobs.deadlock import PartialGang, find_deadlocked
from batkube.kernel.agenda import Rank
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import Duration, Instant, human_duration, seconds
from batkube.kernel.intervals import format_intervals, mask_of

#: How long those who may evict pods have to do so.
ROLLBACK_TIME: Duration = seconds(600)
_NOTE = FidelityNote("deadlock", "half-started jobs hold, for good, what the pods that they wait for would need")
_CONDITION_TAINT_PREFIX = "node.kubernetes.io/"
#: So many jobs, and nodes of each, are named in a sentence; the journal has them all.
_MAX_NAMED = 10


class Deadlock(NamedTuple):
    """Jobs that can never be whole, and since when that is so."""

    executions: Sequence[JobExecution]
    since: Instant

    def __str__(self) -> str:
        several = f"{len(self.executions)} half-started jobs" if len(self.executions) > 1 else "a half-started job"
        who = "; ".join(_describe(execution) for execution in self.executions[:_MAX_NAMED])
        rest = f"; and {len(self.executions) - _MAX_NAMED} more" if len(self.executions) > _MAX_NAMED else ""
        return (
            f"deadlock since {human_duration(self.since)}: {several} can never get the nodes still missing: {who}{rest}"
        )


class GangMonitor:
    """Knows the jobs of which some pods have nodes and others have not."""

    def __init__(
        self,
        world: World,
        *,
        highest_priority: int,
        has_objects: bool,
        has_evictors: bool,
        goes_on: bool,
    ) -> None:
        """`highest_priority` is of all jobs that ever come; `has_objects` says that other pods may come as well.

        `has_evictors` says that some program of the run may evict pods of its own accord, `goes_on` that a deadlock is
        told and nothing else.
        """
        self._world = world
        self._executions = world.executions
        self._highest_priority = highest_priority
        self._has_objects = has_objects
        self._has_evictors = has_evictors
        self._continues_after_deadlock = goes_on
        #: Why the run cannot go on.
        self.deadlock: Deadlock | None = None
        #: Since when each half-started job is.
        self._partial_since: dict[JobExecution, Instant] = {}
        #: Those of which the journal does not tell that they wait.
        self._unrecorded: dict[JobExecution, None] = {}
        #: What nodes that take pods offer.
        self._capacities: dict[str, dict[str, int]] = {}
        #: Pods of no job that never end by themselves, with what they take from their nodes.
        self._endless_pods: dict[Key, tuple[str, dict[str, int]]] = {}
        #: Whether anything has happened since the last look that can make a deadlock, or end it.
        self._has_changed = False
        self._suspicion: Deadlock | None = None
        #: The jobs that were in a deadlock which was certain, by key.
        self.deadlocked_jobs: dict[str, None] = {}
        #: For how long pods of a job held nodes while others had none, by the job's key.
        self.member_waits: dict[str, Duration] = {}
        for key, pod in world.store.all(POD).items():
            self._record_endless_pod(key, pod)
        for name, node in world.store.all(NODE).items():
            self._record_capacity(name, node)
        world.store.subscribe(POD, self._on_pods_changed)
        world.store.subscribe(NODE, self._on_nodes_changed)
        world.heartbeats.subscribe(self._mark_changed, self._mark_changed)

    # What it hears

    def _on_nodes_changed(self, batch: Batch, now: Instant) -> None:
        for name, node in zip(batch.keys, batch.objects, strict=True):
            self._capacities.pop(name, None)
            if batch.type is not DELETED:
                self._record_capacity(name, node)
        self._has_changed = True

    def _record_capacity(self, name: str, node: KubeObject) -> None:
        """Take note of what a node offers, if it takes pods; taints by its condition come and go by themselves."""
        spec = node["spec"]
        lasting = [taint for taint in spec.get("taints") or () if not taint["key"].startswith(_CONDITION_TAINT_PREFIX)]
        hard = [taint for taint in lasting if taint.get("effect") != "PreferNoSchedule"]
        if not spec.get("unschedulable") and not hard:
            self._capacities[name] = dict(allocatable_of(node))

    def _mark_changed(self, node: str, now: Instant) -> None:
        self._has_changed = True

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        if batch.type is not ADDED:
            for execution, positions, _ in self._executions.group_by_execution(batch.keys):
                if isinstance(batch.decision, Binding):
                    self._on_binding(execution, now)
                elif execution in self._partial_since and (batch.type is DELETED or _any_ended(batch.at(positions))):
                    self._remove(execution, now)
        if batch.type is not DELETED and not isinstance(batch.decision, Binding):
            return
        for key, pod in zip(batch.keys, batch.objects, strict=True):
            if batch.type is DELETED:
                self._has_changed |= self._endless_pods.pop(key, None) is not None
            elif self._executions.find(key) is None:
                self._record_endless_pod(key, pod)

    def _record_endless_pod(self, key: Key, pod: KubeObject) -> None:
        """Take note of a pod of no job that holds its node for good."""
        if node_of_pod(pod) and pod["spec"].get("restartPolicy", "Always") == "Always" and not is_finished(pod):
            self._endless_pods[key] = node_of_pod(pod), dict(demand_of(pod))
            self._has_changed = True

    def _on_binding(self, execution: JobExecution, now: Instant) -> None:
        if None in execution.machine_ids:
            if execution not in self._partial_since:
                self._partial_since[execution] = now
                self._unrecorded[execution] = None
            self._has_changed = True
        elif execution in self._partial_since:
            self._remove(execution, now)

    def _remove(self, execution: JobExecution, now: Instant) -> None:
        """Take note that a job is whole, or was broken off."""
        key, since = execution.job.key, self._partial_since.pop(execution)
        self._unrecorded.pop(execution, None)
        self.member_waits[key] = Duration(self.member_waits.get(key, 0) + now - since)
        self._has_changed = True

    # What it finds

    def is_deadlocked(self, now: Instant) -> bool:
        """Return whether there is a deadlock with which the run is not to go on; what there is, is told."""
        self._record_waits(now)
        if self._has_changed:
            self._has_changed = False
            self._update_suspicion(self._find_deadlocked(), now)
        deadlock = self._suspicion
        if deadlock is None or not self._is_certain(deadlock, now):
            return False
        self._record_deadlock(deadlock, now)
        self.deadlock = None if self._continues_after_deadlock else deadlock
        return not self._continues_after_deadlock

    def _record_waits(self, now: Instant) -> None:
        """Tell the journal of jobs that wait for the rest of their pods while time goes on."""
        for execution in [one for one in self._unrecorded if self._partial_since[one] < now]:
            del self._unrecorded[execution]
            has_node = [rank for rank, number in enumerate(execution.machine_ids) if number is not None]
            pods = format_intervals(mask_of(has_node))
            self._world.journal.append(
                now, "wait", job=execution.job.key, pods=pods, since=self._partial_since[execution]
            )

    def _find_deadlocked(self) -> list[JobExecution]:
        """Return the jobs that can never be whole; one that lost pods with their node will be broken off."""
        executions = [execution for execution in self._partial_since if not execution.has_lost_node]
        halves = []
        for execution in executions:
            nodes = [node for node in execution.nodes if node is not None]
            halves.append(PartialGang(execution.demand, nodes, len(execution.keys) - len(nodes)))
        return [executions[number] for number in find_deadlocked(halves, self._capacity_for_jobs())] if halves else []

    def _capacity_for_jobs(self) -> dict[str, dict[str, int]]:
        """Return what nodes have for jobs: what they offer without what is held for good by others."""
        silent = self._world.heartbeats.silent
        room = {name: offer for name, offer in self._capacities.items() if name not in silent}
        for node, demand in self._endless_pods.values():
            if node in room:
                offer = room[node]
                room[node] = {name: amount - demand.get(name, 0) for name, amount in offer.items()}
        return room

    def _update_suspicion(self, stuck: Sequence[JobExecution], now: Instant) -> None:
        """Take note of who is stuck; of those who were and still are, it is known since when."""
        before = self._suspicion
        if not stuck:
            self._suspicion = None
        elif before is not None and set(before.executions) <= set(stuck):
            self._suspicion = before._replace(executions=stuck)
        else:
            self._suspicion = Deadlock(stuck, now)
            # So that somebody looks again then, whatever else happens.
            self._world.agenda.book(Instant(now + ROLLBACK_TIME), Rank.WAKE, lambda _: None, is_routine=True)

    def _is_certain(self, deadlock: Deadlock, now: Instant) -> bool:
        """Return whether nothing that is to come can help: nodes, arrivals that preempt, programs that evict."""
        agenda, lowest = self._world.agenda, min(execution.job.priority for execution in deadlock.executions)
        if agenda.has_rank(Rank.TIMELINE):
            return False
        if (lowest < self._highest_priority or self._has_objects) and agenda.has_rank(Rank.SUBMIT):
            return False
        is_at_once = lowest >= self._highest_priority and not self._has_evictors
        return is_at_once or now >= deadlock.since + ROLLBACK_TIME

    def _record_deadlock(self, deadlock: Deadlock, now: Instant) -> None:
        """Tell of a deadlock in the journal and in the notes; of each job once."""
        known = self.deadlocked_jobs
        executions = [execution for execution in deadlock.executions if execution.job.key not in known]
        for execution in executions:
            known[execution.job.key] = None
            nodes = " ".join(_nodes_of(execution))
            self._world.journal.append(now, "deadlock", job=execution.job.key, nodes=nodes, since=deadlock.since)
        if executions:
            self._world.notes.add(_NOTE, example=str(deadlock), count=len(executions))


def _any_ended(pods: Sequence[KubeObject]) -> bool:
    return any(is_being_deleted(pod) or pod["status"]["phase"] in TERMINAL_PHASES for pod in pods)


def _nodes_of(execution: JobExecution) -> list[str]:
    """Return the nodes that a job holds, in the order of the platform."""
    pairs = zip(execution.machine_ids, execution.nodes, strict=True)
    held = {(-1 if number is None else number, node) for number, node in pairs if node is not None}
    return [node for _, node in sorted(held)]


def _describe(execution: JobExecution) -> str:
    nodes = _nodes_of(execution)
    held = sum(node is not None for node in execution.nodes)
    where = ", ".join(nodes[:_MAX_NAMED]) + (", …" if len(nodes) > _MAX_NAMED else "")
    return f"{execution.job.key} has {held} of its {len(execution.keys)} pods on {where}"
