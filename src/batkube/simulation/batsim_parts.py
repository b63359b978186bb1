"""A scheduler of Batsim's protocol in a run: it decides as a policy does, at the other end of a wire."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from batkube.cluster.outcomes import Outcome, OutcomeListener
from batkube.execution.submission import Submission
from batkube.kernel.instants import Instant
from batkube.scenarios.scenario import BATSIM_PREFIX
from batkube.simulation.inputs import Inputs
from batkube.simulation.work import Work
from batkube.workloads.model import Job


class SchedulerLink(NamedTuple):
    """A wire to a scheduler: how it is told of the end, and let go of, and what it logged last."""

    conclude: Callable[[], None]
    close: Callable[[], None]
    tail: Callable[[], str]


def outcome_listener(inputs: Inputs, outcomes: list[Outcome]) -> OutcomeListener:
    """Return who hears how jobs end."""
    if not inputs.scenario.scheduler.startswith(BATSIM_PREFIX):
        return outcomes.append
    from batkube.batsim.cluster_scheduler import BatsimScheduler

    policy = inputs.policy
    assert isinstance(policy, BatsimScheduler)

    def hear(outcome: Outcome) -> None:
        outcomes.append(outcome)
        policy.hear(outcome)

    return hear


def connected(inputs: Inputs, submission: Submission, work: Work, folder: Path) -> SchedulerLink | None:
    """Return the wire to a scheduler of Batsim's protocol, if the run has one."""
    if not inputs.scenario.scheduler.startswith(BATSIM_PREFIX):
        return None
    from batkube.batsim.cluster_scheduler import BatsimScheduler
    from batkube.batsim.link import Link
    from batkube.workloads.batsim_writing import as_batsim

    policy = inputs.policy
    assert isinstance(policy, BatsimScheduler)
    link = Link(policy.spec, folder, inputs.scenario.watchdog)

    def submit(job: Job, now: Instant) -> None:
        work.add_job()
        submission.add(job, now)

    policy.connect(link, {workload.name: as_batsim(workload) for workload in inputs.workloads}, submit)
    work.expects_jobs = lambda: policy.expects_jobs
    return SchedulerLink(policy.close, link.close, link.tail)
