"""Parses the speeds of SimGrid hosts: `1Gf`, `16.673E9f`, or one per power state as in `100.0Mf, 88Mf`.

The units are `f` with the prefixes k, M, G, …, `flops` with the prefixes kilo, mega, giga, …, or none (SimGrid 3.32,
xbt_parse_get_speed in src/xbt/xbt_parse_units.cpp).
"""

from __future__ import annotations

import math
import re
from typing import NoReturn

from batkube.kernel.errors import InputError

_PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z", "Y")
_LONG_PREFIXES = ("", "kilo", "mega", "giga", "tera", "peta", "exa", "zetta", "yotta")
_FLOPS = {
    "": 1.0,
    **{f"{prefix}f": 1000.0**power for power, prefix in enumerate(_PREFIXES)},
    **{f"{prefix}flops": 1000.0**power for power, prefix in enumerate(_LONG_PREFIXES)},
}
_SPEED_TEXT = re.compile(r"\s*([0-9]*\.?[0-9]+\.?(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z]*)\s*", re.ASCII)


def default_speed(source: str, at: str, speeds: str, pstate: str | None) -> float:
    """Return the speed of a host in its initial power state, in flops per second. Raise InputError."""
    by_pstate = speeds.split(",")
    number = initial_pstate(source, at, len(by_pstate), pstate)
    flops = _flops(source, at, by_pstate[number])
    # Batsim rejects compute nodes with a speed of 0 (src/machines.cpp).
    if flops == 0:
        _reject(source, at, by_pstate[number])
    return flops


def all_speeds(source: str, at: str, speeds: str) -> tuple[float, ...]:
    """Return the speeds of all power states, in flops per second. Raise InputError."""
    return tuple(_flops(source, at, text) for text in speeds.split(","))


def initial_pstate(source: str, at: str, count: int, pstate: str | None) -> int:
    """Return the initial power state of a host that has `count` of them. Raise InputError."""
    number = pstate or "0"
    if not re.fullmatch(r"[0-9]{1,9}", number) or int(number) >= count:
        raise InputError(
            source,
            at=f"{at}, pstate",
            problem=f"{number!r} is not a power state of this host",
            remedy=f"its power states are 0 to {count - 1}",
        )
    return int(number)


def _flops(source: str, at: str, text: str) -> float:
    match = _SPEED_TEXT.fullmatch(text)
    flops = float(match[1]) * _FLOPS.get(match[2], math.nan) if match else math.nan
    if not 0 <= flops < math.inf:  # false for NaN, too
        _reject(source, at, text)
    return flops


def _reject(source: str, at: str, text: str) -> NoReturn:
    raise InputError(
        source,
        at=f"{at}, speed",
        problem=f"{text.strip()!r} is not a positive speed",
        remedy="write flops per second with a unit, such as 1Gf",
    )
