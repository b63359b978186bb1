"""The clock of a run that another thread controls: it pauses, steps and paces the run.

A run never reads real time, and this only delays it between two instants: a `ControlledTime` wraps the run's time
driver, and waits before the run advances to a later instant. What happens, at which instant and in which order is
therefore the same with any sequence of pauses. Attached programs notice nothing: all of them are idle while it waits.
"""

from __future__ import annotations

import threading

from batkube.cluster.decisions import Binding
from batkube.cluster.mapping import POD
from batkube.cluster.store import Batch
from batkube.cluster.world import World
from batkube.kernel.instants import START, Instant
from batkube.timing.clock_controls import ClockFeature, ClockState
from batkube.timing.live import RealTime
from batkube.timing.loop import TimeDriver

#: The longest wait without a check, in seconds: locks reject a wait of years.
_MAX_WAIT_S = 3600.0
#: A run that is later than this does not catch up by running faster, in real seconds.
_MAX_LAG_S = 1.0


class PausableClock:
    """Controls of the clock of one run. The run's thread calls `hold`."""

    features = frozenset(ClockFeature)

    def __init__(self, *, is_paused: bool = False) -> None:
        """Unless it `is_paused`, the run advances as fast as possible until it is controlled."""
        self._changed = threading.Condition()
        self._is_paused = is_paused
        self._speed: float | None = None
        self._stop_at: Instant | None = None
        #: The number of bindings at which a step began; None without one.
        self._step_from: int | None = None
        self._bindings = 0
        #: The instant that is reached: between two events if the run is paced, or stops there.
        self._now = START
        #: The next instant at which something happens, as far as known.
        self._next = START
        #: Set while the run waits for real time.
        self._pace: RealTime | None = None
        #: Whether `hold` has anything to check. Read without the lock, so that a run without controls does not pay.
        self._is_controlled = is_paused

    # Controls

    def state(self) -> ClockState:
        """Return the current state."""
        with self._changed:
            return ClockState(self._reached(), self._is_paused, self._speed, self._stop_at, self._step_from is not None)

    def pause(self) -> None:
        """Stop time at the current instant, after everything that happens at it."""
        self._control(is_paused=True)

    def resume(self) -> None:
        """Let time advance, without a stop."""
        self._control()

    def step(self) -> None:
        """Let time advance until pods are bound, and pause once nothing more happens at that instant."""
        self._control(is_stepping=True)

    def run_until(self, at: Instant) -> None:
        """Let time advance to `at`, and pause there; at once if it has passed."""
        self._control(stop_at=at)

    def set_speed(self, speed: float | None) -> None:
        """Let `speed` virtual seconds pass in a real second; None for as fast as possible."""
        with self._changed:
            self._now, self._pace, self._speed = self._reached(), None, speed
            self._notify()

    def _control(self, *, is_paused: bool = False, is_stepping: bool = False, stop_at: Instant | None = None) -> None:
        with self._changed:
            self._now, self._pace = self._reached(), None
            self._is_paused, self._stop_at = is_paused, stop_at
            self._step_from = self._bindings if is_stepping else None
            self._notify()

    def _notify(self) -> None:
        is_free = self._speed is None and self._stop_at is None and self._step_from is None
        self._is_controlled = self._is_paused or not is_free
        self._changed.notify_all()

    def _reached(self) -> Instant:
        """Return the instant that a run with a pace has reached between two events; else the latest known one."""
        if self._pace is None:
            return self._now
        return max(self._now, min(self._pace.now(), self._next))

    # The run's thread

    def control(self, driver: TimeDriver, world: World) -> TimeDriver:
        """Return a driver of the same run that this clock controls."""
        world.store.subscribe(POD, self._on_pods_changed)
        return ControlledTime(driver, world, self)

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        self._bindings += isinstance(batch.decision, Binding)

    def hold(self, now: Instant, following: Instant) -> None:
        """Wait until the run may advance from `now` to the `following` instant; nothing happens in between."""
        if not self._is_controlled or following <= now:
            return
        with self._changed:
            self._now, self._next = max(self._now, now), following
            while (wait_s := self._wait_s(now, following)) > 0:
                self._changed.wait(min(_MAX_WAIT_S, wait_s))
            self._now = max(self._now, following)

    def _wait_s(self, now: Instant, following: Instant) -> float:
        """Return how long to wait until the next check; 0 if time may advance. Pauses where a step or the run stops."""
        if self._step_from is not None and self._bindings > self._step_from:
            self._is_paused, self._step_from = True, None
        if self._is_paused:
            return _MAX_WAIT_S
        stop = following if self._stop_at is None else min(following, max(self._stop_at, now))
        if self._speed is not None:
            self._pace = self._pace or RealTime(self._now, self._speed)
            wait_s = self._pace.real_s_until(stop)
            if wait_s > 0:
                return wait_s
            if wait_s < -_MAX_LAG_S:
                self._pace = None
        if stop == following:
            return 0.0
        self._now, self._pace = max(self._now, stop), None
        self._is_paused, self._stop_at = True, None
        return _MAX_WAIT_S


class ControlledTime(TimeDriver):
    """A time driver that lets a `PausableClock` delay each advance of another driver."""

    def __init__(self, driver: TimeDriver, world: World, run_clock: PausableClock) -> None:
        self._driver = driver
        self._clock = world.clock
        self._run_clock = run_clock

    def advance(self) -> Instant | None:
        """Return the instant that the other driver has reached, once it is allowed."""
        following = self._driver.advance()
        if following is not None:
            self._run_clock.hold(self._clock.now, following)
        return following
