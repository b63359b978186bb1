"""Commands of pages to a clock: checked before they reach it."""

from __future__ import annotations

import json

import pytest

from batkube.kernel.instants import Instant, seconds
from batkube.page.live.clock_commands import PageClock
from batkube.page.server import InvalidCommand
from batkube.timing.clock_controls import ClockFeature
from batkube.timing.run_clock import PausableClock


class ClockWithoutSteps(PausableClock):
    """A clock that follows real time, as that of a served cluster."""

    features = frozenset((ClockFeature.PAUSE, ClockFeature.SPEED, ClockFeature.UNTIL))


def send(clock: PageClock, **command: object) -> dict[str, object]:
    report: dict[str, object] = json.loads(clock.carry_out(json.dumps(command).encode())[1])
    return report


def test_commands_change_the_clock_and_return_its_state() -> None:
    clock = PageClock(PausableClock())

    assert send(clock, action="pause") == {"paused": True, "speed": None, "stopAt": None, "stepping": False}
    assert send(clock, action="speed", speed=60.0)["speed"] == 60
    assert send(clock, action="speed", speed=60)["paused"] is True
    assert send(clock, action="resume")["paused"] is False
    assert send(clock, action="step")["stepping"] is True
    assert send(clock, action="until", at=2_500_000)["stopAt"] == 2_500_000
    assert send(clock, action="speed", speed=None)["speed"] is None


def test_instants_count_from_the_origin_of_the_page() -> None:
    run_clock = PausableClock()
    clock = PageClock(run_clock, origin=Instant(seconds(1000)))

    assert send(clock, action="until", at=3_000_000)["stopAt"] == 3_000_000
    assert run_clock.state().stop_at == seconds(1003)
    assert clock.read()[0] == 0


@pytest.mark.parametrize(
    "command",
    [
        {"action": "stop"},
        {"action": "pause", "more": 1},
        {"action": "until"},
        {"action": "until", "at": -1},
        {"action": "until", "at": 10**18},
        {"action": "until", "at": "soon"},
        {"action": "speed", "speed": 0},
        {"action": "speed", "speed": -1},
        {"action": "speed", "speed": 1e9},
        {"action": "speed", "speed": "fast"},
        [],
    ],
)
def test_other_commands_are_rejected_and_change_nothing(command: object) -> None:
    run_clock = PausableClock()
    before = run_clock.state()

    with pytest.raises(InvalidCommand):
        PageClock(run_clock).carry_out(json.dumps(command).encode())
    assert run_clock.state() == before


def test_a_clock_is_not_asked_for_what_it_cannot_do() -> None:
    clock = PageClock(ClockWithoutSteps())

    assert clock.features == ["pause", "speed", "until"]
    with pytest.raises(InvalidCommand, match="cannot step"):
        send(clock, action="step")
    with pytest.raises(InvalidCommand, match="follows real time"):
        send(clock, action="speed", speed=None)
