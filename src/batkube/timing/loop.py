"""The loop: the one place where appointments are kept and the clock is moved.

    let time go on ─▶ keep what is due ─▶ let time go on …

How time goes on is the business of a *passage*, of which there are four: at once, to whatever is due next
(`NextEventTime`: a
policy acts within its appointments); coordinated with programs, when all of them are idle; by the rules of 2020; and
after the real time. In the first two, part of the world may be computed by somebody else, who is asked first how far
time may go (`ExternalHorizon`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Protocol

from batkube.cluster.world import World
from batkube.kernel.agenda import Appointment, Rank
from batkube.kernel.instants import Instant, format_seconds

Progress = Callable[[Instant], None]

#: How many times time goes on between two reports of progress.
_STEPS_PER_REPORT = 100


class TimeDriver(Protocol):
    """A way of letting time go on."""

    def advance(self) -> Instant | None:
        """Let time go on, at most to what is due next; return the instant reached.

        None when nothing is due and nobody is expected to do anything any more.
        """


class ExternalHorizon(Protocol):
    """Somebody outside who computes a part of the world, and knows what happens there next."""

    @property
    def expects_events(self) -> bool:
        """Whether anything is still to come from there."""

    def advance_limit(self, now: Instant, wish: Instant | None) -> Instant | None:
        """Return how far time may go from `now`: to `wish`, or to what happens before, which is on the agenda then.

        `wish` is when something is to be done here, and None when there is nothing; the answer is None when nothing is
        to come from there either.
        """


class Loop:
    """Keeps appointments in order."""

    def __init__(self, world: World) -> None:
        self._agenda = world.agenda
        self._clock = world.clock
        #: Appointments kept, ever.
        self.executed = 0

    @property
    def now(self) -> Instant:
        """The instant reached."""
        return self._clock.now

    def run(self, passage: TimeDriver, is_done: Callable[[], bool], progress: Progress) -> None:
        """Let time go on until `is_done` or nothing is to be expected; tell `progress` how far time has come."""
        steps = 0
        while not is_done() and (reached := passage.advance()) is not None:
            self.run_until(reached)
            steps += 1
            if steps % _STEPS_PER_REPORT == 0:
                progress(reached)
        progress(self._clock.now)

    def run_until(self, until: Instant) -> None:
        """Keep every appointment up to `until`, those booked meanwhile included, each at its own instant."""
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
        """Keep the next appointment, which there must be, whatever the clock shows; return its rank."""
        appointment = self._agenda.pop_next()
        assert appointment is not None, "nothing is due"
        self._run_out_of_step(appointment)
        return appointment.rank

    def _run_out_of_step(self, appointment: Appointment) -> None:
        """Keep an appointment at its own instant, whatever the clock shows: paced time is behind it, or ahead."""
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
    """Return what was going on when an appointment failed."""
    action: object = appointment.action
    while isinstance(action, functools.partial):
        action = action.func
    name = getattr(action, "__qualname__", type(action).__qualname__)
    return f"while an appointment was kept: {name} at {format_seconds(appointment.at)} s (rank {appointment.rank.name})"


class NextEventTime:
    """Time jumps to whatever is due next: between two appointments everybody is idle."""

    def __init__(self, world: World, frontier: ExternalHorizon | None = None) -> None:
        self._agenda = world.agenda
        self._clock = world.clock
        self._horizon = frontier

    def advance(self) -> Instant | None:
        """Return when the next appointment is."""
        if self._horizon is None:
            return self._agenda.due
        return self._horizon.advance_limit(self._clock.now, self._agenda.due)
