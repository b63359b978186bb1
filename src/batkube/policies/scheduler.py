"""Runs a policy in-process, as a scheduler among others: it hears of pods through the store and binds them there.

The pods of a job are gathered until the gang is complete; then the job is in the policy's queue. Once per
instant, after everything else that happens at it, the policy is asked to decide, and again only when its own decisions
made something end or arrive. Each decision is carried out, in the store and in the view, before the policy goes on.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence

import msgspec

from batkube.cluster.courses import Course, Courses
from batkube.cluster.mapping import NODE, POD, REJECTED_BY_SCHEDULER
from batkube.cluster.references import has_condition
from batkube.cluster.store import ADDED, DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.kernel.agenda import Rank
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import START, Duration, Instant
from batkube.policies.guard import GuardedPolicy
from batkube.policies.interface import Decision, Evict, Reject, Start, WakeAt
from batkube.policies.queue import JobQueue
from batkube.policies.rooms import Placement, Room
from batkube.workloads.model import Job

_TERMINAL = ("Succeeded", "Failed")
#: A policy that polls may wait long for its hour; one that polls this often for nothing waits for ever.
_IDLE_WAKES_MAX = 1_000_000
#: Far more than any queue is long; a policy that makes so many at one instant goes round in circles.
_DECISIONS_PER_INSTANT_MAX = 10_000_000

PEEKED = FidelityNote("policy", "jobs without walltime were planned with their true run time, which no scheduler knows")


class RunningJob:
    """A job that was started and has not ended."""

    __slots__ = ("_peek", "charged", "end", "job", "number", "placement", "since")

    def __init__(
        self, start: Start, since: Instant, end: Instant, number: int, peek: Callable[[Job], None] | None
    ) -> None:
        self.job = start.job
        self.placement = start.placement
        self.since = since
        #: When it must have ended, for our own use.
        self.end = end
        #: Counts the starts of the run, so that jobs which end at one instant still have an order in `running`.
        self.number = number
        #: Whether `placement` was taken out of the view's free room.
        self.charged = True
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

    __slots__ = ("alive", "course", "run")

    def __init__(self, course: Course) -> None:
        self.course = course
        #: Pods seen and not yet in a terminal phase.
        self.alive = 0
        #: None while it waits.
        self.run: RunningJob | None = None


class PolicyScheduler:
    """Connects one policy to the store. It is also the policy's `View`."""

    def __init__(
        self,
        world: World,
        policy: GuardedPolicy,
        *,
        room: Room,
        node_names: Sequence[str],
        courses: Courses,
        true_length: Callable[[Job], Duration],
        begin: Callable[[], None],
    ) -> None:
        """`begin` lets the policy begin anew, when machines have changed."""
        self._policy = policy
        self._store = store = world.store
        self._agenda = world.agenda
        self._journal = world.journal
        self._node_names = node_names
        self._courses = courses
        self._true_length = true_length
        self._notes = world.notes
        self.now = START
        self.free = room
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
        #: Machines that take no jobs: their nodes are gone, not ready, cordoned or tainted.
        self._closed = frozenset(range(len(node_names)))
        self._begin = begin
        store.listen(POD, self._hear, author=self)
        store.listen(NODE, self._hear_nodes)

    @property
    def head(self) -> Job | None:
        """The job at the front of the queue, or None."""
        return self.queue.head

    def estimate(self, job: Job) -> Duration:
        """How long `job` will take at most, as far as a scheduler can know; noted where it cannot."""
        if job.walltime is not None:
            return job.walltime
        self._peek(job)
        return self._true_length(job)

    def _peek(self, job: Job) -> None:
        if job.key not in self._peeked:
            self._peeked.add(job.key)
            self._notes.add(PEEKED, example=f"job {job.key}")

    # What it hears

    def _hear(self, batch: Batch, now: Instant) -> None:
        """Gather new pods into jobs and count ended ones."""
        if batch.type is DELETED:
            batch = msgspec.structs.replace(batch, objects=[_as_gone(pod) for pod in batch.objects])
        if self._gather(batch.keys) if batch.type is ADDED else self._count_ended(batch):
            self._book_wake(now)

    def _hear_nodes(self, batch: Batch, now: Instant) -> None:
        """Close machines to jobs, and open them."""
        live = self._store.entries(NODE)
        closed = frozenset(
            number
            for number, name in enumerate(self._node_names)
            if (entry := live.get(Key(name))) is None or not is_open(entry[0])
        )
        if closed != self._closed:
            self._closed = closed
            self.free = self.free.with_closed(sorted(closed))
            self._begin()
            self.arrived = list(self.queue)
            self._book_wake(now)

    def _gather(self, keys: Sequence[Key]) -> bool:
        """Take up new pods; True when some job is complete."""
        complete = False
        for course, _, ranks in self._courses.among(keys):
            job = course.job
            member = self._members.setdefault(job.key, Member(course))
            member.alive += len(ranks)
            if member.alive == job.size:
                self.queue.push(job)
                self.arrived.append(job)
                complete = True
        return complete

    def _count_ended(self, batch: Batch) -> bool:
        """Count pods that reached a terminal phase; True when it was the last of some job we know."""
        keys = batch.keys
        over = [key for key, pod in zip(keys, batch.objects, strict=True) if pod["status"]["phase"] in _TERMINAL]
        if not over:
            return False
        ended = False
        for course, _, ranks in self._courses.among(keys if len(over) == len(keys) else over):
            member = self._members.get(course.job.key)
            if member is None:
                continue
            member.alive -= len(ranks)
            if member.alive == 0:
                self._forget(member)
                self.ended.append(course.job)
                ended = True
        return ended

    def _forget(self, member: Member) -> None:
        """Take a member out of everything, and its placement back."""
        job = member.course.job
        del self._members[job.key]
        run = member.run
        if run is None:
            self.queue.remove(job)
            return
        del self.running[bisect.bisect_left(self.running, _by_end(run), key=_by_end)]
        if run.charged:
            self.free = self.free + run.placement

    # What it does

    def _book_wake(self, at: Instant) -> None:
        if at not in self._wakes:
            self._wakes.add(at)
            self._agenda.book(at, Rank.WAKE, self._wake)

    def _wake(self, now: Instant) -> None:
        self._wakes.discard(now)
        self.now = now
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
        job, placement, machine_ids = member.course.job, start.placement, self._policy.machine_ids(start)
        length, peek = (job.walltime, None) if job.walltime is not None else (self._true_length(job), self._peek)
        run = RunningJob(start, now, Instant(now + length), self._starts, peek)
        run.charged = self._charge(placement)
        member.run = run
        self._starts += 1
        bisect.insort(self.running, run, key=_by_end)
        self._bind(member.course, machine_ids, now)

    def _bind(self, course: Course, machine_ids: Sequence[int], now: Instant) -> None:
        """Give each pod its node, as the binding sub-resource does."""
        names = self._node_names
        pods = self._store.objects(POD, course.keys)
        bound = [
            {**pod, "spec": {**pod["spec"], "nodeName": names[machine_id]}}
            for pod, machine_id in zip(pods, machine_ids, strict=True)
        ]
        self._store.replace(POD, course.keys, bound, now, author=self)

    def _charge(self, placement: Placement) -> bool:
        """Take `placement` out of the free room.

        A policy may over-allocate, as a real scheduler may: then it is not charged here, the kubelet rejects the pods,
        and the run says so.
        """
        try:
            self.free = self.free - placement
        except ValueError:
            return False
        except TypeError as error:
            raise self._policy.failure(f"gave a placement of another resource model: {error}") from error
        return True

    def _evict(self, evict: Evict, now: Instant) -> None:
        member = self._members.get(evict.job.key)
        if member is None or member.run is None:
            raise self._policy.failure(f"evicted job {evict.job.key}, which is not running")
        self._forget(member)
        self._evicted.append(member.course.job)
        self._journal.append(now, "evict", job=evict.job.key)
        self._store.delete(POD, member.course.keys, now, author=self)

    def _reject(self, reject: Reject, now: Instant) -> None:
        member = self._members.get(reject.job.key)
        if member is None or member.run is not None:
            raise self._policy.failure(f"rejected job {reject.job.key}, which is not waiting")
        self._forget(member)
        self._journal.append(now, "reject", job=reject.job.key, reason=reject.reason)
        status = {"phase": "Failed", "reason": REJECTED_BY_SCHEDULER, "message": reject.reason}
        self._store.set_status(POD, member.course.keys, status, now, author=self)


def is_open(node: KubeObject) -> bool:
    """Return whether a node takes pods that tolerate nothing."""
    spec = node["spec"]
    repels = any(taint["effect"] != "PreferNoSchedule" for taint in spec.get("taints") or ())
    return not repels and not spec.get("unschedulable") and has_condition(node, "Ready")


def _as_gone(pod: KubeObject) -> KubeObject:
    """Return a pod that was deleted as one that ended, unless it had ended before."""
    return {"status": {"phase": "Failed" if pod["status"]["phase"] not in _TERMINAL else "Gone"}}


def _by_end(run: RunningJob) -> tuple[Instant, int]:
    return run.end, run.number
