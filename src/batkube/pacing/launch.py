"""Starts the outside schedulers of a run whose time follows the real one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from batkube.api.connections.connection import Handler
from batkube.api.connections.doors import Door
from batkube.cluster.world import World
from batkube.pacing.cycles import PacedTime
from batkube.pacing.programs import PacedProgram, PacedPrograms
from batkube.pacing.realtime import InRealTime
from batkube.pacing.replay import REPLAYED, ReplayingApi
from batkube.pacing.server import PacedServer
from batkube.pacing.tally import Tally
from batkube.programs.launch import EPOCH_NS, start_all, start_program
from batkube.programs.observer import Observer
from batkube.programs.program import OutsideRun, OutsideScheduler, RunServer
from batkube.scenarios.scenario import Scenario
from batkube.timing.loop import Loop
from batkube.timing.paced_text import TimeMode


def pace(
    world: World,
    loop: Loop,
    server: RunServer,
    schedulers: Sequence[OutsideScheduler],
    scenario: Scenario,
    observer: Observer,
    folder: Path,
    tally: Tally,
) -> OutsideRun:
    """Start the schedulers; their clock moves by the scenario's rules."""

    def listen(handler: Handler, door: Door) -> PacedServer:
        if not scenario.time.pacing.replay:
            return PacedServer(handler, door)
        tally.notes.add(REPLAYED, example="time: {replay: on}")
        return PacedServer(ReplayingApi(handler, world.store, lambda: world.clock.now), door)

    programs = start_all(
        schedulers,
        folder,
        lambda scheduler, own: PacedProgram(
            *start_program(scheduler, listen, server, own, world.clock.now, scenario), EPOCH_NS
        ),
        lambda started: PacedPrograms(started, observer, loop).stop(),
    )
    together = PacedPrograms(programs, observer, loop)
    if scenario.time.mode is TimeMode.REALTIME:
        return InRealTime(world, loop, scenario.time.speed, scenario.patience, together, tally)
    return PacedTime(world, loop, scenario.time.pacing, together, tally)
