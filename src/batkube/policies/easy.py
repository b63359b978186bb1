"""EASY backfilling, with batsched's machine-specific reservation."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from batkube.kernel.instants import LATEST_NS, Instant, after
from batkube.platforms.model import Machine
from batkube.policies.interface import Decision, Policy, Start, View, Wait
from batkube.policies.reasons import Backfilled, Reserved
from batkube.policies.rooms import Room
from batkube.workloads.model import Job


@dataclass(slots=True)
class Reservation:
    """The reservation of the blocked job at the head of the queue."""

    head: Job
    #: The shadow time: when the head will start at the latest, if every running job keeps to its estimate.
    shadow: Instant
    #: What is free at the shadow time besides the head's own placement: jobs that last longer may use only this.
    spare: Room


class Easy(Policy):
    """EASY backfilling: only the head of the queue has a reservation; any job that does not delay it may overtake.

    Jobs start from the head while they fit. For the first that does not, the machines of running jobs are assumed free
    in the order of their estimated ends until it fits: that instant is its shadow time, and the machines it would get
    then (the lowest ids) are reserved. A later job starts now if it fits now and either ends by the shadow time, by its
    estimate, or uses none of the reserved machines. The reservation is for those machines and not for a number of them,
    as in batsched's `easy_bf`; counting alone gives other schedules.

    If nothing has ended since the last call and the head is the same, only the jobs that arrived are tried. The others
    did not fit before, and cannot fit now: free capacity has only shrunk, less time is left until the shadow time, and
    the reservation is unchanged.
    """

    def __init__(self) -> None:
        self._reservation: Reservation | None = None

    def begin(self, machines: Sequence[Machine], rng: random.Random) -> None:
        """Discard the reservation."""
        super().begin(machines, rng)
        self._reservation = None

    def decide(self, view: View) -> Iterator[Decision]:
        """Start jobs from the head of the queue, reserve machines for the first that does not fit, and backfill."""
        if view.ended:
            self._reservation = None
        if view.free.is_full:
            return
        held = self._reservation
        # Past its shadow time the reservation waits for a job that is overdue: then it is recomputed.
        if held is not None and held.head is view.head and view.now <= held.shadow:
            yield from self._backfill(view, held, view.arrived)
            return
        while view.head is not None and (placement := view.free.fit(view.head)) is not None:
            yield Start(view.head, placement)
        if view.head is not None and not view.free.is_full:
            self._reservation = _reserve(view, view.head)
            if view.is_explained:
                yield from _explain(view, self._reservation)
            yield from self._backfill(view, self._reservation, view.queue)

    def _backfill(self, view: View, held: Reservation, jobs: Iterable[Job]) -> Iterator[Decision]:
        remaining = held.shadow - view.now
        free = view.free
        spare = free & held.spare
        for job in jobs:
            is_short = view.estimate(job) <= remaining
            placement = (free if is_short else spare).fit(job)
            if placement is None or job is held.head:
                continue
            reason = None
            if view.is_explained:
                reason = Backfilled(held.head.key, held.shadow, after(view.now, view.estimate(job)), is_short)
            yield Start(job, placement, reason)
            free = view.free
            if free.is_full:
                return
            if not is_short:
                held.spare = held.spare - placement
            spare = free & held.spare


def _explain(view: View, reservation: Reservation) -> Iterator[Wait]:
    """Record the reservation of the head, with the running jobs that hold its machines."""
    room = view.free
    holders = [running for running in view.running if running.until <= max(reservation.shadow, view.now)]
    for running in holders:
        room = room + running.placement
    placement = room.fit(reservation.head)
    if placement is not None:
        jobs = tuple(running.job.key for running in holders if running.placement.mask & placement.mask)
        yield Wait(reservation.head, Reserved(reservation.shadow, placement.mask, jobs))


def _reserve(view: View, head: Job) -> Reservation:
    """Assume the machines of running jobs free, in the order of their ends, until `head` fits."""
    room = view.free
    running = view.running
    count = 0
    while count < len(running):
        # A job past its estimate may end any moment. Those that end together are given back together.
        shadow = max(running[count].until, view.now)
        while count < len(running) and running[count].until <= shadow:
            room = room + running[count].placement
            count += 1
        placement = room.fit(head)
        if placement is not None:
            return Reservation(head, shadow, room - placement)
    # The head fits not even when all have ended (machines are missing): there is nothing to hold back for it.
    return Reservation(head, Instant(LATEST_NS), room)
