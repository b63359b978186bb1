"""The parts of a run in which a real Batsim executes the jobs, and the connection to a peer of Batsim's protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from batkube.cluster.mapping import ResourceModel
from batkube.cluster.world import World
from batkube.execution.profiles.run_times import run_time_on
from batkube.execution.profiles.task_shapes import UnsupportedProfile
from batkube.kernel.instants import LATEST_NS, Duration
from batkube.platforms.model import Machine
from batkube.scenarios.scenario import BATSIM_ENGINE
from batkube.simulation.preparation.inputs import Inputs
from batkube.workloads.model import Job

if TYPE_CHECKING:
    from batkube.batsim.engine.batsim_engine import BatsimEngine


class PeerConnection(NamedTuple):
    """A connection to a scheduler or a Batsim: notify it of the end, close the connection, read the end of its log."""

    finish: Callable[[], None]
    close: Callable[[], None]
    log_tail: Callable[[], str]


#: For runs without a peer.
NO_PEER_CONNECTION = PeerConnection(lambda: None, lambda: None, lambda: "")


class EngineSetup(NamedTuple):
    """The Batsim that executes the jobs, or None, and the connection to it."""

    batsim: BatsimEngine | None = None
    connection: PeerConnection = NO_PEER_CONNECTION


def planned_run_time(job: Job, slowest: Machine) -> Duration:
    """Return the run time of a job, or the longest possible one if only Batsim can compute it."""
    try:
        return run_time_on(job.profile, [slowest] * job.size).length
    except UnsupportedProfile:
        return Duration(LATEST_NS)


def start_engine(world: World, inputs: Inputs, jobs: Iterable[Job], folder: Path) -> EngineSetup:
    """Start a Batsim with its files in `folder`, or listen for one, if the run uses one. Batsim submits `jobs`."""
    scenario, shares = inputs.scenario, inputs.model is ResourceModel.REQUESTS
    if scenario.engine is None:
        return EngineSetup()
    # Imported lazily: most runs do not need ZeroMQ.
    from batkube.batsim.engine.batsim_engine import BatsimEngine
    from batkube.batsim.engine.connection import EngineConnection

    endpoint = scenario.engine.removeprefix(BATSIM_ENGINE).removeprefix(":")
    connection = EngineConnection(endpoint, scenario.watchdog)
    if not endpoint:
        connection.start(scenario.platform, inputs.workloads, folder, shares_machines=shares)
    jobs_by_key = {job.key: job for job in jobs}
    batsim = BatsimEngine(world, inputs.platform.machines, jobs_by_key, connection, shares_machines=shares)
    peer = PeerConnection(lambda: batsim.finish(world.clock.now), connection.close, connection.log_tail)
    return EngineSetup(batsim, peer)
