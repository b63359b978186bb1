"""Speeds of SimGrid hosts: `1Gf`, `16.673E9f`, or one per power state as in `100.0Mf, 88Mf`.

Units are SimGrid's (xbt_parse_units): flops per second as `f` or `flops`, with k, M, G, … before the one and kilo,
mega, giga, … before the other. Files of SimGrid 3 give plain numbers.
"""

from __future__ import annotations

import math
import re

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
    """Return the speed of the power state a host begins in, in flops per second. Raises InputError."""
    by_pstate = speeds.split(",")
    number = pstate or "0"
    if not re.fullmatch(r"[0-9]{1,9}", number) or int(number) >= len(by_pstate):
        raise InputError(
            source,
            at=f"{at}, pstate",
            problem=f"{number!r} is not a power state of this host",
            remedy=f"its power states are 0 to {len(by_pstate) - 1}",
        )
    match = _SPEED_TEXT.fullmatch(by_pstate[int(number)])
    flops = float(match[1]) * _FLOPS.get(match[2], math.nan) if match else math.nan
    # Batsim refuses compute nodes that do not compute (src/machines.cpp); the comparison is false for nan too.
    if not 0 < flops < math.inf:
        raise InputError(
            source,
            at=f"{at}, speed",
            problem=f"{by_pstate[int(number)].strip()!r} is not a positive speed",
            remedy="write flops per second with a unit, such as 1Gf",
        )
    return flops
