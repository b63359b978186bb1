"""The clock of a live page: its state, and the commands of its buttons."""

from __future__ import annotations

from typing import TypedDict

import msgspec

from batkube.kernel.instants import LATEST_NS, START, Instant
from batkube.page.server import InvalidCommand
from batkube.timing.clock_controls import ClockControls, ClockFeature

_NS_PER_MICROSECOND = 1000
#: Virtual seconds per real second, as for `batkube serve --speed`.
_MIN_SPEED, _MAX_SPEED = 1e-3, 86_400.0


class ClockReport(TypedDict):
    """The state of a clock, as pages receive it; instants are microseconds."""

    paused: bool
    speed: float | None
    stopAt: int | None
    stepping: bool


class Pause(msgspec.Struct, tag="pause", tag_field="action", forbid_unknown_fields=True):
    """Stop time."""


class Resume(msgspec.Struct, tag="resume", tag_field="action", forbid_unknown_fields=True):
    """Let time advance."""


class StepOnce(msgspec.Struct, tag="step", tag_field="action", forbid_unknown_fields=True):
    """Let time advance to the next decision."""


class Until(msgspec.Struct, tag="until", tag_field="action", forbid_unknown_fields=True):
    """Let time advance to an instant, in microseconds."""

    at: int


class Speed(msgspec.Struct, tag="speed", tag_field="action", forbid_unknown_fields=True):
    """Change the speed: virtual seconds per real second, or null for as fast as possible."""

    speed: float | None


_Command = Pause | Resume | StepOnce | Until | Speed
_FEATURES: dict[type[msgspec.Struct], ClockFeature] = {
    Pause: ClockFeature.PAUSE,
    Resume: ClockFeature.PAUSE,
    StepOnce: ClockFeature.STEP,
    Until: ClockFeature.UNTIL,
    Speed: ClockFeature.SPEED,
}


class PageClock:
    """A clock as pages control it. Their instants count from `origin`."""

    def __init__(self, controls: ClockControls, origin: Instant = START) -> None:
        self._controls = controls
        self._origin = origin

    @property
    def features(self) -> list[str]:
        """What the clock can do."""
        return sorted(self._controls.features)

    def read(self) -> tuple[Instant, ClockReport]:
        """Return the instant that the clock has reached, and its state."""
        state = self._controls.state()
        stop_at = None if state.stop_at is None else (state.stop_at - self._origin) // _NS_PER_MICROSECOND
        report = ClockReport(paused=state.is_paused, speed=state.speed, stopAt=stop_at, stepping=state.is_stepping)
        return Instant(max(START, state.now - self._origin)), report

    def carry_out(self, body: bytes) -> tuple[str, bytes]:
        """Carry out a command, and return the state of the clock as JSON. Raises InvalidCommand."""
        try:
            command = msgspec.json.decode(body, type=_Command)
        except msgspec.MsgspecError as error:
            raise InvalidCommand(str(error)) from error
        if _FEATURES[type(command)] not in self._controls.features:
            raise InvalidCommand(f"this clock cannot {_FEATURES[type(command)]}")
        self._apply(command)
        return "application/json", msgspec.json.encode(self.read()[1])

    def _apply(self, command: _Command) -> None:
        controls = self._controls
        match command:
            case Pause():
                controls.pause()
            case Resume():
                controls.resume()
            case StepOnce():
                controls.step()
            case Until(at=at):
                at_ns = at * _NS_PER_MICROSECOND
                if not 0 <= at_ns < LATEST_NS - self._origin:
                    raise InvalidCommand(f"{at / 1e6:g} s is not an instant that this cluster can reach")
                controls.run_until(Instant(self._origin + at_ns))
            case Speed(speed=None):
                if ClockFeature.FULL_SPEED not in controls.features:
                    raise InvalidCommand("this clock follows real time")
                controls.set_speed(None)
            case Speed(speed=float() as speed):
                if not _MIN_SPEED <= speed <= _MAX_SPEED:
                    raise InvalidCommand(f"a speed of {speed:g} is not between {_MIN_SPEED:g} and {_MAX_SPEED:g}")
                controls.set_speed(speed)
