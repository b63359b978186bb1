"""What hosts draw, as properties of SimGrid platforms say it (SimGrid: plugin host_energy; Batsim: "Energy").

wattage_per_state   per power state `IDLE:FULL` or `IDLE:LOWEST:FULL`, in watts, joined by commas
wattage_off         when it is off
sleep_pstates       `SLEEP:OFF:ON`, joined by commas: a power state of sleep, and those that stand for the ways into it
                    and out of it. Each way takes as long as one flop at the speed of its state.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from batkube.kernel.errors import InputError
from batkube.platforms.network import Host

#: The property that says what a host draws.
WATTAGE = "wattage_per_state"


class PowerDraw(NamedTuple):
    """What a power state draws, in watts."""

    idle: float
    #: With a load, however small.
    lowest: float
    #: With all cores busy.
    full: float

    def at(self, load: float) -> float:
        """Return the watts at a load from 0 to 1."""
        return self.idle if load <= 0 else self.lowest + min(load, 1.0) * (self.full - self.lowest)


class SleepTransitions(NamedTuple):
    """The power states that stand for the ways into a power state of sleep, and out of it."""

    off: int
    on: int


@dataclass(frozen=True, slots=True)
class HostPower:
    """What one host draws."""

    #: By power state.
    draws: tuple[PowerDraw, ...]
    #: By power state of sleep.
    sleep_states: dict[int, SleepTransitions]

    def can_compute_in(self, pstate: int) -> bool:
        """Return whether jobs can run in a power state: it is neither sleep nor on the way there."""
        ways = [state for sleep, way in self.sleep_states.items() for state in (sleep, *way)]
        return 0 <= pstate < len(self.draws) and pstate not in ways


def power_of(source: str, host: Host) -> HostPower | None:
    """Return what a host draws; None when the file does not say. Raises InputError."""
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
    # With two values the host draws as much with the smallest load as without any.
    return PowerDraw(watts[0], watts[-2], watts[-1])


def _reject(source: str, host: Host, key: str, problem: str) -> NoReturn:
    raise InputError(source, at=f"host {host.name!r}, {key}", problem=problem)
