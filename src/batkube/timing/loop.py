"""The event loop: executes appointments and advances the clock. Nothing else does.

    advance time ─▶ execute what is due ─▶ advance time …

A `TimeDriver` determines how time advances. There are five: directly to the next appointment (`NextEventTime`), for
policies, which act within appointments; coordinated with attached programs, when all of them are idle; paced, by the
rules of the 2020 prototype; and with real time, for programs of a run and for clients of a served cluster
(`live.LiveTime`). In the first two, an external simulator may compute a part of the world; it then limits how far time
may advance (`ExternalHorizon`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Protocol

from batkube.cluster.world import World
from batkube.kernel.agenda import Appointment
from batkube.kernel.instants import Instant, format_seconds

Progress = Callable[[Instant], None]
Pause = Callable[[Appointment], bool]
"""Returns whether to pause after an appointment."""

#: The number of time steps between two reports of progress.
_STEPS_PER_REPORT = 100


class TimeDriver(Protocol):
    """Determines how time advances."""

    def advance(self) -> Instant | None:
        """Advance time, at most to the next appointment; return the instant reached.

        Return None if nothing is due and no program or external simulator will act any more.
        """


class ExternalHorizon(Protocol):
    """An external simulator, such as Batsim, that computes a part of the world and knows its next event."""

    @property
    def expects_events(self) -> bool:
        """Whether the external simulator has further events."""

    def advance_limit(self, now: Instant, due: Instant | None) -> Instant | None:
        """Return how far time may advance from `now`: to `due`, or to an earlier external event.

        `due` is the instant of our next appointment, or None. The external event is put on the agenda. Return None if
        there is no further event on either side.
        """


class Loop:
    """Executes appointments in order."""

    def __init__(self, world: World, on_bug: Callable[[Exception], None] | None = None) -> None:
        """`on_bug` is called when an appointment fails, and time continues; without it, the error is raised."""
        self._agenda = world.agenda
        self._clock = world.clock
        self._on_bug = on_bug
        #: The number of appointments executed.
        self.executed = 0

    @property
    def now(self) -> Instant:
        """The current instant."""
        return self._clock.now

    def run(self, driver: TimeDriver, is_done: Callable[[], bool], progress: Progress) -> None:
        """Run until `is_done` or until no event is left; report the current instant to `progress` now and then."""
        steps = 0
        while not is_done() and (reached := driver.advance()) is not None:
            self.run_until(reached)
            steps += 1
            if steps % _STEPS_PER_REPORT == 0:
                progress(reached)
        progress(self._clock.now)

    def run_until(self, until: Instant, pause: Pause | None = None) -> Appointment | None:
        """Execute every appointment up to `until`, including those booked meanwhile, each at its own instant.

        Move the clock to `until`, unless `pause` says to stop before; return the last appointment in that case.
        """
        agenda, clock = self._agenda, self._clock
        try:
            while (appointment := agenda.pop_next(until)) is not None:
                at = appointment.at
                if at > clock.now:
                    clock.advance(at)
                # In paced and live time, the clock may already show a later instant.
                clock.appointment_at = at if at < clock.now else None
                self.executed += 1
                try:
                    appointment.action(at)
                except Exception as error:
                    error.add_note(_describe(appointment))
                    if self._on_bug is None:
                        raise
                    self._on_bug(error)
                if pause is not None and pause(appointment):
                    return appointment
        finally:
            clock.appointment_at = None
        self.advance_to(until)
        return None

    def advance_to(self, now: Instant) -> None:
        """Move the clock to `now`, unless it is there already or beyond."""
        if now > self._clock.now:
            self._clock.advance(now)


def _describe(appointment: Appointment) -> str:
    """Describe an appointment for the note of an error."""
    action: object = appointment.action
    while isinstance(action, functools.partial):
        action = action.func
    name = getattr(action, "__qualname__", type(action).__qualname__)
    at = format_seconds(appointment.at)
    return f"while an appointment was executed: {name} at {at} s (rank {appointment.rank.name})"


class NextEventTime:
    """Advances time directly to the next appointment, for runs without attached programs."""

    def __init__(self, world: World, horizon: ExternalHorizon | None = None) -> None:
        self._agenda = world.agenda
        self._clock = world.clock
        self._horizon = horizon

    def advance(self) -> Instant | None:
        """Return the instant of the next appointment, or of an earlier external event."""
        if self._horizon is None:
            return self._agenda.due
        return self._horizon.advance_limit(self._clock.now, self._agenda.due)
