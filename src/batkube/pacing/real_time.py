"""Time driver at real speed, or a multiple of it: time never jumps, and programs receive every event at once.

An appointment is executed when the clock reaches it. If the simulator falls behind, the clock continues, and the
appointment is executed late in real time but at its own instant.
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
    """Drives a run at a constant speed."""

    def __init__(
        self, world: World, loop: Loop, speed: float, patience: Duration, programs: PacedPrograms, stats: DecisionStats
    ) -> None:
        """End the run after `patience` of simulated time without any activity or due appointment."""
        self._agenda = world.agenda
        self._loop = loop
        self._speed = speed
        self._patience = patience
        self._programs = programs
        self._stats = stats
        #: None before the run begins.
        self._time: RealTime | None = None
        #: The number of executed appointments at the last activity, and the time of that.
        self._executed, self._active_at = 0, START

    @property
    def attachments(self) -> Sequence[PacedProgram]:
        """The programs, in the order of the scenario's schedulers."""
        return self._programs.programs

    def columns(self) -> dict[str, str | int]:
        """Return no columns: decisions do not depend on time here."""
        return {}

    def stop(self) -> None:
        """Stop every program."""
        self._programs.stop()

    def advance(self) -> Instant | None:
        """Serve the programs for one tick, and return the new time; None once `patience` is over. Raises RunFailed."""
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
        """Handle all queued bindings, and return their number."""
        count = 0
        while self._programs.accept_binding():
            count += 1
        return count
