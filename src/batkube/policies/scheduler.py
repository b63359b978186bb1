"""Runs a policy in-process, as a scheduler among others: it hears of pods through the store and binds them there.

The pods of a job are gathered until the gang is complete; then the job is in the policy's queue. At most once per
instant, after everything else that happens at it, the policy is asked to decide. Each decision is carried out, in the
store and in the view, before the policy goes on.
"""

from __future__ import annotations

import bisect
import traceback
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence

from batkube.cluster.gangs import Gang, Roster
from batkube.cluster.mapping import POD, REJECTED_BY_SCHEDULER
from batkube.cluster.store import ADDED, DELETED, Batch, Key, Store
from batkube.kernel.agenda import Agenda, Rank
from batkube.kernel.errors import BatkubeError, RunFailed
from batkube.kernel.instants import START, Duration, Instant
from batkube.kernel.intervals import format_intervals
from batkube.kernel.journal import Journal
from batkube.policies.interface import Decision, Evict, Policy, Reject, Start, WakeAt
from batkube.policies.rooms import Placement, Room
from batkube.workloads.model import Job

_TERMINAL = ("Succeeded", "Failed")


class RunningJob:
    """A job that was started and has not ended."""

    __slots__ = ("charged", "job", "number", "placement", "since", "until")

    def __init__(self, start: Start, since: Instant, until: Instant, number: int, charged: bool) -> None:
        self.job = start.job
        self.placement = start.placement
        self.since = since
        self.until = until
        #: The how manieth start of the run it was; makes the order of `running` total.
        self.number = number
        #: Whether `placement` was taken out of the view's free room.
        self.charged = charged


class Member:
    """A job the scheduler knows."""

    __slots__ = ("alive", "gang", "run")

    def __init__(self, gang: Gang) -> None:
        self.gang = gang
        #: Pods seen and not yet in a terminal phase.
        self.alive = 0
        #: None while it waits.
        self.run: RunningJob | None = None


class JobQueue(Collection[Job]):
    """Waiting jobs in order of submission. Iterating sees the queue as it was when the iteration began."""

    def __init__(self) -> None:
        #: An OrderedDict, because finding its first entry stays cheap when many before it are gone.
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        #: The first job, or None.
        self.head: Job | None = None

    def __len__(self) -> int:
        return len(self._jobs)

    def __iter__(self) -> Iterator[Job]:
        return iter(list(self._jobs.values()))

    def __contains__(self, job: object) -> bool:
        return isinstance(job, Job) and job.key in self._jobs

    def push(self, job: Job) -> None:
        """Add `job` at the end."""
        self._jobs[job.key] = job
        if self.head is None:
            self.head = job

    def remove(self, job: Job) -> bool:
        """Take `job` out; return whether it was there."""
        if self._jobs.pop(job.key, None) is None:
            return False
        if job is self.head:
            self.head = next(iter(self._jobs.values()), None)
        return True


class PolicyScheduler:
    """Connects one policy to the store. It is also the policy's `View`."""

    def __init__(
        self,
        policy: Policy,
        *,
        room: Room,
        store: Store,
        agenda: Agenda,
        journal: Journal,
        node_names: Sequence[str],
        roster: Roster,
        estimate: Callable[[Job], Duration],
    ) -> None:
        self._policy = policy
        self._store = store
        self._agenda = agenda
        self._journal = journal
        self._node_names = node_names
        self._roster = roster
        self.estimate = estimate
        self.now = START
        self.free = room
        self.queue = JobQueue()
        self.running: list[RunningJob] = []
        self.arrived: list[Job] = []
        self.ended: list[Job] = []
        #: Every job that has pods alive, by the job's key.
        self._members: dict[str, Member] = {}
        self._starts = 0
        self._wake_booked_at: Instant | None = None
        store.listen(POD, self._hear, author=self)

    @property
    def head(self) -> Job | None:
        """The job at the front of the queue, or None."""
        return self.queue.head

    # What it hears

    def _hear(self, batch: Batch, now: Instant) -> None:
        """Gather new pods into jobs and count ended ones."""
        if batch.type is DELETED:
            return
        if self._gather(batch.keys) if batch.type is ADDED else self._count_ended(batch):
            self._book_wake(now)

    def _gather(self, keys: Sequence[Key]) -> bool:
        """Take up new pods; True when some job is complete."""
        complete = False
        for gang, _, ranks in self._roster.gangs(keys):
            member = self._member(gang)
            member.alive += len(ranks)
            if member.alive == gang.job.size:
                self.queue.push(gang.job)
                self.arrived.append(gang.job)
                complete = True
        return complete

    def _count_ended(self, batch: Batch) -> bool:
        """Count pods that reached a terminal phase; True when it was the last of some job."""
        keys = batch.keys
        over = [key for key, pod in zip(keys, batch.objects, strict=True) if pod["status"]["phase"] in _TERMINAL]
        if not over:
            return False
        ended = False
        for gang, _, ranks in self._roster.gangs(keys if len(over) == len(keys) else over):
            member = self._member(gang)
            member.alive -= len(ranks)
            if member.alive == 0:
                self._forget(member)
                self.ended.append(gang.job)
                ended = True
        return ended

    def _member(self, gang: Gang) -> Member:
        key = gang.job.key
        member = self._members.get(key)
        if member is None or member.gang is not gang:
            member = self._members[key] = Member(gang)
        return member

    def _forget(self, member: Member) -> None:
        """Take a member out of everything, and its placement back."""
        job = member.gang.job
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
        if self._wake_booked_at != at:
            self._wake_booked_at = at
            self._agenda.book(at, Rank.WAKE, self._wake)

    def _wake(self, now: Instant) -> None:
        self._wake_booked_at = None
        self.now = now
        decisions = self._policy.decide(self)
        if not isinstance(decisions, Iterator):
            raise RunFailed(f"{self._name}: decide returned {decisions!r}; it must yield its decisions")
        while (decision := self._next_decision(decisions)) is not None:
            self._carry_out(decision, now)
        self.arrived.clear()
        self.ended.clear()

    def _next_decision(self, decisions: Iterator[Decision]) -> Decision | None:
        try:
            return next(decisions, None)
        except BatkubeError:
            raise
        except Exception as error:  # whatever a user's policy raises ends the run, with the place it came from
            frames = traceback.extract_tb(error.__traceback__)
            own_file = self._policy.decide.__code__.co_filename
            frame = next((frame for frame in reversed(frames) if frame.filename == own_file), frames[-1])
            raise RunFailed(
                f"{self._name} failed in {frame.filename}:{frame.lineno} ({frame.line}): "
                f"{type(error).__name__}: {error}"
            ) from error

    @property
    def _name(self) -> str:
        return f"policy {type(self._policy).__name__}"

    def _carry_out(self, decision: Decision, now: Instant) -> None:
        match decision:
            case Start():
                self._start(decision, now)
            case Evict():
                self._evict(decision, now)
            case Reject():
                self._reject(decision, now)
            case WakeAt():
                if decision.at <= now:
                    raise RunFailed(f"{self._name} asked to be woken at {decision.at} ns, which is not in the future")
                self._agenda.book(decision.at, Rank.WAKE, self._wake)
            case _:
                raise RunFailed(f"{self._name} yielded {decision!r}, which is not a Start, Evict, Reject or WakeAt")

    def _start(self, start: Start, now: Instant) -> None:
        job, placement = start.job, start.placement
        member = self._members.get(job.key)
        if member is None or not self.queue.remove(job):
            raise RunFailed(f"{self._name} started job {job.key}, which is not waiting")
        if placement is None:
            raise RunFailed(f"{self._name} started job {job.key} without a placement: it does not fit now")
        machine_ids = placement.machine_ids
        if len(machine_ids) != job.size:
            raise RunFailed(f"{self._name} gave job {job.key} {len(machine_ids)} places for {job.size} pods")
        charged = self._charge(placement)
        until = Instant(now + self.estimate(job))
        member.run = RunningJob(start, now, until, self._starts, charged)
        self._starts += 1
        bisect.insort(self.running, member.run, key=_by_end)
        self._journal.append(now, "bind", job=job.key, machines=format_intervals(placement.mask))
        self._bind(member.gang, machine_ids, now)

    def _bind(self, gang: Gang, machine_ids: Sequence[int], now: Instant) -> None:
        """Give each pod its node, as the binding sub-resource does."""
        names = self._node_names
        pods = self._store.objects(POD, gang.keys)
        bound = [
            {**pod, "spec": {**pod["spec"], "nodeName": names[machine_id]}}
            for pod, machine_id in zip(pods, machine_ids, strict=True)
        ]
        self._store.replace(POD, gang.keys, bound, now, author=self)

    def _charge(self, placement: Placement) -> bool:
        """Take `placement` out of the free room.

        A policy may over-allocate, as a real scheduler may: then it is not charged here, the kubelet rejects the pods,
        and the run says so.
        """
        try:
            self.free = self.free - placement
        except ValueError:
            return False
        return True

    def _evict(self, evict: Evict, now: Instant) -> None:
        member = self._members.get(evict.job.key)
        if member is None or member.run is None:
            raise RunFailed(f"{self._name} evicted job {evict.job.key}, which is not running")
        self._forget(member)
        self._journal.append(now, "evict", job=evict.job.key)
        self._store.delete(POD, member.gang.keys, now, author=self)

    def _reject(self, reject: Reject, now: Instant) -> None:
        member = self._members.get(reject.job.key)
        if member is None or member.run is not None:
            raise RunFailed(f"{self._name} rejected job {reject.job.key}, which is not waiting")
        self._forget(member)
        self._journal.append(now, "reject", job=reject.job.key, reason=reject.reason)
        status = {"phase": "Failed", "reason": REJECTED_BY_SCHEDULER, "message": reject.reason}
        self._store.set_status(POD, member.gang.keys, status, now, author=self)


def _by_end(run: RunningJob) -> tuple[Instant, int]:
    return run.until, run.number
