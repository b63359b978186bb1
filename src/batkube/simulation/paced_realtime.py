"""Runs an outside scheduler in real time, or in some multiple of it: nothing jumps, and everybody is told at once.

What is due happens when the clock gets there; if more is due than can be done, the clock goes on and it happens late in
real time, at its own instant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from batkube.kernel.agenda import Agenda
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, START, Duration, Instant
from batkube.kernel.stopwatch import Stopwatch
from batkube.simulation.paced_programs import TICK_S, PacedProgram, PacedPrograms
from batkube.simulation.paced_tally import Tally


class InRealTime:
    """One run at a constant speed."""

    def __init__(self, speed: float, patience: Duration, programs: PacedPrograms, agenda: Agenda, tally: Tally) -> None:
        """`patience` is for how long, in simulated time, nothing may happen when nothing is due."""
        self._speed = speed
        self._patience = patience
        self._programs = programs
        self._agenda = agenda
        self._tally = tally

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

    def run(self, is_done: Callable[[], bool], progress: Callable[[Instant], None]) -> None:
        """Run until `is_done`, or out of patience. Raises RunFailed."""
        self._programs.come_up(self._tally.notes)
        watch, now, active = Stopwatch(), START, START
        self._programs.move_to(now, jumped=True)
        while not is_done():
            if self._keep_until(now) + self._take_bindings():
                active = now
            if self._agenda.due is None and now - active > self._patience:
                return
            self._programs.serve(TICK_S)
            self._programs.check()
            now = Instant(START + int(watch.real_s * self._speed * NANOSECONDS_PER_SECOND))
            self._programs.move_to(now)
            progress(now)

    def _keep_until(self, now: Instant) -> int:
        """Keep what is due; return how much that was."""
        kept = 0
        while (due := self._agenda.due) is not None and due <= now:
            appointment = self._agenda.next()
            assert appointment is not None
            appointment.action(due)
            kept += 1
        return kept

    def _take_bindings(self) -> int:
        """Take every binding that has come; return how many there were."""
        taken = 0
        while self._programs.take_binding():
            taken += 1
        return taken
