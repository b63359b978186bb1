"""Controls of the clock of a served cluster, which follows real time.

There are no steps: clients decide in real time, and nothing says whether one of them is about to.
"""

from __future__ import annotations

from collections.abc import Callable

from batkube.kernel.instants import Instant
from batkube.serving.event_loop_calls import EventLoopCalls
from batkube.timing.clock_controls import ClockFeature, ClockState
from batkube.timing.live import LiveTime


class ServedClock:
    """Controls of a served cluster's clock. Requests are answered while it stands still, too."""

    features = frozenset((ClockFeature.PAUSE, ClockFeature.SPEED, ClockFeature.UNTIL))

    def __init__(
        self, time: LiveTime, calls: EventLoopCalls, speed: float, on_speed: Callable[[float, Instant], None]
    ) -> None:
        """`on_speed` is called in the event loop when the speed changes."""
        self._time = time
        self._calls = calls
        self._speed = speed
        self._on_speed = on_speed

    def state(self) -> ClockState:
        """Execute what is due, and return the current state."""
        return self._calls.call(self._state)

    def _state(self, now: Instant) -> ClockState:
        pace = self._time.pace
        is_paused = pace.speed == 0 or (pace.stop_at is not None and now >= pace.stop_at)
        return ClockState(now, is_paused, self._speed, None if is_paused else pace.stop_at)

    def pause(self) -> None:
        """Stop time until it is resumed."""
        self._calls.call(lambda _: self._time.change_pace(0))

    def resume(self) -> None:
        """Let time advance, without a stop."""
        self._calls.call(lambda _: self._time.change_pace(self._speed))

    def set_speed(self, speed: float | None) -> None:
        """Let `speed` virtual seconds pass in a real second."""
        assert speed is not None, "a served cluster follows real time"

        def change(now: Instant) -> None:
            self._speed = speed
            self._on_speed(speed, now)
            state = self._state(now)
            if not state.is_paused:
                self._time.change_pace(speed, state.stop_at)

        self._calls.call(change)

    def step(self) -> None:
        """Not available, see `features`."""
        raise NotImplementedError

    def run_until(self, at: Instant) -> None:
        """Let time advance to `at`, and pause there; at once if it has passed."""
        self._calls.call(lambda now: self._time.change_pace(self._speed, max(at, now)))
