"""Lets a policy schedule: it hears of pods and nodes through the store, and what it decides is done to the pods.

A job in the queue is one of two things. The pods of a workload's job share a course; they are gathered until the gang
is complete, and bound together in the store. Any other pod, made by a controller or by kubectl, is a job of one pod; it
is bound through the API, as by a scheduler outside. Both wait in the same queue.

Once per instant, after everything else that happens at it, the policy is asked to decide, and again only when its own
decisions made something end or arrive. Each decision is carried out, in the store and in the view, before the policy
goes on. Where nodes come, go, or change whom they take, what is free is worked out anew before the policy is asked.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from batkube.cluster import decisions
from batkube.cluster.client import Client
from batkube.cluster.decisions import Binding, Decision, Eviction, Rejection
from batkube.cluster.event_recorder import EventRecorder
from batkube.cluster.mapping import DEFAULT_SCHEDULER, NODE, POD, ResourceModel
from batkube.cluster.pods.accessors import finished_pods, is_finished
from batkube.cluster.pods.resources import demand_of, has_changed_spec
from batkube.cluster.store import ADDED, DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import START, Duration, Instant
from batkube.platforms.model import Machine
from batkube.policies.interface import Evict, Policy, Reject, Start, SwitchOff, SwitchOn, WakeAt
from batkube.policies.pod_scheduling.node_columns import NodeColumns
from batkube.policies.pod_scheduling.pod_jobs import (
    PodJob,
    PodSchedulingStatus,
    job_of_pod,
    key_of_pod_job,
    scheduling_status_of,
)
from batkube.policies.runtime.cluster_capacity import ClusterCapacity
from batkube.policies.runtime.guard import GuardedPolicy
from batkube.policies.runtime.policy_view import PolicyJob, PolicyView
from batkube.policies.runtime.power_requests import PowerRequests
from batkube.workloads.model import Job

if TYPE_CHECKING:
    from batkube.policies.pod_scheduling.framework import SchedulingFramework
    from batkube.policies.pod_scheduling.node_table import Mask

#: A policy that polls may wait long for its hour; one that polls this often for nothing waits for ever.
_IDLE_WAKES_MAX = 1_000_000
#: Far more than any queue is long; a policy that makes so many at one instant goes round in circles.
_DECISIONS_PER_INSTANT_MAX = 10_000_000


@dataclass(frozen=True, slots=True)
class PolicyChoice:
    """A policy that is to schedule, its randomness, and what it may know besides what the store shows."""

    policy: Policy
    rng: random.Random
    model: ResourceModel = ResourceModel.REQUESTS
    #: How long the jobs of courses take, for policies that plan and jobs without walltime.
    true_length: Callable[[Job], Duration] | None = None
    #: Those of the platform, for what their nodes do not tell.
    machines: Sequence[Machine] = ()
    #: Whether machines can be switched off.
    has_switches: bool = False


class PolicyScheduler:
    """Connects one policy to the store."""

    def __init__(
        self,
        world: World,
        choice: PolicyChoice,
        client: Client | None = None,
        events: EventRecorder | None = None,
        scheduler_name: str = DEFAULT_SCHEDULER,
    ) -> None:
        """Pods of no course are scheduled if they ask for `scheduler_name`.

        That needs a `client` to bind them with, and `events` to tell of it.
        """
        self._policy = GuardedPolicy(choice.policy)
        self._rng = choice.rng
        self._name = scheduler_name
        self._store = world.store
        self._agenda = world.agenda
        self._executions = world.executions
        #: Jobs evicted during a call of the policy; it sees them as ended in the next.
        self._evicted: list[Job] = []
        #: The instants at which the policy will be asked; once each, however many ask for it.
        self._wake_ups: set[Instant] = set()
        #: How often in a row the policy was asked, with nothing running, and did nothing but ask to be woken.
        self._idle_wakes = 0
        self._decided_at = START
        self._decisions_now = 0
        #: None where machines cannot be switched off.
        self._power_requests = PowerRequests(world.store, world.agenda) if choice.has_switches else None
        #: None where pods of no course are nobody's business.
        self._framework: SchedulingFramework | None = None
        if client is None or events is None:
            self._columns = NodeColumns(world.store)
        else:
            # Imported only where it is needed: it brings numpy, which takes longer to load than a small run takes.
            from batkube.policies.pod_scheduling.framework import SchedulingFramework

            self._framework = SchedulingFramework(world, client, events)
            self._columns = self._framework.table
        self._cluster_capacity = ClusterCapacity(
            self._columns, choice.model, choice.machines, None if self._framework is None else self._accepting_nodes
        )
        #: What the policy sees.
        self.view = PolicyView(self._cluster_capacity, world.notes, choice.true_length)
        world.store.subscribe(POD, self._on_pods_changed, author=self)
        world.store.subscribe(NODE, self._on_nodes_changed)

    def assumed_nodes(self) -> dict[Key, str]:
        """Return which pods it takes to be on which nodes: those of the jobs that run, and those that others bound."""
        places = self._cluster_capacity.foreign_pod_nodes()
        for known in self.view.running:
            pods = zip(known.keys, known.nodes, strict=True)
            places |= {key: node for rank, (key, node) in enumerate(pods) if not known.lost_ranks >> rank & 1}
        return places

    # What it hears

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        """Take note of what became of pods. Those of jobs and others never change in one batch."""
        is_of_course = self._executions.find(batch.keys[0]) is not None
        if self._handle_execution_pods(batch) if is_of_course else self._handle_single_pods(batch):
            self.wake_at(now)

    def _on_nodes_changed(self, batch: Batch, now: Instant) -> None:
        if self._cluster_capacity.is_stale and (self.view.queue or self._policy.watches_machines):
            self.wake_at(now)

    def _handle_execution_pods(self, batch: Batch) -> bool:
        """Gather new pods into jobs, and let go of those that ended or are gone; True when some job came or went."""
        keys = batch.keys
        if batch.type is ADDED:
            return self._gather_pods(keys)
        if batch.type is not DELETED:
            over = finished_pods(batch.objects, batch.status)
            if not over:
                return False
            if len(over) < len(keys):
                keys = [key for key, pod in zip(keys, batch.objects, strict=True) if is_finished(pod)]
        has_ended = False
        for course, _, ranks in self._executions.group_by_execution(keys):
            known = self.view.tracked.get(course.job.key)
            if known is None or known.keys is not course.keys:
                continue
            if known.mark_lost(ranks):
                self.view.end(known)
                has_ended = True
            else:
                self.view.queue.remove(known.job)
        return has_ended

    def _gather_pods(self, keys: Sequence[Key]) -> bool:
        """Take up new pods; True when some job is complete."""
        is_complete = False
        for course, _, ranks in self._executions.group_by_execution(keys):
            known = self.view.track(course.job, course.keys)
            known.seen_count += len(ranks)
            if known.seen_count == len(course.keys):
                self.view.enqueue(course.job)
                is_complete = True
        return is_complete

    def _handle_single_pods(self, batch: Batch) -> bool:
        """Take note of pods that are jobs of their own, or that somebody else has bound; True if there is news."""
        if self._framework is None and batch.type is DELETED and not self._cluster_capacity.has_foreign_pods:
            return False
        is_news = False
        for change in batch.changes():
            standing = scheduling_status_of(change.object, batch.type, self._name)
            is_news |= self._handle_pod(change.key, change.object, standing)
        return is_news

    def _handle_pod(self, key: Key, pod: KubeObject, standing: PodSchedulingStatus) -> bool:
        known = self.view.tracked.get(key_of_pod_job(key))
        if standing is PodSchedulingStatus.PENDING:
            return self._framework is not None and self._handle_pending_pod(key, pod, known)
        if standing is PodSchedulingStatus.FINISHED:
            if known is not None:
                self.view.end(known)
            return self._cluster_capacity.remove_foreign_pod(key) or known is not None
        if known is not None and known.nodes:
            if not has_changed_spec(pod) or known.job.requests == job_of_pod(key, pod).requests:
                return False
            self.view.end(known)  # What it holds now is not what the policy gave it: so it counts as a stranger.
        elif known is not None:
            self.view.forget(known)
        is_stranger = standing is PodSchedulingStatus.BOUND and self._cluster_capacity.add_foreign_pod(key, pod)
        return is_stranger or known is not None

    def _handle_pending_pod(self, key: Key, pod: KubeObject, known: PolicyJob | None) -> bool:
        """Put a pod into the queue, unless it is known with the same wishes."""
        job = job_of_pod(key, pod)
        if known is not None:
            if known.job == job:
                return False
            self.view.forget(known)
        self.view.track(job, [key])
        self.view.enqueue(job)
        return True

    def _accepting_nodes(self, job: Job) -> Mask | None:
        """Return the nodes that take a job at all, None for all; the pods of a gang have the same rules."""
        known = self.view.tracked.get(job.key)
        pod = None if known is None else self._store.get(POD, known.keys[0])
        return None if pod is None or self._framework is None else self._framework.accepting_nodes(pod)

    # What it does

    def wake_at(self, at: Instant) -> None:
        """Ask the policy at this instant, whatever happens until then."""
        if at not in self._wake_ups:
            self._wake_ups.add(at)
            self._agenda.book(at, Rank.WAKE, self._wake)

    def _wake(self, now: Instant) -> None:
        self._wake_ups.discard(now)
        self.view.now = now
        if self._columns.count:
            machines = self.view.refresh_nodes()
            if machines is not None:
                self._policy.begin(machines, self._rng)
            self._run_policy(now)
        if self._framework is not None:
            self._record_pending_reasons(self._framework, now)

    def _run_policy(self, now: Instant) -> None:
        """Ask the policy, and carry out what it says."""
        view = self.view
        is_idle = not (view.arrived or view.ended or view.running)
        for decision in self._policy.decisions(view):
            is_idle &= isinstance(decision, WakeAt)
            self._apply(decision, now)
            self._count_decision(now)
        self._idle_wakes = self._idle_wakes + 1 if is_idle else 0
        if self._idle_wakes > _IDLE_WAKES_MAX:
            raise self._policy.error(
                f"was woken {_IDLE_WAKES_MAX:,} times in a row with nothing running, and started nothing; "
                "instants are nanoseconds: a minute is seconds(60)"
            )
        view.arrived.clear()
        view.ended, self._evicted = self._evicted, []
        if view.ended:
            self.wake_at(now)

    def _count_decision(self, now: Instant) -> None:
        """Stop a policy that starts and evicts for ever without letting time pass."""
        self._decisions_now = self._decisions_now + 1 if now == self._decided_at else 1
        self._decided_at = now
        if self._decisions_now > _DECISIONS_PER_INSTANT_MAX:
            raise self._policy.error(f"made {_DECISIONS_PER_INSTANT_MAX:,} decisions at one instant")

    def _apply(self, decision: Decision, now: Instant) -> None:
        match decision:
            case Start():
                self._start(decision, now)
            case Evict():
                self._evict(decision.job, now)
            case Reject():
                self._reject(decision, now)
            case WakeAt():
                self.wake_at(decision.at)
            case SwitchOff() | SwitchOn():
                self._switch(decision, now)

    def _start(self, start: Start, now: Instant) -> None:
        known = self.view.tracked.get(start.job.key)
        if known is None or not self.view.queue.remove(start.job):
            raise self._policy.error(f"started job {start.job.key}, which is not waiting")
        nodes = self._nodes_of(start)
        try:
            self.view.start(known, start.placement, nodes)
        except TypeError as error:
            raise self._policy.error(f"gave a placement of another resource model: {error}") from error
        if not isinstance(known.job, PodJob):
            binding = Binding(known.keys, nodes)
            decisions.bind(self._store, binding, now, author=self, in_full=self._framework is not None)
        elif not self._bind_pod(known.job.pod, nodes[0], now):
            # It stays out of the queue until somebody changes it: the server would refuse again.
            self.view.stop(known)

    def _switch(self, decision: SwitchOff | SwitchOn, now: Instant) -> None:
        if self._power_requests is None:
            raise self._policy.error("switches machines, and the run counts no energy: add --energy")
        nodes = [name for number in decision.machine_ids if (name := self._columns.names[number]) is not None]
        busy = {node for known in self.view.running for node in known.nodes}
        if isinstance(decision, SwitchOff) and (held := [name for name in nodes if name in busy]):
            raise self._policy.error(f"switched off {held[0]}, on which a job runs")
        self._power_requests.request(nodes, isinstance(decision, SwitchOn), now)

    def _nodes_of(self, start: Start) -> list[str]:
        """Return the node of each pod of a job that is to start."""
        names = self._columns.names
        nodes = [name for machine_id in self._policy.machine_ids(start) if (name := names[machine_id]) is not None]
        if len(nodes) < start.job.size:
            raise self._policy.error(f"started job {start.job.key} on machines that are gone")
        return nodes

    def _bind_pod(self, key: Key, node: str, now: Instant) -> bool:
        pod = self._store.get(POD, key)
        return self._framework is not None and pod is not None and self._framework.bind(key, pod, node, now)

    def _evict(self, job: Job, now: Instant) -> None:
        known = self.view.tracked.get(job.key)
        if known is None or not known.nodes:
            raise self._policy.error(f"evicted job {job.key}, which is not running")
        if isinstance(known.job, PodJob) and self._framework is not None:
            # It runs until its grace period is over; then its room is free.
            self._framework.evict(known.job.pod, now)
            return
        self.view.forget(known)
        self._evicted.append(known.job)
        decisions.evict(self._store, Eviction(known.keys), now, author=self)

    def _reject(self, reject: Reject, now: Instant) -> None:
        known = self.view.tracked.get(reject.job.key)
        if known is None or known.nodes:
            raise self._policy.error(f"rejected job {reject.job.key}, which is not waiting")
        self.view.forget(known)
        if isinstance(known.job, PodJob) and self._framework is not None:
            self._framework.reject(known.job.pod, reject.reason, now)
        else:
            decisions.reject(self._store, Rejection(known.keys, reject.reason), now, author=self)

    def _record_pending_reasons(self, framework: SchedulingFramework, now: Instant) -> None:
        """Tell the pods that wait why they do, as far as one can know; those of one shape wait for one reason."""
        reasons: dict[tuple[object, ...], str] = {}
        for job in self.view.queue:
            pod = self._store.get(POD, job.pod) if isinstance(job, PodJob) else None
            if pod is None or not isinstance(job, PodJob):
                continue
            if job.shape not in reasons:
                result = framework.filter(pod, demand_of(pod))
                waits = f"the policy {self._policy.name} has not started it yet"
                reasons[job.shape] = waits if result.fits.any() else framework.fit_error(result.counts)
            framework.mark_unschedulable(job.pod, reasons[job.shape], now)
