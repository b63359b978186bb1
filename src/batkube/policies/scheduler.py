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
from batkube.cluster.pods import finished_among, is_finished
from batkube.cluster.resources import demand_of, may_be_resized
from batkube.cluster.store import ADDED, DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import START, Duration, Instant
from batkube.platforms.model import Machine
from batkube.policies.cluster_room import ClusterRoom
from batkube.policies.guard import GuardedPolicy
from batkube.policies.interface import Evict, Policy, Reject, Start, SwitchOff, SwitchOn, WakeAt
from batkube.policies.node_columns import NodeColumns
from batkube.policies.pod_jobs import PodJob, PodStanding, job_of_pod, key_of_pod_job, standing_of
from batkube.policies.policy_view import KnownJob, PolicyView
from batkube.policies.power_requests import PowerRequests
from batkube.workloads.model import Job

if TYPE_CHECKING:
    from batkube.policies.node_table import Mask
    from batkube.policies.scheduling_framework import SchedulingFramework

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
        self._courses = world.courses
        #: Jobs evicted during a call of the policy; it sees them as ended in the next.
        self._evicted: list[Job] = []
        #: The instants at which the policy will be asked; once each, however many ask for it.
        self._wakes: set[Instant] = set()
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
            from batkube.policies.scheduling_framework import SchedulingFramework

            self._framework = SchedulingFramework(world, client, events)
            self._columns = self._framework.table
        self._cluster_room = ClusterRoom(
            self._columns, choice.model, choice.machines, None if self._framework is None else self._accepting
        )
        #: What the policy sees.
        self.view = PolicyView(self._cluster_room, world.notes, choice.true_length)
        world.store.listen(POD, self._hear, author=self)
        world.store.listen(NODE, self._hear_nodes)

    def believed_places(self) -> dict[Key, str]:
        """Return which pods it takes to be on which nodes: those of the jobs that run, and those that others bound."""
        places = self._cluster_room.stranger_places()
        for known in self.view.running:
            pods = zip(known.keys, known.nodes, strict=True)
            places |= {key: node for rank, (key, node) in enumerate(pods) if not known.lost >> rank & 1}
        return places

    # What it hears

    def _hear(self, batch: Batch, now: Instant) -> None:
        """Take note of what became of pods. Those of jobs and others never change in one batch."""
        is_of_course = self._courses.place(batch.keys[0]) is not None
        if self._hear_of_courses(batch) if is_of_course else self._hear_of_pods(batch):
            self.wake_at(now)

    def _hear_nodes(self, batch: Batch, now: Instant) -> None:
        if self._cluster_room.is_stale and (self.view.queue or self._policy.watches_machines):
            self.wake_at(now)

    def _hear_of_courses(self, batch: Batch) -> bool:
        """Gather new pods into jobs, and let go of those that ended or are gone; True when some job came or went."""
        keys = batch.keys
        if batch.type is ADDED:
            return self._gather(keys)
        if batch.type is not DELETED:
            over = finished_among(batch.objects, batch.status)
            if not over:
                return False
            if len(over) < len(keys):
                keys = [key for key, pod in zip(keys, batch.objects, strict=True) if is_finished(pod)]
        has_ended = False
        for course, _, ranks in self._courses.among(keys):
            known = self.view.known.get(course.job.key)
            if known is None or known.keys is not course.keys:
                continue
            if known.loses(ranks):
                self.view.end(known)
                has_ended = True
            else:
                self.view.queue.remove(known.job)
        return has_ended

    def _gather(self, keys: Sequence[Key]) -> bool:
        """Take up new pods; True when some job is complete."""
        is_complete = False
        for course, _, ranks in self._courses.among(keys):
            known = self.view.meet(course.job, course.keys)
            known.seen += len(ranks)
            if known.seen == len(course.keys):
                self.view.enqueue(course.job)
                is_complete = True
        return is_complete

    def _hear_of_pods(self, batch: Batch) -> bool:
        """Take note of pods that are jobs of their own, or that somebody else has bound; True if there is news."""
        if self._framework is None and batch.type is DELETED and not self._cluster_room.has_strangers:
            return False
        is_news = False
        for change in batch.changes():
            standing = standing_of(change.object, batch.type, self._name)
            is_news |= self._hear_of_pod(change.key, change.object, standing)
        return is_news

    def _hear_of_pod(self, key: Key, pod: KubeObject, standing: PodStanding) -> bool:
        known = self.view.known.get(key_of_pod_job(key))
        if standing is PodStanding.WAITS:
            return self._framework is not None and self._hear_of_waiting(key, pod, known)
        if standing is PodStanding.OVER:
            if known is not None:
                self.view.end(known)
            return self._cluster_room.vacate(key) or known is not None
        if known is not None and known.nodes:
            if not may_be_resized(pod) or known.job.requests == job_of_pod(key, pod).requests:
                return False
            self.view.end(known)  # What it holds now is not what the policy gave it: so it counts as a stranger.
        elif known is not None:
            self.view.forget(known)
        is_stranger = standing is PodStanding.BOUND and self._cluster_room.occupy(key, pod)
        return is_stranger or known is not None

    def _hear_of_waiting(self, key: Key, pod: KubeObject, known: KnownJob | None) -> bool:
        """Put a pod into the queue, unless it is known with the same wishes."""
        job = job_of_pod(key, pod)
        if known is not None:
            if known.job == job:
                return False
            self.view.forget(known)
        self.view.meet(job, [key])
        self.view.enqueue(job)
        return True

    def _accepting(self, job: Job) -> Mask | None:
        """Return the nodes that take a job at all, None for all; the pods of a gang have the same rules."""
        known = self.view.known.get(job.key)
        pod = None if known is None else self._store.get(POD, known.keys[0])
        return None if pod is None or self._framework is None else self._framework.acceptance(pod)

    # What it does

    def wake_at(self, at: Instant) -> None:
        """Ask the policy at this instant, whatever happens until then."""
        if at not in self._wakes:
            self._wakes.add(at)
            self._agenda.book(at, Rank.WAKE, self._wake)

    def _wake(self, now: Instant) -> None:
        self._wakes.discard(now)
        self.view.now = now
        if self._columns.count:
            machines = self.view.look_at_nodes()
            if machines is not None:
                self._policy.begin(machines, self._rng)
            self._ask(now)
        if self._framework is not None:
            self._explain(self._framework, now)

    def _ask(self, now: Instant) -> None:
        """Ask the policy, and carry out what it says."""
        view = self.view
        is_idle = not (view.arrived or view.ended or view.running)
        for decision in self._policy.decisions(view):
            is_idle &= isinstance(decision, WakeAt)
            self._carry_out(decision, now)
            self._count_decision(now)
        self._idle_wakes = self._idle_wakes + 1 if is_idle else 0
        if self._idle_wakes > _IDLE_WAKES_MAX:
            raise self._policy.failure(
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
            raise self._policy.failure(f"made {_DECISIONS_PER_INSTANT_MAX:,} decisions at one instant")

    def _carry_out(self, decision: Decision, now: Instant) -> None:
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
        known = self.view.known.get(start.job.key)
        if known is None or not self.view.queue.remove(start.job):
            raise self._policy.failure(f"started job {start.job.key}, which is not waiting")
        nodes = self._nodes_of(start)
        try:
            self.view.start(known, start.placement, nodes)
        except TypeError as error:
            raise self._policy.failure(f"gave a placement of another resource model: {error}") from error
        if not isinstance(known.job, PodJob):
            binding = Binding(known.keys, nodes)
            decisions.bind(self._store, binding, now, author=self, in_full=self._framework is not None)
        elif not self._bind_pod(known.job.pod, nodes[0], now):
            # It stays out of the queue until somebody changes it: the server would refuse again.
            self.view.stop(known)

    def _switch(self, decision: SwitchOff | SwitchOn, now: Instant) -> None:
        if self._power_requests is None:
            raise self._policy.failure("switches machines, and the run counts no energy: add --energy")
        nodes = [name for number in decision.machine_ids if (name := self._columns.names[number]) is not None]
        busy = {node for known in self.view.running for node in known.nodes}
        if isinstance(decision, SwitchOff) and (held := [name for name in nodes if name in busy]):
            raise self._policy.failure(f"switched off {held[0]}, on which a job runs")
        self._power_requests.ask(nodes, isinstance(decision, SwitchOn), now)

    def _nodes_of(self, start: Start) -> list[str]:
        """Return the node of each pod of a job that is to start."""
        names = self._columns.names
        nodes = [name for machine_id in self._policy.machine_ids(start) if (name := names[machine_id]) is not None]
        if len(nodes) < start.job.size:
            raise self._policy.failure(f"started job {start.job.key} on machines that are gone")
        return nodes

    def _bind_pod(self, key: Key, node: str, now: Instant) -> bool:
        pod = self._store.get(POD, key)
        return self._framework is not None and pod is not None and self._framework.bind(key, pod, node, now)

    def _evict(self, job: Job, now: Instant) -> None:
        known = self.view.known.get(job.key)
        if known is None or not known.nodes:
            raise self._policy.failure(f"evicted job {job.key}, which is not running")
        if isinstance(known.job, PodJob) and self._framework is not None:
            # It runs until its grace period is over; then its room is free.
            self._framework.evict(known.job.pod, now)
            return
        self.view.forget(known)
        self._evicted.append(known.job)
        decisions.evict(self._store, Eviction(known.keys), now, author=self)

    def _reject(self, reject: Reject, now: Instant) -> None:
        known = self.view.known.get(reject.job.key)
        if known is None or known.nodes:
            raise self._policy.failure(f"rejected job {reject.job.key}, which is not waiting")
        self.view.forget(known)
        if isinstance(known.job, PodJob) and self._framework is not None:
            self._framework.reject(known.job.pod, reject.reason, now)
        else:
            decisions.reject(self._store, Rejection(known.keys, reject.reason), now, author=self)

    def _explain(self, framework: SchedulingFramework, now: Instant) -> None:
        """Tell the pods that wait why they do, as far as one can know; those of one shape wait for one reason."""
        reasons: dict[tuple[object, ...], str] = {}
        for job in self.view.queue:
            pod = self._store.get(POD, job.pod) if isinstance(job, PodJob) else None
            if pod is None or not isinstance(job, PodJob):
                continue
            if job.shape not in reasons:
                result = framework.filter(pod, demand_of(pod))
                waits = f"the policy {self._policy.name} has not started it yet"
                reasons[job.shape] = waits if result.fits.any() else framework.why_not(result.counts)
            framework.set_aside(job.pod, reasons[job.shape], now)
