"""Connects a run with its partner by Batsim's protocol: a scheduler in a policy's place, or a Batsim (`engine`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from batkube.cluster.outcomes import Outcome, OutcomeListener
from batkube.execution.submission import Submission
from batkube.kernel.instants import Instant
from batkube.policies.scheduler import PolicyScheduler
from batkube.scenarios.scenario import BATSIM_PREFIX
from batkube.simulation.engine import NO_PARTNER, EngineParts, PartnerLink
from batkube.simulation.inputs import Inputs
from batkube.simulation.power import PowerParts
from batkube.simulation.work import Work
from batkube.workloads.model import Job

if TYPE_CHECKING:
    from batkube.batsim.cluster_scheduler import BatsimScheduler


def outcome_listener(inputs: Inputs, outcomes: list[Outcome], engine: EngineParts) -> OutcomeListener:
    """Return who hears how jobs end: the outputs, and whoever is at the end of a wire."""
    partner = engine.batsim or _scheduler_of(inputs)
    if partner is None:
        return outcomes.append

    def hear(outcome: Outcome) -> None:
        outcomes.append(outcome)
        partner.hear(outcome)

    return hear


def _scheduler_of(inputs: Inputs) -> BatsimScheduler | None:
    """Return the policy that speaks for a scheduler of Batsim's protocol, if the run has one."""
    if not inputs.scenario.scheduler.startswith(BATSIM_PREFIX):
        return None
    from batkube.batsim.cluster_scheduler import BatsimScheduler

    assert isinstance(inputs.policy, BatsimScheduler)
    return inputs.policy


def partner_link(
    inputs: Inputs,
    submission: Submission,
    work: Work,
    folder: Path,
    engine: EngineParts,
    power: PowerParts,
    scheduler: PolicyScheduler | None,
) -> PartnerLink:
    """Connect the scheduler of Batsim's protocol, or the engine, and return the wire to it.

    `scheduler` is who asks for the decisions of that scheduler, as of any policy.
    """
    if engine.batsim is not None:
        engine.batsim.on_arrival = submission.add
        return engine.link
    policy = _scheduler_of(inputs)
    if policy is None:
        return NO_PARTNER
    from batkube.batsim.link import Link
    from batkube.workloads.batsim_writing import as_batsim

    policy.check(inputs.model)
    link = Link(policy.spec, folder, inputs.scenario.watchdog)

    def submit(job: Job, now: Instant) -> None:
        work.add_job()
        submission.add(job, now)

    policy.connect(link, {workload.name: as_batsim(workload) for workload in inputs.workloads}, submit, power.book)
    if power.courses is not None and scheduler is not None:
        policy.wake_at = scheduler.wake_at
        power.courses.correspond(policy)
    work.expects_jobs = lambda: policy.expects_jobs
    return PartnerLink(policy.close, link.close, link.tail)
