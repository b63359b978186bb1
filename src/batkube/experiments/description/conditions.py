"""Conditions on rows, as written in figures: `where: {workload: burst, makespan: "< 5000", seed: [1, 2]}`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from batkube.kernel.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

_COMPARISON = re.compile(r"(<=|>=|!=|<|>)\s*(.+)")
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on one column of a row."""

    column: str
    #: `=` (any of the values), `!=` (none of them), or a comparison with the only value.
    sign: str
    values: tuple[str, ...]

    def __str__(self) -> str:
        sign, values = ("is", " or ") if self.sign == "=" else ("is not", " or ")
        alternatives = values.join(self.values)
        return f"{self.column} {self.sign if self.sign in _OPERATORS else sign} {alternatives}"

    def matches(self, cell: object) -> bool:
        """Return whether a cell fulfils it; numbers are compared as numbers; an empty cell fulfils no comparison."""
        if self.sign in _OPERATORS:
            number = as_number(cell)
            return number is not None and _OPERATORS[self.sign](number, float(self.values[0]))
        return any(_equal(cell, value) for value in self.values) is (self.sign == "=")


def read_conditions(content: object, source: Path, at: str) -> tuple[Condition, ...]:
    """Return the conditions of a figure's `where`. Raises InputError."""
    if content is None:
        return ()
    if not isinstance(content, Mapping):
        raise InputError(source, at=at, problem="is not a mapping of columns to values", remedy="{workload: burst}")
    return tuple(_condition(str(column), value, source, f"{at}.{column}") for column, value in content.items())


def matching_rows(frame: pd.DataFrame, conditions: tuple[Condition, ...]) -> pd.DataFrame:
    """Return the rows that fulfil all conditions; the columns must exist."""
    for condition in conditions:
        frame = frame[frame[condition.column].map(condition.matches).astype(bool)]
    return frame


def as_number(cell: object) -> float | None:
    """Return a cell as a finite number; None if it is not one."""
    try:
        number = float(str(cell))
    except ValueError:
        return None
    return number if number - number == 0 else None


def _condition(column: str, value: object, source: Path, at: str) -> Condition:
    if isinstance(value, Mapping) or value is None or value == []:
        raise InputError(source, at=at, problem="is not a condition", remedy='write a value, a list, or "< 5000"')
    if isinstance(value, list):
        return Condition(column, "=", tuple(_text(item) for item in value))
    match = _COMPARISON.fullmatch(str(value).strip()) if isinstance(value, str) else None
    if match is None:
        return Condition(column, "=", (_text(value),))
    sign, value = match.groups()
    if sign in _OPERATORS and as_number(value) is None:
        raise InputError(source, at=at, problem=f"{value!r} is not a number")
    return Condition(column, sign, (value,))


def _text(value: object) -> str:
    """Return a value as in labels: YAML's true is `true`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _equal(cell: object, value: str) -> bool:
    number = as_number(value)
    return str(cell) == value or (number is not None and as_number(cell) == number)
