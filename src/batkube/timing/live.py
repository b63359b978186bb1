"""Virtual time that follows real time at a given speed (`RealTime`), for `run --time realtime` and `serve`.

In `serve` (`LiveTime`), all appointments that are due are executed before a request is answered, so clients always see
the current state. When more is due than can be executed in time, virtual time falls behind: no appointment is skipped,
and requests are answered in between.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Iterator

from batkube.cluster.world import World
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Instant
from batkube.kernel.stopwatch import Stopwatch
from batkube.timing.loop import Loop, TimeDriver

#: The longest that executing appointments may delay a request, in real seconds, and the longest while virtual time is
#: behind anyway, so that it delays every request. A single long appointment may exceed it.
_MAX_SLICE_S = 0.05
_MAX_BEHIND_SLICE_S = 0.01


class RealTime:
    """A clock on which `speed` virtual seconds pass in each real second, at most until `stop_at`."""

    def __init__(self, start: Instant, speed: float = 1.0, stop_at: Instant | None = None) -> None:
        """With speed 0 the clock stands still."""
        self._start = start
        self.speed = speed
        self.stop_at = None if stop_at is None else max(start, stop_at)
        self._stopwatch = Stopwatch()

    def now(self) -> Instant:
        """Return the present instant."""
        now = Instant(self._start + int(self._stopwatch.real_s * self.speed * NANOSECONDS_PER_SECOND))
        return now if self.stop_at is None else min(now, self.stop_at)

    def real_s_until(self, at: Instant) -> float:
        """Return the number of real seconds until `at`; infinity if the clock does not get there."""
        if at <= self._start:
            return -self._stopwatch.real_s
        if self.speed == 0 or (self.stop_at is not None and at > self.stop_at):
            return math.inf
        return (at - self._start) / NANOSECONDS_PER_SECOND / self.speed - self._stopwatch.real_s


def _start_turn() -> Callable[[], bool]:
    """Return a function that reports whether this turn has used up its time slice, the longest wait of a request."""
    stopwatch = Stopwatch()
    return lambda: stopwatch.real_s > _MAX_SLICE_S


class LiveTime(TimeDriver):
    """The time driver of a served cluster: the clock follows real time, whenever it is read or a timer fires."""

    def __init__(self, world: World, loop: Loop, start: Instant, speed: float = 1.0) -> None:
        self._event_loop: asyncio.AbstractEventLoop | None = None
        self._loop = loop
        self._agenda = world.agenda
        self._agenda.is_endless = True
        self._agenda.start_turn = _start_turn
        loop.advance_to(start)
        self._time = RealTime(start, speed)
        #: The timer set in the event loop, and its instant.
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at: Instant | None = None
        self._is_running_due = False
        #: The length of the next slice.
        self._slice_s = _MAX_SLICE_S

    @property
    def pace(self) -> RealTime:
        """The clock that time follows."""
        return self._time

    def change_pace(self, speed: float, stop_at: Instant | None = None) -> None:
        """From now on, let `speed` virtual seconds pass in each real second, at most until `stop_at`.

        With speed 0 time stands still; what is due at this instant is still executed.
        """
        self._time = RealTime(self.advance(), speed, stop_at)
        self._set_timer()

    def advance(self) -> Instant:
        """Return the instant that real time has reached."""
        return self._time.now()

    def now(self) -> Instant:
        """Execute everything that is due, and return the current instant."""
        if not self._is_running_due:
            self.run_until(self.advance())
            self._set_earlier_timer(self._agenda.due)
        return self._loop.now

    def run_until(self, until: Instant) -> None:
        """Execute the appointments until `until`, in order, and move the clock there; stop after one time slice."""
        stopwatch, slice_s = Stopwatch(), self._slice_s
        self._is_running_due = True
        try:
            is_behind = self._loop.run_until(until, lambda _: stopwatch.real_s > slice_s) is not None
        finally:
            self._is_running_due = False
        self._slice_s = _MAX_BEHIND_SLICE_S if is_behind else _MAX_SLICE_S

    # Within the event loop

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Let time advance by timers of the running asyncio event loop."""
        self._event_loop = asyncio.get_running_loop()
        self._agenda.on_booking = self._on_booked
        self._set_timer()
        try:
            yield
        finally:
            self._event_loop = self._agenda.on_booking = None
            self._cancel_timer()

    def _on_booked(self, at: Instant) -> None:
        """Set an earlier timer if the new appointment is due before the current one."""
        if not self._is_running_due:
            self._set_earlier_timer(at)

    def _set_earlier_timer(self, at: Instant | None) -> None:
        if at is not None and (self._timer_at is None or at < self._timer_at):
            self._set_timer()

    def _set_timer(self) -> None:
        self._cancel_timer()
        due = self._agenda.due
        if due is None or self._event_loop is None:
            return
        wait_s = self._time.real_s_until(due)
        if wait_s == math.inf:
            return
        self._timer_at = due
        self._timer = self._event_loop.call_later(max(0.0, wait_s), self._on_timer)

    def _on_timer(self) -> None:
        self.now()
        self._set_timer()

    def _cancel_timer(self) -> None:
        self._timer_at = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
