"""Strict reading of CSV files, with every cell as text.

A cell stays text until the type of its column is known: a job called `NA` or `007` keeps its name. A row that does not
match the header is an error with its line number, never a guess.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from batkube.kernel.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class TextTable:
    """The cells of a CSV file by column, and the line each row came from."""

    path: Path
    columns: dict[str, Sequence[str]]
    lines: list[int]

    def text(self, column: str) -> pd.Series[str]:
        """Return a column as it is in the file."""
        import pandas as pd

        return pd.Series(self.columns[column], dtype=object)

    def numbers(self, column: str) -> pd.Series[float]:
        """Return a column as floats; empty cells and Batsim's `inf` and `-nan` (divisions by zero) become NaN."""
        import pandas as pd

        text = self.text(column)
        numbers = pd.to_numeric(text, errors="coerce").astype("float64")
        is_nan = numbers.isna()
        if is_nan.any():
            is_invalid = is_nan & ~text.str.strip().str.lower().isin(["", "nan", "-nan"])
            if is_invalid.any():
                row = int(is_invalid.to_numpy().argmax())
                raise InputError(self.path, at=self.place(row, column), problem=f"{text[row]!r} is not a number")
        return numbers.where(numbers.abs() != float("inf"))

    def place(self, row: int, column: str) -> str:
        """Return where a cell is, for error messages."""
        return f"line {self.lines[row]}, column {column}"

    def require(self, names: Sequence[str], remedy: str) -> None:
        """Raise InputError unless the file has all these columns."""
        missing = [name for name in names if name not in self.columns]
        if missing:
            plural = "s" if len(missing) > 1 else ""
            raise InputError(
                self.path, at="line 1", problem=f"lacks the column{plural} {', '.join(missing)}", remedy=remedy
            )


def read_table(path: Path) -> TextTable:
    """Read a CSV file with a header."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            header = next(reader, [])
            rows, lines = [], []
            for row in reader:
                if row:
                    rows.append(row)
                    lines.append(reader.line_num)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(path, problem=f"cannot be read as CSV: {reason}") from error
    if not header:
        raise InputError(path, problem="is empty", remedy="the first line of a CSV file has the names of the columns")
    if len(set(header)) < len(header):
        raise InputError(path, at="line 1", problem="has two columns with the same name")
    for line, row in zip(lines, rows, strict=True):
        if len(row) != len(header):
            raise InputError(
                path, at=f"line {line}", problem=f"has {len(row)} fields, but the header has {len(header)}"
            )
    cells: Sequence[Sequence[str]] = list(zip(*rows, strict=True)) if rows else [()] * len(header)
    return TextTable(path, dict(zip(header, cells, strict=True)), lines)
