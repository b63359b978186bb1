"""Split the output of Slurm's `sacct` into rows of columns by name.

`sacct -P` separates columns by a delimiter, by default `|`, and does not escape it in values: a job can be called
`a|b`, and its comment can have several lines. If the list has a single free-text column, the other columns determine
its extent. With several free-text columns the line is ambiguous, and it is rejected.

Slurm: man sacct, --parsable2 and --delimiter; src/sacct/print.c prints values unescaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from batkube.kernel.errors import InputError

JOB_ID = "JobID"
#: Replaces JobID in lists without it.
_RAW_ID = "JobIDRaw"
REMEDY = "write it with: sacct -a -X -P -o JobID,User,Partition,State,Submit,Start,End,Timelimit,NNodes,AllocCPUS"
#: Free-text columns: users choose their values.
_FREE_TEXT_COLUMNS = re.compile(
    "(Admin|System|)Comment|Constraints|Container|Extra|JobName|Reason|Reservation|Std(Err|In|Out)|SubmitLine|WCKey|WorkDir"
)
#: The first column's name and the delimiter after it. Without -P, columns are padded with spaces and have none.
_FIRST_COLUMNS = re.compile(r"[A-Za-z]+(?P<delimiter>[^A-Za-z0-9 ]+)[A-Za-z]")


def delimiter_of(header: str) -> str | None:
    """Return the delimiter of a list; None if `header` is not the header of one."""
    match = _FIRST_COLUMNS.match(header)
    columns = header.rstrip().split(match["delimiter"]) if match else []
    return match["delimiter"] if match and (JOB_ID in columns or _RAW_ID in columns) else None


class SacctRows:
    """The lines of a list after the first one, as (number, columns by name)."""

    def __init__(self, path: Path, text: Iterator[str]) -> None:
        """Read the header. Raises InputError if the first line is not a header."""
        header = next(text)
        self._lines = text
        self._path = path
        delimiter = delimiter_of(header)
        if delimiter is None:
            raise InputError(path, at="line 1", problem="is not a header of sacct", remedy=REMEDY)
        self._delimiter = delimiter
        #: Whether lines end with a delimiter, as with `-p` (--parsable).
        self._has_trailing_delimiter = header.rstrip().endswith(delimiter)
        columns = self._split(header)
        self.columns = columns if JOB_ID in columns else [JOB_ID if name == _RAW_ID else name for name in columns]
        texts = [column for column in self.columns if _FREE_TEXT_COLUMNS.fullmatch(column)]
        self._free_text_index = self.columns.index(texts[0]) if len(texts) == 1 else None
        self._remedy = (
            f"list without {', '.join(texts)}: such a text can contain {delimiter!r} or a line break"
            if texts
            else "run sacct with -P (--parsable2)"
        )

    def __iter__(self) -> Iterator[tuple[int, dict[str, str]]]:
        for number, line in enumerate(self._lines, 2):
            if line.strip():
                yield number, self._cells(number, line)

    def _cells(self, number: int, line: str) -> dict[str, str]:
        values = self._split(line)
        surplus = len(values) - len(self.columns)
        if surplus > 0 and self._free_text_index is not None:
            end = self._free_text_index + surplus + 1
            values[self._free_text_index : end] = [self._delimiter.join(values[self._free_text_index : end])]
        if len(values) != len(self.columns):
            problem = f"has {len(values)} fields, but the header has {len(self.columns)}"
            raise InputError(self._path, at=f"line {number}", problem=problem, remedy=self._remedy)
        return dict(zip(self.columns, map(str.strip, values), strict=True))

    def _split(self, line: str) -> list[str]:
        line = line.rstrip("\r\n")
        return (line.removesuffix(self._delimiter) if self._has_trailing_delimiter else line).split(self._delimiter)
