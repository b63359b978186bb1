"""Conservative backfilling, after batsched's `conservative_bf` (src/algo/conservative_bf.cpp)."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from batkube.kernel.instants import Duration, after
from batkube.platforms.model import Machine
from batkube.policies.interface import Decision, Policy, Start, View, Wait
from batkube.policies.reasons import Reserved
from batkube.policies.rooms import Room
from batkube.policies.timeline import Slot, Timeline
from batkube.workloads.model import Job

_SHORTEST = Duration(1)


class Conservative(Policy):
    """Conservative backfilling: every job has a reservation, and none may delay that of a job before it.

    A job that arrives gets the earliest slot in the plan that is free for its whole estimate, on
    the lowest ids that are free throughout. When jobs end, often earlier than planned, the plan is
    compressed: each waiting job in turn, in order of submission, releases its slot and gets the
    earliest free one, while the slots of all others stay. (Clearing the plan and placing all jobs
    again is a different algorithm, with different schedules.) A job whose slot starts now is
    started on the machines of its slot.

    Running jobs hold their machines until the end of their estimate. An overdue job counts as
    ending at any moment. Slots planned after it cannot be kept, so the whole plan is rebuilt while
    there is such a job, and once it has ended. (batsched needs no such rule: Batsim kills jobs at
    their walltime.)
    """

    def __init__(self) -> None:
        #: None if it must be rebuilt.
        self._plan: Timeline[Room] | None = None
        #: By job key, the slots of running and waiting jobs.
        self._slots: dict[str, Slot] = {}

    def begin(self, machines: Sequence[Machine], rng: random.Random) -> None:
        """Discard the plan."""
        super().begin(machines, rng)
        self._plan = None

    def decide(self, view: View) -> Iterator[Decision]:
        """Plan the jobs that arrived, or all waiting jobs after an end, and start those due now."""
        has_overdue = bool(view.running) and view.running[0].until <= view.now
        if self._plan is None or has_overdue or self._ended_late(view):
            plan = self._new_plan(view)
            jobs = view.queue
        else:
            plan = self._plan
            plan.advance(view.now)
            for job in view.ended:
                self._drop(plan, job)
            jobs = view.queue if view.ended else view.arrived
        is_explained = view.is_explained
        for job in jobs:
            # A job with an estimate of zero gets a slot too, so that two of them never share a machine.
            previous = self._slots.get(job.key) if is_explained else None
            slot = self._place(plan, job, max(view.estimate(job), _SHORTEST))
            if slot is not None and slot.start == view.now:
                yield Start(job, slot.placement)
            elif is_explained and slot is not None and slot != previous:
                yield Wait(job, self._reason(slot))
        self._plan = None if has_overdue else plan

    def _ended_late(self, view: View) -> bool:
        """Return whether a job ran beyond its slot, so that later slots began without their jobs."""
        slots = (self._slots.get(job.key) for job in view.ended)
        return any(slot is not None and slot.end < view.now for slot in slots)

    def _new_plan(self, view: View) -> Timeline[Room]:
        """Return a plan with the running jobs only."""
        whole = view.free
        for running in view.running:
            whole = whole + running.placement
        plan = Timeline(view.now, whole)
        any_moment = after(view.now, _SHORTEST)
        self._slots = {
            running.job.key: Slot(view.now, max(running.until, any_moment), running.placement)
            for running in view.running
        }
        for slot in self._slots.values():
            plan.reserve(slot)
        return plan

    def _place(self, plan: Timeline[Room], job: Job, length: Duration) -> Slot | None:
        """Move `job` to the earliest free slot and return it; None if the job never fits."""
        self._drop(plan, job)
        slot = plan.earliest(job, length)
        if slot is not None:
            plan.reserve(slot)
            self._slots[job.key] = slot
        return slot

    def _reason(self, slot: Slot) -> Reserved:
        """Return why a job cannot start before its slot: the jobs that hold the machines until then."""
        before = [key for key, other in self._slots.items() if other.end == slot.start]
        return Reserved(slot.start, slot.placement.mask, tuple(before))

    def _drop(self, plan: Timeline[Room], job: Job) -> None:
        slot = self._slots.pop(job.key, None)
        if slot is not None:
            plan.release(slot)
