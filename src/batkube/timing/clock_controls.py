"""Controls of a clock: how another thread, such as a page's server, pauses and paces a run or a served cluster."""

from __future__ import annotations

import enum
from typing import NamedTuple, Protocol

from batkube.kernel.instants import Instant


class ClockFeature(enum.StrEnum):
    """What the controls of a clock can do; not every clock can do everything."""

    PAUSE = "pause"
    SPEED = "speed"
    FULL_SPEED = "full-speed"
    STEP = "step"
    UNTIL = "until"


class ClockState(NamedTuple):
    """The state of a controlled clock."""

    now: Instant
    is_paused: bool
    #: Virtual seconds per real second; None for as fast as possible.
    speed: float | None
    #: Where time will pause; None if it will not.
    stop_at: Instant | None = None
    #: Whether time will pause after the next decision.
    is_stepping: bool = False


class ClockControls(Protocol):
    """The controls of a clock. Every method may be called from any thread."""

    @property
    def features(self) -> frozenset[ClockFeature]:
        """What these controls can do."""

    def state(self) -> ClockState:
        """Return the current state."""

    def pause(self) -> None:
        """Stop time until it is resumed."""

    def resume(self) -> None:
        """Let time advance, without a stop."""

    def set_speed(self, speed: float | None) -> None:
        """Let `speed` virtual seconds pass in a real second; None for as fast as possible."""

    def step(self) -> None:
        """Let time advance until pods are bound, and pause once nothing more happens at that instant."""

    def run_until(self, at: Instant) -> None:
        """Let time advance to `at`, and pause there; at once if it has passed."""
