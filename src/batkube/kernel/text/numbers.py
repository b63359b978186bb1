"""Numbers out of texts that somebody else wrote, in a time that grows with the text and no faster.

Python reads n digits in a time of n², so three megabytes of digits are many seconds of silence. For a float, digits
beyond the first 800 can only say whether there is anything at all behind them: 767 decide every rounding (David Gay;
Go reads decimals the same way, strconv/decimal.go). For an integer there is always a largest one that is meant.
"""

from __future__ import annotations

import re

#: How many significant digits a float is read from.
_DIGITS_MAX = 800
#: Texts this short are read by Python at once.
_SHORT = 1000
_DECIMAL = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?)([0-9]+))?", re.ASCII)
_WHOLE = re.compile(r"([+-]?)([0-9]+)", re.ASCII)


def parse_float(text: str) -> float:
    """Return the float nearest to a decimal number, as `float`; raises ValueError for what is none."""
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
    """Return an exponent; one of more than nine digits is beyond every float and every text, whatever it is."""
    size = int(digits.lstrip("0")[:10] or "0") if len(digits.lstrip("0")) <= 9 else 10**10
    return -size if sign == "-" else size


def parse_int(text: str, most_digits: int = 20) -> int | None:
    """Return a whole number; None for one of more digits than any that is meant. Raises ValueError for no number."""
    match = _WHOLE.fullmatch(text)
    if match is None:
        raise ValueError("not a whole number")
    digits = match[2].lstrip("0") or "0"
    return int(match[1] + digits) if len(digits) <= most_digits else None
