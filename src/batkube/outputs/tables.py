"""Reading CSV files strictly, and as text, before anything is made of them.

Every cell stays text until its column is known: a job called `NA` or `007` keeps its name. A row that does not match
the header is an error with its line, never a guess.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from batkube.kernel.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


def read_text_table(path: Path) -> pd.DataFrame:
    """Return the file's cells as text, a column per header; `attrs["lines"]` holds each row's line number."""
    import pandas as pd

    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            header = next(reader, [])
            rows, lines = [], []
            for row in reader:
                if not row:
                    continue
                if len(row) != len(header):
                    raise InputError(
                        path,
                        at=f"line {reader.line_num}",
                        problem=f"has {len(row)} fields where the header names {len(header)}",
                    )
                rows.append(row)
                lines.append(reader.line_num)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(path, problem=f"cannot be read as CSV: {_reason(error)}") from error
    if not header:
        raise InputError(path, problem="is empty", remedy="a CSV file begins with a line of column names")
    if len(set(header)) < len(header):
        raise InputError(path, at="line 1", problem="names a column twice")
    columns: Sequence[Sequence[str]] = list(zip(*rows, strict=True)) if rows else [()] * len(header)
    frame = pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in zip(header, columns, strict=True)})
    frame.attrs["lines"] = lines
    return frame


def to_numbers(frame: pd.DataFrame, column: str, path: Path) -> pd.Series[float]:
    """Return a text column as floats; empty cells and infinities (Batsim's stretch of empty jobs) become NaN."""
    import pandas as pd

    text = frame[column]
    numbers = pd.to_numeric(text, errors="coerce").astype("float64")
    suspect = numbers.isna() & ~text.str.strip().str.lower().isin(["", "nan", "-nan"])
    if suspect.any():
        row = int(suspect.to_numpy().argmax())
        raise InputError(
            path,
            at=f"line {frame.attrs['lines'][row]}, column {column}",
            problem=f"{text.iloc[row]!r} is not a number",
        )
    return numbers.where(numbers.abs() != float("inf"))


def _reason(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
