"""Monitors partially placed gangs: how long their pods wait for the others, and whether they are deadlocked.

A deadlock is reported as soon as it is certain. If no program can evict pods, bindings are final and the result of
`deadlock` is certain at once. Otherwise there is a waiting time: a pod of higher priority may preempt on its next
attempt, and some programs undo partial placements. kube-scheduler retries unschedulable pods at least every five
minutes (Kubernetes: pkg/scheduler/backend/queue, DefaultPodMaxInUnschedulablePodsDuration). If a program may create
nodes, a deadlock is never certain: it is a fidelity note, and the run continues.
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

#: The time in which programs that can evict pods must do so.
ROLLBACK_TIME: Duration = seconds(600)
_NOTE = FidelityNote("deadlock", "half-started jobs hold the resources that their missing pods need, forever")
_NOTE_WITHOUT_NODES = FidelityNote(
    "deadlock", "half-started jobs hold the resources that their missing pods need, unless a program adds nodes"
)
_CONDITION_TAINT_PREFIX = "node.kubernetes.io/"
#: The number of jobs, and of nodes per job, that a message names; the journal has them all.
_MAX_NAMED = 10


class Deadlock(NamedTuple):
    """Jobs that can never be placed completely, and since when."""

    executions: Sequence[JobExecution]
    since: Instant

    def __str__(self) -> str:
        several = f"{len(self.executions)} half-started jobs" if len(self.executions) > 1 else "a half-started job"
        jobs = "; ".join(_describe(execution) for execution in self.executions[:_MAX_NAMED])
        rest = f"; and {len(self.executions) - _MAX_NAMED} more" if len(self.executions) > _MAX_NAMED else ""
        since = human_duration(self.since)
        return f"deadlock since {since}: {several} can never get the nodes still missing: {jobs}{rest}"


class GangMonitor:
    """Tracks the jobs of which some pods are bound and others are not."""

    def __init__(
        self,
        world: World,
        *,
        highest_priority: int,
        has_objects: bool,
        has_evictors: bool,
        may_grow: bool,
        continues_after_deadlock: bool,
    ) -> None:
        """`highest_priority` is that of all jobs of the run; `has_objects` says that other pods may be created as well.

        `has_evictors` says that a program of the run may evict pods, `may_grow` that one may create nodes. With
        `may_grow` or `continues_after_deadlock`, a deadlock is reported but does not end the run.
        """
        self._world = world
        self._executions = world.executions
        self._highest_priority = highest_priority
        self._has_objects = has_objects
        self._has_evictors = has_evictors
        self._may_grow = may_grow
        self._continues_after_deadlock = continues_after_deadlock or may_grow
        #: The deadlock that ends the run.
        self.deadlock: Deadlock | None = None
        #: Since when each job is partially placed.
        self._partial_since: dict[JobExecution, Instant] = {}
        #: Partially placed jobs whose wait is not in the journal yet.
        self._unrecorded: dict[JobExecution, None] = {}
        #: The allocatable resources of schedulable nodes.
        self._capacities: dict[str, dict[str, int]] = {}
        #: Pods outside workload jobs that never end by themselves, with their nodes and resources.
        self._endless_pods: dict[Key, tuple[str, dict[str, int]]] = {}
        #: Whether anything has changed since the last check that can cause or resolve a deadlock.
        self._has_changed = False
        self._suspicion: Deadlock | None = None
        #: The keys of jobs in a deadlock that is certain, unless a node is created.
        self.deadlocked_jobs: dict[str, None] = {}
        #: How long each job was partially placed, by its key.
        self.member_waits: dict[str, Duration] = {}
        for key, pod in world.store.all(POD).items():
            self._record_endless_pod(key, pod)
        for name, node in world.store.all(NODE).items():
            self._record_capacity(name, node)
        world.store.subscribe(POD, self._on_pods_changed)
        world.store.subscribe(NODE, self._on_nodes_changed)
        world.heartbeats.subscribe(self._mark_changed, self._mark_changed)

    # Notifications

    def _on_nodes_changed(self, batch: Batch, now: Instant) -> None:
        for name, node in zip(batch.keys, batch.objects, strict=True):
            self._capacities.pop(name, None)
            if batch.type is not DELETED:
                self._record_capacity(name, node)
        self._has_changed = True

    def _record_capacity(self, name: str, node: KubeObject) -> None:
        """Record the resources of a schedulable node; taints by node conditions are temporary and ignored."""
        spec = node["spec"]
        permanent_taints = [
            taint for taint in spec.get("taints") or () if not taint["key"].startswith(_CONDITION_TAINT_PREFIX)
        ]
        hard = [taint for taint in permanent_taints if taint.get("effect") != "PreferNoSchedule"]
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
        """Record a pod outside workload jobs that holds its resources forever."""
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
            self.deadlocked_jobs.pop(execution.job.key, None)  # a node was created

    def _remove(self, execution: JobExecution, now: Instant) -> None:
        """Record that a job is placed completely, or was aborted."""
        key, since = execution.job.key, self._partial_since.pop(execution)
        self._unrecorded.pop(execution, None)
        self.member_waits[key] = Duration(self.member_waits.get(key, 0) + now - since)
        self._has_changed = True

    # Detection

    def is_deadlocked(self, now: Instant) -> bool:
        """Check for a deadlock, report it, and return whether it ends the run."""
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
        """Write jobs that have waited for the rest of their pods into the journal."""
        for execution in [job for job in self._unrecorded if self._partial_since[job] < now]:
            del self._unrecorded[execution]
            has_node = [rank for rank, number in enumerate(execution.machine_ids) if number is not None]
            pods = format_intervals(mask_of(has_node))
            self._world.journal.append(
                now, "wait", job=execution.job.key, pods=pods, since=self._partial_since[execution]
            )

    def _find_deadlocked(self) -> list[JobExecution]:
        """Return the deadlocked jobs; a job that has lost a node is left out, since it will be aborted."""
        executions = [execution for execution in self._partial_since if not execution.has_lost_node]
        gangs = []
        for execution in executions:
            nodes = [node for node in execution.nodes if node is not None]
            gangs.append(PartialGang(execution.demand, nodes, len(execution.keys) - len(nodes)))
        return [executions[number] for number in find_deadlocked(gangs, self._capacity_for_jobs())] if gangs else []

    def _capacity_for_jobs(self) -> dict[str, dict[str, int]]:
        """Return the resources that nodes offer to jobs: the allocatable ones less those of endless pods."""
        silent = self._world.heartbeats.silent
        capacities = {name: offer for name, offer in self._capacities.items() if name not in silent}
        for node, demand in self._endless_pods.values():
            if node in capacities:
                offer = capacities[node]
                capacities[node] = {name: amount - demand.get(name, 0) for name, amount in offer.items()}
        return capacities

    def _update_suspicion(self, stuck: Sequence[JobExecution], now: Instant) -> None:
        """Set the suspected deadlock; it keeps its start while all its jobs remain stuck."""
        before = self._suspicion
        if not stuck:
            self._suspicion = None
        elif before is not None and set(before.executions) <= set(stuck):
            self._suspicion = before._replace(executions=stuck)
        else:
            self._suspicion = Deadlock(stuck, now)
            # The appointment only makes the run check again at that time.
            self._world.agenda.book(Instant(now + ROLLBACK_TIME), Rank.WAKE, lambda _: None, is_routine=True)

    def _is_certain(self, deadlock: Deadlock, now: Instant) -> bool:
        """Return whether nothing can resolve the deadlock: no new nodes, preempting arrivals, or evicting programs."""
        agenda, lowest = self._world.agenda, min(execution.job.priority for execution in deadlock.executions)
        if agenda.has_rank(Rank.TIMELINE):
            return False
        if (lowest < self._highest_priority or self._has_objects) and agenda.has_rank(Rank.SUBMIT):
            return False
        is_at_once = lowest >= self._highest_priority and not self._has_evictors and not self._may_grow
        return is_at_once or now >= deadlock.since + ROLLBACK_TIME

    def _record_deadlock(self, deadlock: Deadlock, now: Instant) -> None:
        """Write a deadlock into the journal and the notes, each job once."""
        reported = self.deadlocked_jobs
        executions = [execution for execution in deadlock.executions if execution.job.key not in reported]
        for execution in executions:
            reported[execution.job.key] = None
            nodes = " ".join(_nodes_of(execution))
            self._world.journal.append(now, "deadlock", job=execution.job.key, nodes=nodes, since=deadlock.since)
        if executions:
            self._world.notes.add(
                _NOTE_WITHOUT_NODES if self._may_grow else _NOTE, example=str(deadlock), count=len(executions)
            )


def _any_ended(pods: Sequence[KubeObject]) -> bool:
    return any(is_being_deleted(pod) or pod["status"]["phase"] in TERMINAL_PHASES for pod in pods)


def _nodes_of(execution: JobExecution) -> list[str]:
    """Return the nodes of a job's bound pods, in the order of the platform."""
    pairs = zip(execution.machine_ids, execution.nodes, strict=True)
    numbered = {(-1 if number is None else number, node) for number, node in pairs if node is not None}
    return [node for _, node in sorted(numbered)]


def _describe(execution: JobExecution) -> str:
    nodes = _nodes_of(execution)
    bound_count = sum(node is not None for node in execution.nodes)
    node_text = ", ".join(nodes[:_MAX_NAMED]) + (", …" if len(nodes) > _MAX_NAMED else "")
    return f"{execution.job.key} has {bound_count} of its {len(execution.keys)} pods on {node_text}"
