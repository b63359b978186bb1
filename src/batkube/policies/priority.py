"""Priority scheduling with preemption, as in Kubernetes."""

from __future__ import annotations

from collections.abc import Iterator

from batkube.policies.interface import Decision, Evict, Policy, Running, Start, View, Wait
from batkube.policies.reasons import NextInOrder, Preempted
from batkube.policies.waiting import Waiting
from batkube.workloads.model import Job


class Priority(Policy):
    """Highest priority first: the most important job blocks all others, and may evict less important running ones.

    Jobs start in order of priority (a larger number is more important), then of submission. If the
    next one does not fit, running jobs of strictly lower priority are evicted if that makes it fit,
    and no more of them than necessary: the lowest priority first, and of equals the one started
    last. With `preempt=False` it waits instead.

    Victims are chosen as kube-scheduler does on one node (SelectVictimsOnNode in
    pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go): remove all candidates,
    and if the job fits then, reprieve them one by one, the most important first, as long as the job
    still fits. Here this is done for all machines at once.
    """

    def __init__(self, preempt: bool = True) -> None:
        self._preempt = preempt
        self._waiting = Waiting(lambda job: (-job.priority, job.submit))

    def decide(self, view: View) -> Iterator[Decision]:
        """Start jobs, the most important first, and evict others for them if allowed."""
        self._waiting.add(view.arrived)
        while (job := self._waiting.head(view.queue)) is not None:
            if self._preempt and not view.free.holds(job):
                for victim in _victims(view, job):
                    reason = Preempted(job.key, victim.job.priority, job.priority) if view.is_explained else None
                    yield Evict(victim.job, reason)
            placement = view.free.fit(job)
            if placement is None:
                if view.is_explained:
                    yield Wait(job, NextInOrder("priority", job.size, view.free.fitting(job)))
                return
            yield Start(job, placement)


def _victims(view: View, job: Job) -> list[Running]:
    """Return the running jobs to evict so that `job` fits; empty if that is impossible.

    They are as few and as unimportant as possible.
    """
    candidates = [running for running in view.running if running.job.priority < job.priority]
    room = view.free
    for running in candidates:
        room = room + running.placement
    if not room.holds(job):
        return []
    victims = []
    for running in sorted(candidates, key=_most_important_first):
        remaining = room - running.placement
        if remaining.holds(job):
            room = remaining
        else:
            victims.append(running)
    return victims[::-1]


def _most_important_first(running: Running) -> tuple[int, int]:
    # Kubernetes: pkg/scheduler/util/utils.go, MoreImportantPod: higher priority, then earlier start.
    return -running.job.priority, running.since
