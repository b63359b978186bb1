"""The one clock of a run. It moves forward only, and only the loop moves it."""

from __future__ import annotations

from batkube.kernel.errors import Bug
from batkube.kernel.instants import START, Instant


class Clock:
    """Holds `now`. Everything below the loop receives `now` as an argument instead of reading it here."""

    def __init__(self, now: Instant = START) -> None:
        #: Never decreases.
        self.now = now
        #: The instant of the appointment that is being kept, where the clock shows another; None otherwise.
        self.appointment_at: Instant | None = None

    @property
    def event_time(self) -> Instant:
        """The instant at which whatever happens now happens: that of its appointment, or else `now`."""
        return self.now if self.appointment_at is None else self.appointment_at

    def advance(self, to: Instant) -> None:
        """Move to `to`, which may be the present but not the past."""
        if to < self.now:
            raise Bug(f"time would go back from {self.now} ns to {to} ns")
        self.now = to
