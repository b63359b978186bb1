"""Ranges of numbers and durations: `{from: 0ms, to: 50ms, step: 5ms}` and `{from: 10ms, to: 9s, digits: [1, 2, 5]}`.

Numbers are decimal, so that ten steps of 0.1 end at 1, and labels are short. All values of a range of durations have
one unit: that of the step, or else of the start.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

#: The keys of a range; a mapping that has one of them is a range.
RANGE_KEYS = ("from", "to", "step", "digits")
#: A range with more values is a mistake.
_MAX_VALUES = 100_000

_UNITS_S = {
    "ns": Decimal("1e-9"),
    "us": Decimal("1e-6"),
    "ms": Decimal("1e-3"),
    "s": Decimal(1),
    "m": Decimal(60),
    "min": Decimal(60),
    "h": Decimal(3600),
    "d": Decimal(86400),
    "w": Decimal(604800),
}
_NUMBER = r"[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?"
_UNIT = "|".join(_UNITS_S)
_AMOUNT = re.compile(rf"([+-]?{_NUMBER})\s*({_UNIT})?")
_LENGTH = re.compile(rf"({_NUMBER})\s*({_UNIT})")


@dataclass(frozen=True, slots=True)
class _Amount:
    number: Decimal
    #: "" for a plain number.
    unit: str

    def in_unit(self, unit: str) -> Decimal:
        """Return the number in another unit; 0 needs none."""
        if self.unit == unit or not self.number:
            return self.number
        if not self.unit or not unit:
            raise ValueError("mixes durations with plain numbers; write each with a unit, such as 5ms")
        return self.number * _UNITS_S[self.unit] / _UNITS_S[unit]


def expand_range(content: Mapping[str, object]) -> list[int | float | str]:
    """Return the values of a range. Raises ValueError with a message for the user."""
    for key in ("from", "to"):
        if key not in content:
            raise ValueError(f"a range needs {key!r}")
    if ("step" in content) == ("digits" in content):
        raise ValueError("a range needs either 'step' or 'digits'")
    first, last = _amount(content["from"], "from"), _amount(content["to"], "to")
    step = _amount(content["step"], "step") if "step" in content else None
    unit = next((amount.unit for amount in (step, first, last) if amount is not None and amount.unit), "")
    low, high = first.in_unit(unit), last.in_unit(unit)
    if high < low:
        raise ValueError(f"ends at {content['to']}, before it starts at {content['from']}")
    numbers = _steps(low, high, step.in_unit(unit)) if step else _decades(low, high, _digits(content["digits"]))
    return [_format_value(number, unit) for number in numbers]


def label_in_seconds(label: str) -> Decimal | None:
    """Return the duration in a label with any unit; None if it is not a duration."""
    match = _LENGTH.fullmatch(label.strip())
    return Decimal(match[1]) * _UNITS_S[match[2]] if match else None


def _amount(value: object, key: str) -> _Amount:
    text = repr(value) if isinstance(value, float) else str(value)
    match = None if isinstance(value, bool) else _AMOUNT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{key} {value!r} is neither a number nor a duration such as 250ms")
    return _Amount(Decimal(match[1]), match[2] or "")


def _steps(low: Decimal, high: Decimal, step: Decimal) -> Iterator[Decimal]:
    if step <= 0:
        raise ValueError("the step of a range must be more than 0")
    count = int((high - low) / step) + 1
    if count > _MAX_VALUES:
        raise ValueError(f"has {count:,} values; choose a larger step")
    return (low + number * step for number in range(count))


def _decades(low: Decimal, high: Decimal, digits: Sequence[Decimal]) -> Iterator[Decimal]:
    """Yield digit × 10^k for every k, from `low` to `high`."""
    if low <= 0:
        raise ValueError("a range by 'digits' must start above 0")
    for power in range(low.adjusted() - 1, high.adjusted() + 1):
        for digit in digits:
            number = digit.scaleb(power)
            if low <= number <= high:
                yield number


def _digits(value: object) -> list[Decimal]:
    numbers = value if isinstance(value, list | tuple) else [value]
    digits = [Decimal(str(number)) for number in numbers if isinstance(number, int | float) and 1 <= number < 10]
    if not digits or len(digits) < len(numbers) or sorted(digits) != digits:
        raise ValueError("digits must be an ascending list of numbers from 1 to below 10, such as [1, 2, 5]")
    return digits


def _format_value(number: Decimal, unit: str) -> int | float | str:
    is_whole = number == number.to_integral_value()
    if unit:
        return f"{int(number) if is_whole else format(number.normalize(), 'f')}{unit}"
    return int(number) if is_whole else float(number)
