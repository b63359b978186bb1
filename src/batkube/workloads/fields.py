"""Check the types of values in decoded JSON and YAML, with errors that name the place.

A `Place` is a file and a path in it, such as `jobs[17].subtime`. All readers of structured files raise their errors
through it, so the messages are uniform.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import NoReturn

import msgspec

from batkube.kernel.errors import InputError
from batkube.kernel.instants import Duration, seconds
from batkube.kernel.quantities import parse_amount

#: Decimals with more digits before the point are not accepted as whole numbers.
_MAX_DIGITS = 18


class Place(msgspec.Struct, frozen=True, gc=False):
    """The position of a value in a file. Cheap to create: its text is only assembled for a message."""

    path: Path
    parent: Place | None = None
    key: str | int = ""

    def __truediv__(self, key: str) -> Place:
        return Place(self.path, self, key)

    def __getitem__(self, index: int) -> Place:
        return Place(self.path, self, index)

    @property
    def at(self) -> str:
        """The path in the file, such as `jobs[17].subtime`."""
        before = self.parent.at if self.parent else ""
        if isinstance(self.key, int):
            return f"{before}[{self.key}]"
        return f"{before}.{self.key}" if before else self.key

    def reject(self, problem: str, remedy: str | None = None) -> NoReturn:
        """Raise InputError for the value at this place."""
        raise InputError(self.path, at=self.at or None, problem=problem, remedy=remedy)

    def reject_type(self, value: object, expected: str, remedy: str | None = None) -> NoReturn:
        """Raise InputError because `value` is missing or is not of the `expected` type."""
        if value is None and not self.at:
            self.reject("is empty", remedy)
        self.reject("is missing" if value is None else f"is {abbreviated(value)}, which is not {expected}", remedy)


def finite_number(place: Place, value: object) -> int | Decimal:
    """Return a finite number, exactly as written; a float is converted through its shortest decimal text."""
    finite = _finite(value)
    if finite is None:
        place.reject_type(value, "a finite number")
    return finite


def _finite(value: object) -> int | Decimal | None:
    if type(value) is int:
        return value
    if isinstance(value, float):
        value = Decimal(repr(value))
    return value if isinstance(value, Decimal) and value.is_finite() else None


def non_negative(place: Place, value: object) -> int | Decimal:
    """Return a finite number that is at least 0."""
    amount = finite_number(place, value)
    if amount < 0:
        place.reject(f"is {amount}, which is negative")
    return amount


def non_negative_float(place: Place, value: object) -> float:
    """Return a number of at least 0 as a float, for quantities of work."""
    amount = float(non_negative(place, value))
    if not math.isfinite(amount):
        place.reject(f"is {value}, which is too large; the maximum is {sys.float_info.max:.1e}")
    return amount


def quantity(place: Place, resource: str, value: object) -> int:
    """Parse a Kubernetes quantity of `resource` into the units of workloads (millicores, bytes, pieces)."""
    if isinstance(value, Decimal):
        value = str(value)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        place.reject_type(value, "a quantity", "write a number or a text such as 500m or 4Gi")
    try:
        return parse_amount(resource, value)
    except ValueError as error:
        place.reject(str(error))


def duration(place: Place, value: object) -> Duration:
    """Return a duration, or a time since the start, of at least 0; the file has seconds."""
    try:
        return seconds(non_negative(place, value))
    except ValueError as error:
        place.reject(str(error))


def integer(place: Place, value: object) -> int:
    """Return a whole number; `4.0` is accepted as 4."""
    finite = _finite(value)
    if isinstance(finite, Decimal) and finite.adjusted() <= _MAX_DIGITS and finite == finite.to_integral_value():
        return int(finite)
    if not isinstance(finite, int):
        place.reject_type(value, "a whole number")
    return finite


def positive_integer(place: Place, value: object) -> int:
    """Return a whole number that is at least 1."""
    count = integer(place, value)
    if count < 1:
        place.reject(f"is {count}, but must be at least 1")
    return count


def string(place: Place, value: object) -> str:
    """Return a string."""
    if not isinstance(value, str):
        place.reject_type(value, "a text")
    return value


def mapping(place: Place, value: object) -> Mapping[str, object]:
    """Return a mapping (a JSON object)."""
    if not isinstance(value, Mapping):
        place.reject_type(value, "an object with named fields")
    return value


def array(place: Place, value: object) -> list[object]:
    """Return a list."""
    if not isinstance(value, list):
        place.reject_type(value, "a list")
    return value


def abbreviated(value: object) -> str:
    """Return a value for a message: shortened, or `missing` for None."""
    if value is None:
        return "missing"
    whole_text = str(value) if isinstance(value, Decimal) else repr(value)
    return whole_text if len(whole_text) <= 60 else f"{whole_text[:57]}…"
