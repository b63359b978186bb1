"""Conservative backfilling, as batsched's `conservative_bf` does it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from batkube.kernel.instants import Duration, after
from batkube.platforms.model import Machine
from batkube.policies.interface import Decision, Policy, Start, View
from batkube.policies.rooms import Room
from batkube.policies.timeline import Slot, Timeline
from batkube.workloads.model import Job

_SHORTEST = Duration(1)


class Conservative(Policy):
    """Conservative backfilling: every job has a reservation, and none may delay that of a job before it.

    A job that arrives gets the earliest slot in the plan that is free for its whole estimate, on the lowest ids that
    are free throughout. When jobs end, often earlier than planned, the plan is compressed: each waiting job in turn,
    in the order of submission, gives up its slot and gets the earliest one there is now, all others staying where
    they are. (Clearing the plan and placing all jobs anew is another algorithm, with other schedules.) A job whose
    slot begins now starts, on the machines of its slot.

    Running jobs hold their machines until the end of their estimate. A job that is overdue counts as ending any
    moment now. Slots planned behind it cannot be kept, so the whole plan is made anew while there is such a job and
    once it has ended. (batsched never meets one: Batsim kills jobs at their walltime.)
    """

    def __init__(self) -> None:
        #: None when it has to be made anew.
        self._plan: Timeline[Room] | None = None
        #: Of each job that runs or waits, by its key: what it holds in the plan.
        self._slots: dict[str, Slot] = {}

    def begin(self, machines: Sequence[Machine], rng: random.Random) -> None:
        """Plan anew."""
        super().begin(machines, rng)
        self._plan = None

    def decide(self, view: View) -> Iterator[Decision]:
        """Place the jobs that arrived, or after an end all jobs that wait, and start those whose slot begins now."""
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
        for job in jobs:
            # A job that takes no time still needs its machines while it does: two of them never share one.
            slot = self._place(plan, job, max(view.estimate(job), _SHORTEST))
            if slot is not None and slot.start == view.now:
                yield Start(job, slot.placement)
        self._plan = None if has_overdue else plan

    def _ended_late(self, view: View) -> bool:
        """Return whether a job outlasted its slot, so that slots behind it began without their jobs."""
        slots = (self._slots.get(job.key) for job in view.ended)
        return any(slot is not None and slot.end < view.now for slot in slots)

    def _new_plan(self, view: View) -> Timeline[Room]:
        """Return a plan that knows of the running jobs only."""
        whole = view.free
        for held in view.running:
            whole = whole + held.placement
        plan = Timeline(view.now, whole)
        any_moment = after(view.now, _SHORTEST)
        self._slots = {
            held.job.key: Slot(view.now, max(held.until, any_moment), held.placement) for held in view.running
        }
        for slot in self._slots.values():
            plan.reserve(slot)
        return plan

    def _place(self, plan: Timeline[Room], job: Job, length: Duration) -> Slot | None:
        """Move `job` to the earliest slot there is, and return it; None if it never fits."""
        self._drop(plan, job)
        slot = plan.earliest(job, length)
        if slot is not None:
            plan.reserve(slot)
            self._slots[job.key] = slot
        return slot

    def _drop(self, plan: Timeline[Room], job: Job) -> None:
        slot = self._slots.pop(job.key, None)
        if slot is not None:
            plan.release(slot)
