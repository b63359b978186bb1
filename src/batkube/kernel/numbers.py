"""Parses numbers in untrusted texts in linear time.

Python needs quadratic time, so three megabytes of digits block the process for many seconds. For a float, digits beyond
the first 800 matter only by being zero or not: 767 digits decide every rounding (David Gay; Go does the same,
strconv/decimal.go). For an integer, the caller knows how many digits make sense.
"""

from __future__ import annotations

import re

#: How many significant digits of a float are parsed.
_DIGITS_MAX = 800
#: Texts up to this length are left to Python.
_SHORT = 1000
_DECIMAL = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?)([0-9]+))?", re.ASCII)
_WHOLE = re.compile(r"([+-]?)([0-9]+)", re.ASCII)


def parse_float(text: str) -> float:
    """Parse a decimal number as `float` does. Raises ValueError."""
    match = _DECIMAL.fullmatch(text) if len(text) > _SHORT else None
    if match is None:
        return float(text) if len(text) <= _SHORT else _reject(text)
    sign, whole, fraction, exponent_sign, exponent_digits = match.groups("")
    if not whole and not fraction:
        return _reject(text)
    digits = (whole + fraction).lstrip("0")
    power = len(digits) - len(fraction) + _clamp_exponent(exponent_sign, exponent_digits)
    sticky = "1" if digits[_DIGITS_MAX:].strip("0") else ""
    return float(f"{sign}0.{digits[:_DIGITS_MAX]}{sticky}0e{power}")


def _reject(text: str) -> float:
    raise ValueError(f"not a number: {text[:20]}…")


def _clamp_exponent(sign: str, digits: str) -> int:
    """Return the exponent; one of more than nine digits is replaced by 10^10, which is beyond every float."""
    size = int(digits.lstrip("0")[:10] or "0") if len(digits.lstrip("0")) <= 9 else 10**10
    return -size if sign == "-" else size


def parse_int(text: str, most_digits: int = 20) -> int | None:
    """Parse an integer; None if it has more than `most_digits` digits. Raises ValueError if it is not a number."""
    match = _WHOLE.fullmatch(text)
    if match is None:
        raise ValueError("not a whole number")
    digits = match[2].lstrip("0") or "0"
    return int(match[1] + digits) if len(digits) <= most_digits else None
