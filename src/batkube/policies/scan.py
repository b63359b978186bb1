"""Policies that go through the whole queue and start every job that fits.

kube-scheduler does the same with pods of equal priority: it sets aside a pod that it cannot place
and tries the next one (pkg/scheduler/backend/queue/scheduling_queue.go, the backoff and
unschedulable queues). The policies differ in the machines that jobs get.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from batkube.policies.interface import Decision, Policy, Start, View
from batkube.policies.rooms import Choice


class Scan(Policy):
    """Goes through the queue in order and starts every job that fits, skipping those that do not.

    If no job has ended since the last call, only the jobs that arrived are tried: the others did
    not fit then, and free capacity can only have shrunk. For the same reason a job is skipped if
    one of the same shape did not fit earlier in the call, which makes long queues of equal jobs
    cheap.
    """

    def decide(self, view: View) -> Iterator[Decision]:
        """Start the jobs that fit, in the order of the queue."""
        unplaceable: set[tuple[object, ...]] = set()
        for job in view.queue if view.ended else view.arrived:
            if view.free.is_full:
                return
            shape = job.shape
            if shape in unplaceable:
                continue
            placement = view.free.fit(job, self.choice)
            if placement is None:
                unplaceable.add(shape)
            else:
                yield Start(job, placement)

    @property
    def choice(self) -> Choice | random.Random:
        """Which of the machines that fit to take."""
        raise NotImplementedError


class FirstFit(Scan):
    """First fit: every job that fits starts, in the order of the queue, on the machines with the lowest ids.

    A job that does not fit is skipped, so that small jobs overtake large ones, and large jobs may
    starve.
    """

    choice = Choice.FIRST


class BestFit(Scan):
    """Best fit, or pack: as first-fit, on the machines with the least capacity left, so that some stay empty.

    If jobs share nodes, each pod goes to the node that would have the smallest share left; compare NodeResourcesFit
    with MostAllocated in Kubernetes. With whole machines, a job gets the smallest that are sufficient.
    """

    choice = Choice.PACK


class WorstFit(Scan):
    """Worst fit, or spread: as first-fit, on the machines with the most capacity left, so that load is even.

    If jobs share nodes, each pod goes to the node that would have the largest share left; compare NodeResourcesFit
    with LeastAllocated, Kubernetes' default. With whole machines, a job gets the largest.
    """

    choice = Choice.SPREAD


class RandomPolicy(Scan):
    """Random fit: every job that fits starts, in the order of the queue, on machines drawn at random.

    Only the machines are random, determined by the run's seed; the order of the queue is that of
    submission. It serves as the control group of a study: the result of an arbitrary placement.
    """

    @property
    def choice(self) -> random.Random:
        """The policy's random stream."""
        return self.rng
