"""Power states: switches that are pending, completed, or rejected.

Each case is run with our Batsim, and with the real one if a `batsim` is on the PATH.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.batsim.platforms import silent_platform
from tests.batsim.simulator.simulations import (
    DELAY,
    TASK,
    Decision,
    EitherBatsim,
    Reaction,
    on_first_machines,
)

ONE, PROFILES = [{"profile": "delay"}], {"delay": DELAY, "task": TASK}


#: Machines with two speeds (0, 1) and a sleep state (2); the transition to sleep (3) takes 2 s, that back (4) 20 s.
SPEEDS = 'speed="1Gf,0.5Gf,1e-9Mf,0.5f,0.05f" pstate="0"'


SLEEPY = (
    '<prop id="wattage_per_state" value="30:35:100, 20:20:60, 9.75:9.75:9.75, 200.9:200.9:200.9, 425.1:425.1:425.1"/>'
    '<prop id="wattage_off" value="9.75"/><prop id="sleep_pstates" value="2:3:4"/>'
)


def switching(*requests: tuple[float, str, str]) -> Reaction:
    """Execute jobs on the first machines, and request power states at dates."""
    remaining = iter(requests)

    def react(kind: str, data: Mapping[str, Any]) -> list[Decision]:
        if kind == "SIMULATION_BEGINS":
            return [("CALL_ME_LATER", {"timestamp": date}) for date, _, _ in requests]
        if kind == "REQUESTED_CALL":
            _, machines, state = next(remaining)
            return [("SET_RESOURCE_STATE", {"resources": machines, "state": state})]
        return on_first_machines(kind, data)

    return react


def switches(events: Sequence[tuple[float, str, Mapping[str, Any]]]) -> list[tuple[float, str, str]]:
    return [(at, data["resources"], data["state"]) for at, kind, data in events if kind == "RESOURCE_STATE_CHANGED"]


def test_a_switch_that_is_not_possible_now_stays_pending_without_effect(batsim: EitherBatsim) -> None:
    """Machine 1 is switching off when it is requested to switch off and on: both requests stay pending.

    The second request to sleep is completed by the next sleep of machine 1, whose own request then stays pending.
    """
    batsim.platform = silent_platform(batsim.platform.parent, 4, more=SPEEDS, inside=SLEEPY)
    requests = (1, "0-1", "2"), (1.5, "1-2", "2"), (1.7, "1", "0"), (1.8, "3", "4"), (60, "0-2", "0"), (120, "1", "2")

    events = batsim([{"profile": "delay", "subtime": 300}], PROFILES, "-E", react=switching(*requests))

    assert not batsim.failure
    assert switches(events) == [(3.0, "0-1", "2"), (80.0, "1", "0"), (122.0, "1-2", "2")]


@pytest.mark.parametrize("state", ["9", "-1"])
def test_a_power_state_that_does_not_exist_is_rejected(state: str, batsim: EitherBatsim) -> None:
    batsim.platform = silent_platform(batsim.platform.parent, 4, more=SPEEDS, inside=SLEEPY)

    batsim(ONE, PROFILES, "-E", react=switching((1, "1", state)))

    assert batsim.failure
