"""Policies that go through the whole queue and start whatever fits.

They are what kube-scheduler does to pods that all have the same priority: a pod that cannot be placed is set aside and
the next one is tried (pkg/scheduler, backoff and unschedulable queues). They differ in the machines they take.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from batkube.policies.interface import Decision, Policy, Start, View
from batkube.policies.rooms import Choice


class Scan(Policy):
    """Goes through the queue in order and starts every job that fits, skipping those that do not.

    When nothing ended since the last call, only the jobs that arrived are tried: the others did not fit then, and
    what is free can only have become less. For the same reason a job is passed over when one of the same shape did not
    fit earlier in the same call, which makes long queues of equal jobs cheap.
    """

    def decide(self, view: View) -> Iterator[Decision]:
        """Start what fits, in the order of the queue."""
        too_large: set[tuple[object, ...]] = set()
        for job in view.queue if view.ended else view.arrived:
            if view.free.is_full:
                return
            shape = job.shape
            if shape in too_large:
                continue
            placement = view.free.fit(job, self.choice)
            if placement is None:
                too_large.add(shape)
            else:
                yield Start(job, placement)

    @property
    def choice(self) -> Choice | random.Random:
        """Which of the machines that fit are taken."""
        raise NotImplementedError


class FirstFit(Scan):
    """First fit: every job that fits starts, in the order of the queue, on the machines with the lowest ids.

    A job that does not fit is skipped, so that small jobs overtake large ones, and a large one may wait for ever.
    """

    choice = Choice.FIRST


class BestFit(Scan):
    """Best fit, or pack: as first-fit, on the machines that have the least left over, so that some stay empty.

    Packing by requests, each pod goes to the node of which the smallest share would be left (NodeResourcesFit with
    MostAllocated is Kubernetes' relative of it). With whole machines, a job gets the smallest that are sufficient.
    """

    choice = Choice.PACK


class WorstFit(Scan):
    """Worst fit, or spread: as first-fit, on the machines that have the most left over, so that load is even.

    Packing by requests, each pod goes to the node of which the largest share would be left (NodeResourcesFit with
    LeastAllocated, Kubernetes' default, is its relative). With whole machines, a job gets the largest.
    """

    choice = Choice.SPREAD


class RandomPolicy(Scan):
    """Random fit: every job that fits starts, in the order of the queue, on machines drawn at random.

    Only the machines are random, drawn from the run's seed; the order of the queue is that of submission. It is the
    control group of a study: what any placement at all would give.
    """

    @property
    def choice(self) -> random.Random:
        """The policy's own stream of randomness."""
        return self.rng
