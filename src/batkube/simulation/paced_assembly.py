"""Starts the outside schedulers of a run whose time follows the real one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from batkube.api.connections import Handler
from batkube.api.doors import Door
from batkube.cluster.store import Store
from batkube.kernel.agenda import Agenda
from batkube.kernel.clock import Clock
from batkube.kernel.streams import Streams
from batkube.simulation.attached import OutsideRun, OutsideScheduler
from batkube.simulation.launching import old_versions
from batkube.simulation.outside import EPOCH_NS, make_api, start_all, start_program
from batkube.simulation.paced import Paced
from batkube.simulation.paced_programs import PacedProgram, PacedPrograms
from batkube.simulation.paced_realtime import InRealTime
from batkube.simulation.paced_replay import REPLAYED, ReplayingApi
from batkube.simulation.paced_server import PacedServer
from batkube.simulation.paced_tally import Tally
from batkube.simulation.scenario import Scenario
from batkube.simulation.witness import Witness
from batkube.timing.paced_text import TimeMode


def pace(
    schedulers: Sequence[OutsideScheduler],
    scenario: Scenario,
    store: Store,
    clock: Clock,
    agenda: Agenda,
    streams: Streams,
    witness: Witness,
    folder: Path,
    tally: Tally,
) -> OutsideRun:
    """Start the schedulers; their clock moves by the scenario's rules."""
    api, token = make_api(store, clock, streams, old_versions(schedulers))

    def listen(handler: Handler, door: Door) -> PacedServer:
        if not scenario.time.pacing.replay:
            return PacedServer(handler, door)
        tally.notes.add(REPLAYED, example="time: {replay: on}")
        return PacedServer(ReplayingApi(handler, store, lambda: clock.now), door)

    programs = start_all(
        schedulers,
        folder,
        lambda scheduler, own: PacedProgram(
            *start_program(scheduler, listen, api, token, own, clock, scenario), EPOCH_NS
        ),
        lambda started: PacedPrograms(started, witness, clock).stop(),
    )
    together = PacedPrograms(programs, witness, clock)
    if scenario.time.mode is TimeMode.REALTIME:
        return InRealTime(scenario.time.speed, scenario.patience, together, agenda, tally)
    return Paced(scenario.time.pacing, together, agenda, tally)
