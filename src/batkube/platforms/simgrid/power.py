"""The power of hosts, from the properties of a SimGrid platform.

wattage_per_state   `IDLE:FULL` or `IDLE:LOWEST:FULL` in watts for each power state, separated by commas
                    (SimGrid 3.32: src/plugins/host_energy.cpp)
wattage_off         the power of a host that is off; not used
sleep_pstates       `SLEEP:OFF:ON`, separated by commas: a sleep state, and the transition states into it and out of it.
                    A transition takes as long as one flop at its speed (Batsim: docs/input-platform.rst).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from batkube.kernel.errors import InputError
from batkube.platforms.network import Host

#: The property with the power of a host.
WATTAGE = "wattage_per_state"


class PowerDraw(NamedTuple):
    """The power of a host in one power state, in watts."""

    idle: float
    #: With the smallest load.
    lowest: float
    #: With all cores busy.
    full: float

    def at(self, load: float) -> float:
        """Return the power at a load from 0 to 1."""
        return self.idle if load <= 0 else self.lowest + min(load, 1.0) * (self.full - self.lowest)


class SleepTransitions(NamedTuple):
    """The power states that represent the transitions into a sleep state and out of it."""

    off: int
    on: int


@dataclass(frozen=True, slots=True)
class HostPower:
    """The power of a host."""

    #: By power state.
    draws: tuple[PowerDraw, ...]
    #: By sleep state.
    sleep_states: dict[int, SleepTransitions]

    def can_compute_in(self, pstate: int) -> bool:
        """Return whether jobs can run in a power state: it exists, and is neither sleep nor a transition."""
        others = [state for sleep, transitions in self.sleep_states.items() for state in (sleep, *transitions)]
        return 0 <= pstate < len(self.draws) and pstate not in others


def power_of(source: str, host: Host) -> HostPower | None:
    """Return the power of a host, or None if the file does not define it. Raise InputError."""
    text = host.properties.get(WATTAGE)
    if text is None:
        return None
    draws = tuple(_parse_draw(source, host, part) for part in text.split(","))
    if len(draws) != len(host.speeds_flops):
        _reject(source, host, "wattage_per_state", f"{len(draws)} entries for {len(host.speeds_flops)} power states")
    sleeps = {}
    for part in filter(None, host.properties.get("sleep_pstates", "").split(",")):
        states = part.split(":")
        if len(states) != 3 or not all(s.strip().isdigit() and int(s) < len(draws) for s in states):
            _reject(source, host, "sleep_pstates", f"{part!r} is not SLEEP:OFF:ON with numbers of power states")
        sleep, off, on = map(int, states)
        sleeps[sleep] = SleepTransitions(off, on)
    return HostPower(draws, sleeps)


def _parse_draw(source: str, host: Host, text: str) -> PowerDraw:
    try:
        watts = [float(part) for part in text.split(":")]
    except ValueError:
        watts = []
    if len(watts) not in (2, 3) or not all(0 <= one < math.inf for one in watts):
        _reject(source, host, "wattage_per_state", f"{text.strip()!r} is not IDLE:FULL or IDLE:LOWEST:FULL in watts")
    # With two values, the power at the smallest load is that of the idle host.
    return PowerDraw(watts[0], watts[-2], watts[-1])


def _reject(source: str, host: Host, key: str, problem: str) -> NoReturn:
    raise InputError(source, at=f"host {host.name!r}, {key}", problem=problem)
