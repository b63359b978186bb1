"""The parts of a run whose jobs a real Batsim executes, and how a run speaks of who is at the end of a wire."""

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
    """A wire to a scheduler or a Batsim: how it is told of the end, and let go of, and what it logged last."""

    finish: Callable[[], None]
    close: Callable[[], None]
    log_tail: Callable[[], str]


#: Of a run that speaks with nobody by Batsim's protocol.
NO_PEER_CONNECTION = PeerConnection(lambda: None, lambda: None, lambda: "")


class EngineSetup(NamedTuple):
    """The Batsim that executes the jobs, and the wire to it; None in a run that executes them itself."""

    batsim: BatsimEngine | None = None
    connection: PeerConnection = NO_PEER_CONNECTION


def planned_run_time(job: Job, slowest: Machine) -> Duration:
    """Return how long a job takes, as far as we can tell; one that only Batsim can compute may take for ever."""
    try:
        return run_time_on(job.profile, [slowest] * job.size).length
    except UnsupportedProfile:
        return Duration(LATEST_NS)


def start_engine(world: World, inputs: Inputs, jobs: Iterable[Job], folder: Path) -> EngineSetup:
    """Start a Batsim with its files in `folder`, or listen for one, if the run has one; it will submit `jobs`."""
    scenario, shares = inputs.scenario, inputs.model is ResourceModel.REQUESTS
    if scenario.engine is None:
        return EngineSetup()
    # Imported only where it is needed: most runs do without ZeroMQ.
    from batkube.batsim.engine.batsim_engine import BatsimEngine
    from batkube.batsim.engine.connection import EngineConnection

    endpoint = scenario.engine.removeprefix(BATSIM_ENGINE).removeprefix(":")
    wire = EngineConnection(endpoint, scenario.watchdog)
    if not endpoint:
        wire.start(scenario.platform, inputs.workloads, folder, shares_machines=shares)
    known = {job.key: job for job in jobs}
    batsim = BatsimEngine(world, inputs.platform.machines, known, wire, shares_machines=shares)
    link = PeerConnection(lambda: batsim.finish(world.clock.now), wire.close, wire.log_tail)
    return EngineSetup(batsim, link)
