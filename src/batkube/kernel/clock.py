"""The virtual clock of a run. It never goes back, and only the loop advances it."""

from __future__ import annotations

from batkube.kernel.errors import Bug
from batkube.kernel.instants import START, Instant


class Clock:
    """Holds `now`. Code above the kernel receives `now` as an argument and does not read it here."""

    def __init__(self, now: Instant = START) -> None:
        #: Never decreases.
        self.now = now
        #: The instant of the appointment being executed, if the clock shows a later one (paced time); otherwise None.
        self.appointment_at: Instant | None = None

    @property
    def event_time(self) -> Instant:
        """The instant of the current event: that of its appointment, or `now` without one."""
        return self.now if self.appointment_at is None else self.appointment_at

    def advance(self, to: Instant) -> None:
        """Advance to `to`, which must not be in the past."""
        if to < self.now:
            raise Bug(f"time would go back from {self.now} ns to {to} ns")
        self.now = to
