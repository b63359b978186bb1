"""First come, first served."""

from __future__ import annotations

from collections.abc import Iterator

from batkube.policies.interface import Decision, Policy, Start, View, Wait
from batkube.policies.reasons import NextInOrder


class Fcfs(Policy):
    """First come, first served: the job at the head of the queue blocks all others until it fits.

    Jobs start in order of submission, on the machines with the lowest ids. No job overtakes
    another, so machines may stay idle although a waiting job would fit on them.
    """

    def decide(self, view: View) -> Iterator[Decision]:
        """Start jobs from the head of the queue until one does not fit."""
        while view.head is not None:
            placement = view.free.fit(view.head)
            if placement is None:
                if view.is_explained:
                    yield Wait(view.head, NextInOrder("submission", view.head.size, view.free.fitting(view.head)))
                return
            yield Start(view.head, placement)
