"""Parses the bandwidths and latencies of SimGrid files: `125MBps`, `10Gbps`, `50us`.

Bandwidths have decimal or binary prefixes, times are from ps to w (weeks); without a unit, they are bytes per second
and seconds (SimGrid 3.32, src/xbt/xbt_parse_units.cpp).
"""

from __future__ import annotations

import math
import re

from batkube.kernel.errors import InputError

_DECIMAL = ("", "k", "M", "G", "T", "P", "E", "Z", "Y")
_BINARY = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi")
_PREFIXES = {
    **{prefix: 1000.0**power for power, prefix in enumerate(_DECIMAL)},
    **{prefix: 1024.0**power for power, prefix in enumerate(_BINARY, start=1)},
    "K": 1000.0,
}
_BANDWIDTHS = {
    "": 1.0,
    **{f"{prefix}Bps": factor for prefix, factor in _PREFIXES.items()},
    **{f"{prefix}bps": factor / 8 for prefix, factor in _PREFIXES.items()},
}
_TIMES = {
    "": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12,
    "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0,
}  # fmt: skip
_AMOUNT = re.compile(r"\s*([0-9]*\.?[0-9]+\.?(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z]*)\s*", re.ASCII)


def bandwidth(source: str, at: str, text: str) -> float:
    """Return a bandwidth in bytes per second. Raise InputError."""
    return _amount(
        source, at, text, _BANDWIDTHS, "is not a bandwidth", "write it with a unit, such as 125MBps or 1Gbps"
    )


def latency(source: str, at: str, text: str) -> float:
    """Return a latency in seconds. Raise InputError."""
    return _amount(source, at, text, _TIMES, "is not a latency", "write it with a unit, such as 50us")


def _amount(source: str, at: str, text: str, units: dict[str, float], problem: str, remedy: str) -> float:
    match = _AMOUNT.fullmatch(text)
    amount = float(match[1]) * units.get(match[2], math.nan) if match else math.nan
    if not 0 <= amount < math.inf:
        raise InputError(source, at=at, problem=f"{text!r} {problem}", remedy=remedy)
    return amount
