"""Connects a policy to the store: it is notified of pods and nodes, and its decisions are applied.

The queue has two kinds of jobs. The pods of a workload job share an execution; they are gathered
until the gang is complete, and bound together in the store. Any other pod, created by a controller
or by kubectl, is a job of one pod; it is bound through the API, as by an external scheduler.

The policy decides once per instant, after all other events of that instant, and again only if its
own decisions ended or created jobs. Each decision is applied, in the store and in the view, before
the policy resumes. If nodes are added, removed, or change which pods they accept, free capacity is
recomputed before the policy is called.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from batkube.cluster.client import BulkClient
from batkube.cluster.decisions import Binding, Decision, Eviction, Rejection, scheduler_rejection_status
from batkube.cluster.mapping import DEFAULT_SCHEDULER, NODE, POD, ResourceModel
from batkube.cluster.pods.accessors import TERMINAL_PHASES, finished_pods, is_finished
from batkube.cluster.pods.pod_groups import without_none
from batkube.cluster.pods.resources import demand_of, has_changed_spec
from batkube.cluster.store import ADDED, DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import START, Duration, Instant
from batkube.platforms.model import Machine
from batkube.policies.interface import Evict, Policy, Reject, Start, SwitchOff, SwitchOn, Wait, WakeAt
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
from batkube.policies.runtime.reason_recorder import ReasonRecorder
from batkube.workloads.model import Job

if TYPE_CHECKING:
    from batkube.policies.pod_scheduling.framework import SchedulingFramework
    from batkube.policies.pod_scheduling.node_table import Mask

#: The number of consecutive wake-ups without effect after which a polling policy counts as stuck.
_IDLE_WAKES_MAX = 1_000_000
#: Decisions that change nothing by themselves.
_WITHOUT_EFFECT = (WakeAt, Wait)
#: Far more than the length of any queue. A policy with more decisions at one instant is in a loop.
_DECISIONS_PER_INSTANT_MAX = 10_000_000


@dataclass(frozen=True, slots=True)
class PolicyChoice:
    """A policy, its random stream, and what it may know besides the content of the store."""

    policy: Policy
    rng: random.Random
    model: ResourceModel = ResourceModel.REQUESTS
    #: Returns the true run time of a workload job, for estimates of jobs without walltime.
    true_run_time: Callable[[Job], Duration] | None = None
    #: The machines of the platform, for attributes that nodes do not have.
    machines: Sequence[Machine] = ()
    #: Whether machines can be switched off.
    has_switches: bool = False


class PolicyScheduler:
    """Connects one policy to the store."""

    def __init__(
        self,
        world: World,
        choice: PolicyChoice,
        client: BulkClient,
        framework: SchedulingFramework | None = None,
        scheduler_name: str = DEFAULT_SCHEDULER,
    ) -> None:
        """Write decisions about workload jobs through `client`, and those about other pods through `framework`.

        Other pods are scheduled if they request `scheduler_name`, and not at all without a framework.
        """
        self._policy = GuardedPolicy(choice.policy)
        self._rng = choice.rng
        self._name = scheduler_name
        self._store = world.store
        self._client = client
        self._agenda = world.agenda
        self._executions = world.executions
        #: Jobs evicted during a call of the policy; `view.ended` of the next call has them.
        self._evicted: list[Job] = []
        #: The instants at which a call of the policy is booked.
        self._wake_ups: set[Instant] = set()
        #: The number of consecutive calls with nothing running in which the policy only booked wake-ups.
        self._idle_wakes = 0
        self._decided_at = START
        self._decisions_now = 0
        #: None if machines cannot be switched off.
        self._power_requests = PowerRequests(world, client) if choice.has_switches else None
        self._framework = framework
        self._columns = NodeColumns(world.store) if framework is None else framework.table
        self._cluster_capacity = ClusterCapacity(
            self._columns, choice.model, choice.machines, None if framework is None else self._accepting_nodes
        )
        is_explained = world.reasons.is_recorded
        self.view = PolicyView(self._cluster_capacity, world.notes, choice.true_run_time, is_explained=is_explained)
        #: None if reasons are not recorded.
        self._recorder = (
            ReasonRecorder(world.reasons, self._columns.names, world.machines.ids) if is_explained else None
        )
        world.store.subscribe(POD, self._on_pods_changed)
        world.store.subscribe(NODE, self._on_nodes_changed)

    def assumed_nodes(self) -> dict[Key, str]:
        """Return the node of each pod that runs according to the policy's view, its own and foreign ones."""
        nodes = self._cluster_capacity.foreign_pod_nodes()
        for policy_job in self.view.running:
            pods = zip(policy_job.keys, policy_job.nodes, strict=True)
            nodes |= {key: node for rank, (key, node) in enumerate(pods) if not policy_job.lost_ranks >> rank & 1}
        return nodes

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        """Handle changes of pods. One batch has either pods of executions or other pods."""
        if batch.status is not None and batch.status["phase"] not in TERMINAL_PHASES:
            return
        has_execution = self._executions.find(batch.keys[0]) is not None
        if self._handle_execution_pods(batch, now) if has_execution else self._handle_single_pods(batch, now):
            self.wake_at(now)

    def _on_nodes_changed(self, batch: Batch, now: Instant) -> None:
        if self._cluster_capacity.is_stale and (self.view.queue or self._policy.watches_machines):
            self.wake_at(now)

    def _handle_execution_pods(self, batch: Batch, now: Instant) -> bool:
        """Gather new pods into jobs and remove ended ones; return whether a job was completed or ended."""
        keys = batch.keys
        if batch.type is ADDED:
            return self._gather_pods(keys)
        if isinstance(batch.decision, Binding):
            return False
        if batch.type is not DELETED:
            finished = finished_pods(batch.objects, batch.status)
            if not finished:
                return False
            if len(finished) < len(keys):
                keys = [key for key, pod in zip(keys, batch.objects, strict=True) if is_finished(pod)]
        has_ended = False
        for execution, _, ranks in self._executions.group_by_execution(keys):
            policy_job = self.view.tracked.get(execution.job.key)
            if policy_job is None or policy_job.keys is not execution.keys:
                continue
            if policy_job.mark_lost(ranks):
                self.view.end(policy_job, now)
                has_ended = True
            else:
                self.view.queue.remove(policy_job.job)
        return has_ended

    def _gather_pods(self, keys: Sequence[Key]) -> bool:
        """Count new pods; return whether all pods of a job now exist."""
        is_complete = False
        for execution, _, ranks in self._executions.group_by_execution(keys):
            policy_job = self.view.track(execution.job, execution.keys)
            policy_job.pod_count += len(ranks)
            if policy_job.pod_count == len(execution.keys):
                self.view.enqueue(execution.job)
                is_complete = True
        return is_complete

    def _handle_single_pods(self, batch: Batch, now: Instant) -> bool:
        """Handle pods that are single-pod jobs, or were bound by others; return whether anything changed."""
        if self._framework is None and batch.type is DELETED and not self._cluster_capacity.has_foreign_pods:
            return False
        has_changed = False
        for change in batch.changes():
            status = scheduling_status_of(change.object, batch.type, self._name)
            has_changed |= self._handle_pod(change.key, change.object, status, now)
        return has_changed

    def _handle_pod(self, key: Key, pod: KubeObject, status: PodSchedulingStatus, now: Instant) -> bool:
        policy_job = self.view.tracked.get(key_of_pod_job(key))
        if status is PodSchedulingStatus.PENDING:
            return self._framework is not None and self._handle_pending_pod(key, pod, policy_job)
        if status is PodSchedulingStatus.FINISHED:
            if policy_job is not None:
                self.view.end(policy_job, now)
            return self._cluster_capacity.remove_foreign_pod(key) or policy_job is not None
        if policy_job is not None and policy_job.nodes:
            if not has_changed_spec(pod) or policy_job.job.requests == job_of_pod(key, pod).requests:
                return False
            # It holds other resources than the policy gave it: now it is foreign.
            self.view.end(policy_job, now)
        elif policy_job is not None:
            self.view.forget(policy_job)
        is_foreign = status is PodSchedulingStatus.BOUND and self._cluster_capacity.add_foreign_pod(key, pod)
        return is_foreign or policy_job is not None

    def _handle_pending_pod(self, key: Key, pod: KubeObject, policy_job: PolicyJob | None) -> bool:
        """Add a pod to the queue, unless it is there with the same requests and constraints."""
        job = job_of_pod(key, pod)
        if policy_job is not None:
            if policy_job.job == job:
                return False
            self.view.forget(policy_job)
        self.view.track(job, [key])
        self.view.enqueue(job)
        return True

    def _accepting_nodes(self, job: Job) -> Mask | None:
        """Return the nodes that accept a job, or None for all. The pods of a gang have equal constraints."""
        policy_job = self.view.tracked.get(job.key)
        pod = None if policy_job is None else self._store.get(POD, policy_job.keys[0])
        return None if pod is None or self._framework is None else self._framework.accepting_nodes(pod)

    def wake_at(self, at: Instant) -> None:
        """Book a call of the policy at an instant."""
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
        """Call the policy and apply its decisions."""
        view = self.view
        is_idle = not (view.arrived or view.ended or view.running)
        for decision in self._policy.decisions(view):
            is_idle &= isinstance(decision, _WITHOUT_EFFECT)
            self._apply(decision, now)
            if self._recorder is not None and isinstance(decision, Start | Evict | Wait):
                self._recorder.record(decision, now)
            self._count_decision(now)
        self._idle_wakes = self._idle_wakes + 1 if is_idle else 0
        if self._idle_wakes > _IDLE_WAKES_MAX:
            raise self._policy.error(
                f"was woken {_IDLE_WAKES_MAX:,} times in a row with nothing running, and started nothing; "
                "note that instants are nanoseconds: a minute is seconds(60)"
            )
        view.clear_changes(self._evicted)
        self._evicted = []
        if view.ended:
            self.wake_at(now)

    def _count_decision(self, now: Instant) -> None:
        """Stop a policy that starts and evicts without end at one instant."""
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
        policy_job = self.view.tracked.get(start.job.key)
        if policy_job is None or not self.view.queue.remove(start.job):
            raise self._policy.error(f"started job {start.job.key}, which is not waiting")
        nodes = self._nodes_of(start)
        try:
            self.view.start(policy_job, start.placement, nodes)
        except TypeError as error:
            raise self._policy.error(f"used a placement of another resource model: {error}") from error
        if not isinstance(policy_job.job, PodJob):
            self._client.bind(Binding(policy_job.keys, nodes), now)
        elif not self._bind_pod(policy_job.job.pod, nodes[0], now):
            # Not queued again until it changes: the server would reject the same binding again.
            self.view.stop(policy_job)

    def _switch(self, decision: SwitchOff | SwitchOn, now: Instant) -> None:
        if self._power_requests is None:
            raise self._policy.error("switches machines, but the run has no energy accounting: add --energy")
        nodes = [name for number in decision.machine_ids if (name := self._columns.names[number]) is not None]
        nodes_in_use = {node for policy_job in self.view.running for node in policy_job.nodes}
        if isinstance(decision, SwitchOff) and (busy_nodes := [name for name in nodes if name in nodes_in_use]):
            raise self._policy.error(f"switched off {busy_nodes[0]}, on which a job runs")
        self._power_requests.request(nodes, isinstance(decision, SwitchOn), now)

    def _nodes_of(self, start: Start) -> Sequence[str]:
        """Return the node of each pod of a job that is about to start."""
        names = self._columns.names
        nodes = without_none(list(map(names.__getitem__, self._policy.machine_ids(start))))
        if len(nodes) < start.job.size:
            raise self._policy.error(f"started job {start.job.key} on machines that no longer exist")
        return nodes

    def _bind_pod(self, key: Key, node: str, now: Instant) -> bool:
        pod = self._store.get(POD, key)
        return self._framework is not None and pod is not None and self._framework.bind(key, pod, node, now)

    def _evict(self, job: Job, now: Instant) -> None:
        policy_job = self.view.tracked.get(job.key)
        if policy_job is None or not policy_job.nodes:
            raise self._policy.error(f"evicted job {job.key}, which is not running")
        if isinstance(policy_job.job, PodJob) and self._framework is not None:
            # It runs until its grace period is over; then its resources are free.
            self._framework.evict(policy_job.job.pod, now)
            return
        self.view.release(policy_job, now)
        self._evicted.append(policy_job.job)
        # At once, as Batsim kills jobs. An eviction through the API has a grace period instead.
        self._client.delete_all(POD, policy_job.keys, now, decision=Eviction(policy_job.keys))

    def _reject(self, reject: Reject, now: Instant) -> None:
        policy_job = self.view.tracked.get(reject.job.key)
        if policy_job is None or policy_job.nodes:
            raise self._policy.error(f"rejected job {reject.job.key}, which is not waiting")
        self.view.forget(policy_job)
        if isinstance(policy_job.job, PodJob) and self._framework is not None:
            self._framework.reject(policy_job.job.pod, reject.reason, now)
        else:
            status = scheduler_rejection_status(reject.reason)
            self._client.set_statuses(POD, policy_job.keys, status, now, Rejection(policy_job.keys, reject.reason))

    def _record_pending_reasons(self, framework: SchedulingFramework, now: Instant) -> None:
        """Record why each pending pod was not started. Pods of equal shape have the same reason."""
        reasons: dict[tuple[object, ...], str] = {}
        for job in self.view.queue:
            pod = self._store.get(POD, job.pod) if isinstance(job, PodJob) else None
            if pod is None or not isinstance(job, PodJob):
                continue
            if job.shape not in reasons:
                result = framework.filter(pod, demand_of(pod))
                reason = f"the policy {self._policy.name} has not started it yet"
                reasons[job.shape] = reason if result.fits.any() else framework.fit_error(result.counts)
            framework.mark_unschedulable(job.pod, reasons[job.shape], now)
