"""Shortest job first."""

from __future__ import annotations

from collections.abc import Iterator

from batkube.policies.interface import Decision, Policy, Start, View, Wait
from batkube.policies.reasons import NextInOrder
from batkube.policies.waiting import Waiting


class Sjf(Policy):
    """Shortest job first: jobs start in the order of their estimates; the shortest blocks all others until it fits.

    Jobs with equal estimates start in order of submission. This is the textbook rule,
    non-preemptive and strict: no longer job overtakes the shortest one, even if it would fit. Long
    jobs may starve.
    """

    def __init__(self) -> None:
        self._waiting: Waiting | None = None

    def decide(self, view: View) -> Iterator[Decision]:
        """Start jobs, the shortest first, until one does not fit."""
        if self._waiting is None:
            self._waiting = Waiting(view.estimate)
        self._waiting.add(view.arrived)
        while (job := self._waiting.head(view.queue)) is not None:
            placement = view.free.fit(job)
            if placement is None:
                if view.is_explained:
                    yield Wait(job, NextInOrder("estimate", job.size, view.free.fitting(job)))
                return
            yield Start(job, placement)
