"""Starts the outside schedulers of a run whose time follows the real one."""

from __future__ import annotations

from batkube.api.connections.connection import Handler
from batkube.api.connections.program_listener import ProgramListener
from batkube.pacing.cycles import PacedTime
from batkube.pacing.programs import PacedProgram, PacedPrograms
from batkube.pacing.realtime import InRealTime
from batkube.pacing.replay import REPLAYED, ReplayingApi
from batkube.pacing.server import PacedServer
from batkube.pacing.tally import Tally
from batkube.programs.launch import EPOCH_NS, start_all, start_program
from batkube.programs.program import OutsideRun, ProgramSetup
from batkube.timing.paced_text import TimeMode


def pace(setup: ProgramSetup, tally: Tally) -> OutsideRun:
    """Start the programs of a run; their clock moves by the scenario's rules."""
    world, loop, scenario, observer = setup.world, setup.loop, setup.scenario, setup.observer

    def listen(handler: Handler, listener: ProgramListener) -> PacedServer:
        if not scenario.time.pacing.replay:
            return PacedServer(handler, listener)
        tally.notes.add(REPLAYED, example="time: {replay: on}")
        return PacedServer(ReplayingApi(handler, world.store, lambda: world.clock.now), listener)

    programs = start_all(
        setup,
        lambda program, folder: PacedProgram(*start_program(program, listen, setup, folder), EPOCH_NS),
        lambda started: PacedPrograms(started, observer, loop).stop(),
    )
    together = PacedPrograms(programs, observer, loop)
    if scenario.time.mode is TimeMode.REALTIME:
        return InRealTime(world, loop, scenario.time.speed, scenario.patience, together, tally)
    return PacedTime(world, loop, scenario.time.pacing, together, tally)
