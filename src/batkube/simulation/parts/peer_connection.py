"""Connect a run to its peer of Batsim's protocol: a scheduler instead of a policy, or a Batsim (`engine`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from batkube.cluster.jobs.outcomes import Outcome, OutcomeListener
from batkube.execution.jobs.submission import Submission
from batkube.kernel.instants import Instant
from batkube.policies.runtime.policy_scheduler import PolicyScheduler
from batkube.scenarios.scenario import BATSIM_PREFIX
from batkube.simulation.parts.batsim_engine import NO_PEER_CONNECTION, EngineSetup, PeerConnection
from batkube.simulation.parts.completion import CompletionTracker
from batkube.simulation.parts.energy import EnergyParts
from batkube.simulation.preparation.inputs import Inputs
from batkube.workloads.model import Job

if TYPE_CHECKING:
    from batkube.batsim.schedulers.batsim_scheduler import BatsimScheduler


def outcome_listener(inputs: Inputs, outcomes: list[Outcome], engine: EngineSetup) -> OutcomeListener:
    """Return the listener for the outcomes of jobs: it adds them to `outcomes`, and notifies the peer."""
    peer = engine.batsim or _batsim_scheduler(inputs)
    if peer is None:
        return outcomes.append

    def on_outcome(outcome: Outcome) -> None:
        outcomes.append(outcome)
        peer.on_job_ended(outcome)

    return on_outcome


def _batsim_scheduler(inputs: Inputs) -> BatsimScheduler | None:
    """Return the policy that represents a scheduler of Batsim's protocol, if the run has one."""
    if not inputs.scenario.scheduler.startswith(BATSIM_PREFIX):
        return None
    from batkube.batsim.schedulers.batsim_scheduler import BatsimScheduler

    assert isinstance(inputs.policy, BatsimScheduler)
    return inputs.policy


def connect_peer(
    inputs: Inputs,
    submission: Submission,
    work: CompletionTracker,
    folder: Path,
    engine: EngineSetup,
    power: EnergyParts,
    scheduler: PolicyScheduler | None,
) -> PeerConnection:
    """Connect the scheduler of Batsim's protocol, or the engine, and return the connection.

    `scheduler` requests the decisions, as from any policy.
    """
    if engine.batsim is not None:
        engine.batsim.on_arrival = submission.submit_now
        return engine.connection
    policy = _batsim_scheduler(inputs)
    if policy is None:
        return NO_PEER_CONNECTION
    from batkube.batsim.schedulers.connection import SchedulerClient
    from batkube.workloads.formats.batsim.writer import to_batsim_document

    policy.check(inputs.model)
    client = SchedulerClient(policy.spec, folder, inputs.scenario.watchdog)

    def submit(job: Job, now: Instant) -> None:
        work.add_job()
        submission.submit_now(job, now)

    documents = {workload.name: to_batsim_document(workload) for workload in inputs.workloads}
    policy.connect(client, documents, submit, power.energy_log)
    if power.execution_work is not None and scheduler is not None:
        policy.wake_at = scheduler.wake_at
        power.execution_work.connect(policy)
    work.expects_jobs = lambda: policy.expects_jobs
    return PeerConnection(policy.close, client.close, client.log_tail)
