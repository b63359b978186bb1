"""The event loop: executes appointments and advances the clock. Nothing else does.

    advance time ─▶ execute what is due ─▶ advance time …

A `TimeDriver` determines how time advances. There are four: directly to the next appointment (`NextEventTime`), for
policies, which act within appointments; coordinated with attached programs, when all of them are idle; paced, by the
rules of the 2020 prototype; and with real time. In the first two, an external simulator may compute a part of the
world; it then limits how far time may advance (`ExternalHorizon`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Protocol

from batkube.cluster.world import World
from batkube.kernel.agenda import Appointment, Rank
from batkube.kernel.instants import Instant, format_seconds

Progress = Callable[[Instant], None]

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

    def __init__(self, world: World) -> None:
        self._agenda = world.agenda
        self._clock = world.clock
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

    def run_until(self, until: Instant) -> None:
        """Execute every appointment up to `until`, including those booked meanwhile, each at its own instant."""
        agenda, clock = self._agenda, self._clock
        while (appointment := agenda.pop_next(until)) is not None:
            if appointment.at > clock.now:
                clock.advance(appointment.at)
            elif appointment.at < clock.now:
                self._run_out_of_step(appointment)
                continue
            self.executed += 1
            try:
                appointment.action(appointment.at)
            except Exception as error:
                error.add_note(_describe(appointment))
                raise
        if until > clock.now:
            clock.advance(until)

    def run_next(self) -> Rank:
        """Execute the next appointment, which must exist, without moving the clock; return its rank."""
        appointment = self._agenda.pop_next()
        assert appointment is not None, "nothing is due"
        self._run_out_of_step(appointment)
        return appointment.rank

    def _run_out_of_step(self, appointment: Appointment) -> None:
        """Execute an appointment at its own instant while the clock shows another, as it does in paced time."""
        self.executed += 1
        self._clock.appointment_at = appointment.at
        try:
            appointment.action(appointment.at)
        except Exception as error:
            error.add_note(_describe(appointment))
            raise
        finally:
            self._clock.appointment_at = None

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
