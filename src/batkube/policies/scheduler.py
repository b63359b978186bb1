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
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from batkube.cluster import decisions
from batkube.cluster.client import Client
from batkube.cluster.courses import Courses
from batkube.cluster.decisions import Binding, Decision, Eviction, Rejection
from batkube.cluster.event_recorder import EventRecorder
from batkube.cluster.mapping import DEFAULT_SCHEDULER, NODE, POD, ResourceModel
from batkube.cluster.pods import TERMINAL_PHASES
from batkube.cluster.resources import demand_of
from batkube.cluster.store import ADDED, DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.kernel.agenda import Rank
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import START, Duration, Instant
from batkube.platforms.model import Machine
from batkube.policies.grounds import Grounds
from batkube.policies.guard import GuardedPolicy
from batkube.policies.interface import Evict, Policy, Reject, Start, WakeAt
from batkube.policies.members import Member, RunningJob, insert, remove
from batkube.policies.node_columns import NodeColumns
from batkube.policies.pod_jobs import PodJob, Standing, job_of_pod, key_of_pod_job, standing_of
from batkube.policies.queue import JobQueue
from batkube.policies.rooms import Room
from batkube.workloads.model import Job

if TYPE_CHECKING:
    from batkube.policies.node_table import Mask
    from batkube.policies.pod_desk import PodDesk

#: A policy that polls may wait long for its hour; one that polls this often for nothing waits for ever.
_IDLE_WAKES_MAX = 1_000_000
#: Far more than any queue is long; a policy that makes so many at one instant goes round in circles.
_DECISIONS_PER_INSTANT_MAX = 10_000_000

PEEKED = FidelityNote("policy", "jobs without walltime were planned with their true run time, which no scheduler knows")


class PolicyScheduler:
    """Connects one policy to the store. It is also the policy's `View`."""

    #: What is free; as of the latest look at the nodes.
    free: Room

    def __init__(
        self,
        world: World,
        policy: Policy,
        rng: random.Random,
        *,
        model: ResourceModel,
        courses: Courses,
        true_length: Callable[[Job], Duration] | None = None,
        machines: Sequence[Machine] = (),
        client: Client | None = None,
        events: EventRecorder | None = None,
        names: Collection[str] = (DEFAULT_SCHEDULER,),
    ) -> None:
        """`machines` are those of the platform, for what their nodes do not tell.

        `true_length` tells how long the jobs of courses take. Pods of no course are scheduled if they ask for a
        scheduler of one of `names`, where there are a `client` to bind them with and `events` to tell of it.
        """
        self._policy = GuardedPolicy(policy)
        self._rng = rng
        self._store = store = world.store
        self._agenda = world.agenda
        self._courses = courses
        self._true_length = true_length
        self._notes = world.notes
        self._names = frozenset(names)
        self.now = START
        self.queue = JobQueue()
        self.running: list[RunningJob] = []
        self.arrived: list[Job] = []
        self.ended: list[Job] = []
        #: Every job that has pods alive, by the job's key.
        self._members: dict[str, Member] = {}
        #: Jobs evicted during a call of the policy; it sees them as ended in the next.
        self._evicted: list[Job] = []
        #: Jobs whose true length the policy was told for want of a walltime.
        self._peeked: set[str] = set()
        self._starts = 0
        #: The instants at which the policy will be asked; once each, however many ask for it.
        self._wakes: set[Instant] = set()
        #: How often in a row the policy was asked, with nothing running, and did nothing but ask to be woken.
        self._idle_wakes = 0
        self._decided_at = START
        self._decisions_now = 0
        self._desk: PodDesk | None = None
        if client is None or events is None:
            self._columns = NodeColumns(store)
        else:
            # Imported only where it is needed: it brings numpy, which takes longer to load than a small run takes.
            from batkube.policies.pod_desk import PodDesk

            self._desk = PodDesk(world, client, events)
            self._columns = self._desk.table
        self._grounds = Grounds(self._columns, model, machines, None if self._desk is None else self._accepting)
        store.listen(POD, self._hear, author=self)
        store.listen(NODE, self._hear_nodes)

    # The view

    @property
    def head(self) -> Job | None:
        """The job at the front of the queue, or None."""
        return self.queue.head

    def estimate(self, job: Job) -> Duration:
        """How long `job` will take at most, as far as a scheduler can know; noted where it cannot."""
        if job.walltime is None and not isinstance(job, PodJob):
            self._peek(job)
        return self._length(job)

    def _length(self, job: Job) -> Duration:
        if job.walltime is not None:
            return job.walltime
        if isinstance(job, PodJob):
            return job.length
        assert self._true_length is not None, "jobs come with somebody who knows their lengths"
        return self._true_length(job)

    def _peek(self, job: Job) -> None:
        if job.key not in self._peeked:
            self._peeked.add(job.key)
            self._notes.add(PEEKED, example=f"job {job.key}")

    # What it hears

    def _hear(self, batch: Batch, now: Instant) -> None:
        """Take note of what became of pods. Those of jobs and others never change in one batch."""
        is_of_course = self._courses.place(batch.keys[0]) is not None
        if self._hear_of_courses(batch) if is_of_course else self._hear_of_pods(batch):
            self._book_wake(now)

    def _hear_nodes(self, batch: Batch, now: Instant) -> None:
        if self._grounds.is_stale and self.queue:
            self._book_wake(now)

    def _hear_of_courses(self, batch: Batch) -> bool:
        """Gather new pods into jobs, and let go of those that ended or are gone; True when some job came or went."""
        keys = batch.keys
        if batch.type is ADDED:
            return self._gather(keys)
        if batch.type is not DELETED:
            over = [
                key for key, pod in zip(keys, batch.objects, strict=True) if pod["status"]["phase"] in TERMINAL_PHASES
            ]
            if not over:
                return False
            keys = keys if len(over) == len(keys) else over
        has_ended = False
        for course, _, ranks in self._courses.among(keys):
            member = self._members.get(course.job.key)
            if member is not None and member.keys is course.keys and self._has_lost_all(member, ranks):
                self._end(member)
                has_ended = True
        return has_ended

    def _gather(self, keys: Sequence[Key]) -> bool:
        """Take up new pods; True when some job is complete."""
        complete = False
        for course, _, ranks in self._courses.among(keys):
            job = course.job
            member = self._members.get(job.key)
            if member is None:
                member = self._members[job.key] = Member(job, course.keys)
            member.seen += len(ranks)
            if member.seen == job.size:
                self._join(job)
                complete = True
        return complete

    def _has_lost_all(self, member: Member, ranks: Sequence[int]) -> bool:
        """Take note that pods of a job ended or are gone; a job that waited for its start cannot start without them."""
        if len(ranks) == len(member.keys):
            return True
        member.lost.update(ranks)
        self.queue.remove(member.job)
        return len(member.lost) == len(member.keys)

    def _hear_of_pods(self, batch: Batch) -> bool:
        """Take note of pods that are jobs of their own, or that somebody else has bound; True if there is news."""
        if self._desk is None and not self._grounds.has_strangers and batch.type is DELETED:
            return False
        is_news = False
        for change in batch.changes():
            standing = standing_of(change.object, batch.type, self._names)
            is_news |= self._take_note(change.key, change.object, standing)
        return is_news

    def _take_note(self, key: Key, pod: KubeObject, standing: Standing) -> bool:
        member = self._members.get(key_of_pod_job(key))
        if standing is Standing.WAITS:
            return self._desk is not None and self._hear_of_waiting(self._desk, key, pod, member)
        if self._desk is not None:
            self._desk.waiting.pop(key, None)
        if standing is Standing.OVER:
            if member is not None:
                self._end(member)
            return self._grounds.vacate(key) or member is not None
        if member is not None and member.run is None:
            self._forget(member)
            member = None
        return standing is Standing.BOUND and member is None and self._grounds.occupy(key, pod)

    def _hear_of_waiting(self, desk: PodDesk, key: Key, pod: KubeObject, member: Member | None) -> bool:
        """Put a pod into the queue, unless it is known with the same wishes."""
        job = job_of_pod(key, pod)
        if member is not None:
            if member.job == job:
                return False
            self._forget(member)
        desk.waiting[key] = ""
        self._members[job.key] = Member(job, [key])
        self._join(job)
        return True

    def _join(self, job: Job) -> None:
        self.queue.push(job)
        self.arrived.append(job)

    def _end(self, member: Member) -> None:
        self._forget(member)
        self.ended.append(member.job)

    def _forget(self, member: Member) -> None:
        """Take a member out of everything, and its placement back."""
        del self._members[member.job.key]
        if member.run is None:
            self.queue.remove(member.job)
        else:
            self._clear(member.run)

    def _clear(self, run: RunningJob) -> None:
        remove(self.running, run)
        if not self._grounds.is_stale:
            self.free = self.free + run.placement

    # The nodes

    def _accepting(self, job: Job) -> Mask | None:
        """Return the nodes that take a job at all; the pods of a gang have the same rules."""
        member = self._members.get(job.key)
        pod = None if member is None else self._store.get(POD, member.keys[0])
        return None if pod is None or self._desk is None else self._desk.acceptance(pod)

    def _look_at_nodes(self) -> None:
        """Work out what is free, and let the policy begin anew, if nodes have changed."""
        if not self._grounds.is_stale:
            return
        machines, self.free = self._grounds.survey()
        for run in self.running:
            columns = [self._columns.column_of_node(name) for name in run.nodes]
            run.placement = self.free.taken_by(run.job, [column for column in columns if column is not None])
            self.free = self.free - run.placement
        self._policy.begin(machines, self._rng)
        self.arrived = list(self.queue)

    # What it does

    def _book_wake(self, at: Instant) -> None:
        if at not in self._wakes:
            self._wakes.add(at)
            self._agenda.book(at, Rank.WAKE, self._wake)

    def _wake(self, now: Instant) -> None:
        self._wakes.discard(now)
        self.now = now
        if self._columns.count:
            self._look_at_nodes()
            self._ask(now)
        self._explain(now)

    def _ask(self, now: Instant) -> None:
        """Ask the policy, and carry out what it says."""
        is_idle = not (self.arrived or self.ended or self.running)
        for decision in self._policy.decisions(self):
            is_idle &= isinstance(decision, WakeAt)
            self._carry_out(decision, now)
            self._count_decision(now)
        self._idle_wakes = self._idle_wakes + 1 if is_idle else 0
        if self._idle_wakes > _IDLE_WAKES_MAX:
            raise self._policy.failure(
                f"was woken {_IDLE_WAKES_MAX:,} times in a row with nothing running, and started nothing; "
                "instants are nanoseconds: a minute is seconds(60)"
            )
        self.arrived.clear()
        self.ended, self._evicted = self._evicted, []
        if self.ended:
            self._book_wake(now)

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
                self._evict(decision, now)
            case Reject():
                self._reject(decision, now)
            case WakeAt():
                self._book_wake(decision.at)

    def _start(self, start: Start, now: Instant) -> None:
        member = self._members.get(start.job.key)
        if member is None or not self.queue.remove(start.job):
            raise self._policy.failure(f"started job {start.job.key}, which is not waiting")
        job, nodes = member.job, self._nodes_of(start)
        peek = None if job.walltime is not None or isinstance(job, PodJob) else self._peek
        run = member.run = RunningJob(start, nodes, now, Instant(now + self._length(job)), self._starts, peek)
        self._starts += 1
        self._charge(run)
        insert(self.running, run)
        if not isinstance(job, PodJob):
            binding = Binding(member.keys, nodes)
            decisions.bind(self._store, binding, now, author=self, in_full=self._desk is not None)
        elif not self._bind_pod(job.pod, nodes[0], now):
            # It stays out of the queue until somebody changes it: the server would refuse again.
            self._clear(run)
            member.run = None

    def _nodes_of(self, start: Start) -> list[str]:
        """Return the node of each pod of a job that is to start."""
        names = self._columns.names
        nodes = [name for machine_id in self._policy.machine_ids(start) if (name := names[machine_id]) is not None]
        if len(nodes) < start.job.size:
            raise self._policy.failure(f"started job {start.job.key} on machines that are gone")
        return nodes

    def _bind_pod(self, key: Key, node: str, now: Instant) -> bool:
        pod = self._store.get(POD, key)
        return self._desk is not None and pod is not None and self._desk.bind(key, pod, node, now)

    def _charge(self, run: RunningJob) -> None:
        """Take a job's placement out of the free room.

        A policy may over-allocate, as a real scheduler may: then nothing is taken here, the kubelet rejects the pods,
        and the run says so.
        """
        try:
            self.free = self.free - run.placement
        except ValueError:
            run.placement = self.free.taken_by(run.job, ())
        except TypeError as error:
            raise self._policy.failure(f"gave a placement of another resource model: {error}") from error

    def _evict(self, evict: Evict, now: Instant) -> None:
        member = self._members.get(evict.job.key)
        if member is None or member.run is None:
            raise self._policy.failure(f"evicted job {evict.job.key}, which is not running")
        if isinstance(member.job, PodJob) and self._desk is not None:
            # It runs until its grace period is over; then its room is free.
            self._desk.evict(member.job.pod, now)
            return
        self._forget(member)
        self._evicted.append(member.job)
        self._store.delete(POD, member.keys, now, author=self, decision=Eviction(member.keys))

    def _reject(self, reject: Reject, now: Instant) -> None:
        member = self._members.get(reject.job.key)
        if member is None or member.run is not None:
            raise self._policy.failure(f"rejected job {reject.job.key}, which is not waiting")
        self._forget(member)
        if isinstance(member.job, PodJob) and self._desk is not None:
            self._desk.reject(member.job.pod, reject.reason, now)
        else:
            decisions.reject(self._store, Rejection(member.keys, reject.reason), now, author=self)

    def _explain(self, now: Instant) -> None:
        """Tell the pods that wait why they do, as far as one can know."""
        if self._desk is None:
            return
        told: dict[tuple[object, ...], str] = {}
        for key in list(self._desk.waiting):
            member, pod = self._members.get(key_of_pod_job(key)), self._store.get(POD, key)
            if pod is None or member is None or member.job not in self.queue:
                continue
            shape = member.job.shape
            if shape not in told:
                judgement = self._desk.judge(pod, demand_of(pod))
                waits = f"the policy {self._policy.name} has not started it yet"
                told[shape] = waits if judgement.fits.any() else self._desk.why_not(judgement)
            self._desk.set_aside(key, told[shape], now)
