"""Starts the real schedulers of a run whose time follows the real clock."""

from __future__ import annotations

from batkube.api.connections.polled.program_listener import ProgramListener
from batkube.api.connections.protocol.connection import Handler
from batkube.pacing.decision_stats import DecisionStats
from batkube.pacing.paced_programs import PacedProgram, PacedPrograms
from batkube.pacing.paced_time import PacedTimeDriver
from batkube.pacing.real_time import RealTimeDriver
from batkube.pacing.server import PacedServer
from batkube.pacing.watch_replay import REPLAYED, ReplayingApi
from batkube.programs.program import ProgramSetup, ProgramTimeDriver
from batkube.programs.startup.launch import EPOCH_NS, start_all, start_program
from batkube.timing.time_rules import TimeMode


def start_paced(setup: ProgramSetup, stats: DecisionStats) -> ProgramTimeDriver:
    """Start the programs of a run, and return the time driver for its time mode."""
    world, loop, scenario, observer = setup.world, setup.loop, setup.scenario, setup.observer

    def listen(handler: Handler, listener: ProgramListener) -> PacedServer:
        if not scenario.time.pacing.replay:
            return PacedServer(handler, listener)
        stats.notes.add(REPLAYED, example="time: {replay: on}")
        return PacedServer(ReplayingApi(handler, world.store, lambda: world.clock.now), listener)

    programs = start_all(
        setup,
        lambda program, folder: PacedProgram(*start_program(program, listen, setup, folder), EPOCH_NS),
        lambda started: PacedPrograms(started, observer, loop).stop(),
    )
    paced_programs = PacedPrograms(programs, observer, loop)
    if scenario.time.mode is TimeMode.REALTIME:
        return RealTimeDriver(world, loop, scenario.time.speed, scenario.patience, paced_programs, stats)
    return PacedTimeDriver(world, loop, scenario.time.pacing, paced_programs, stats)
