"""Lets an outside scheduler run in real time, or in some multiple of it: nothing jumps, and everybody is told at once.

What is due happens when the clock gets there; if more is due than can be done, the clock goes on and it happens late in
real time, at its own instant.
"""

from __future__ import annotations

from collections.abc import Sequence

from batkube.cluster.world import World
from batkube.kernel.instants import START, Duration, Instant
from batkube.pacing.decision_stats import DecisionStats
from batkube.pacing.paced_programs import TICK_S, PacedProgram, PacedPrograms
from batkube.timing.live import RealTime
from batkube.timing.loop import Loop


class RealTimeDriver:
    """One run at a constant speed."""

    def __init__(
        self, world: World, loop: Loop, speed: float, patience: Duration, programs: PacedPrograms, tally: DecisionStats
    ) -> None:
        """`patience` is for how long, in simulated time, nothing may happen when nothing is due."""
        self._agenda = world.agenda
        self._loop = loop
        self._speed = speed
        self._patience = patience
        self._programs = programs
        self._stats = tally
        #: None before the run begins.
        self._time: RealTime | None = None
        #: How much had been kept when something last happened, and when that was.
        self._executed, self._active_at = 0, START

    @property
    def attachments(self) -> Sequence[PacedProgram]:
        """The programs, in the order of the scenario's schedulers."""
        return self._programs.programs

    def columns(self) -> dict[str, str | int]:
        """Return nothing: time does not depend on decisions here."""
        return {}

    def stop(self) -> None:
        """End every program."""
        self._programs.stop()

    def advance(self) -> Instant | None:
        """Serve the programs for a moment; return what time it is then. None when out of patience. Raises RunFailed."""
        if self._time is None:
            self._programs.warm_up(self._stats.notes)
            self._time = RealTime(START, self._speed)
            self._programs.set_time(START, jumped=True)
            return START
        if self._accept_bindings() or self._executed != self._loop.executed:
            self._executed, self._active_at = self._loop.executed, self._loop.now
        if self._agenda.due is None and self._loop.now - self._active_at > self._patience:
            return None
        self._programs.serve(TICK_S)
        self._programs.check_running()
        now = self._time.now()
        self._programs.set_time(now)
        return now

    def _accept_bindings(self) -> int:
        """Take every binding that has come; return how many there were."""
        taken = 0
        while self._programs.accept_binding():
            taken += 1
        return taken
