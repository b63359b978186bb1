"""The lines of a list of Slurm's `sacct`, each as columns by name.

`sacct -P` puts a delimiter between its columns, `|` unless told otherwise, and says nothing of one that stands within a
text: a job may be called `a|b`, and its comment may have several lines. Where one column of the list is a text the rest
of a line tells what belongs to it; where there are several it does not, and the line is refused.

Slurm: man sacct, --parsable2 and --delimiter; src/sacct/print.c writes values as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from batkube.kernel.errors import InputError

JOB_ID = "JobID"
#: What stands for it in lists without it.
_RAW_ID = "JobIDRaw"
REMEDY = "write it with: sacct -a -X -P -o JobID,User,Partition,State,Submit,Start,End,Timelimit,NNodes,AllocCPUS"
#: The columns that hold what users wrote, and so may hold anything.
_FREE_TEXT_COLUMNS = re.compile(
    "(Admin|System|)Comment|Constraints|Container|Extra|JobName|Reason|Reservation|Std(Err|In|Out)|SubmitLine|WCKey|WorkDir"
)
#: A name, and what is between it and the next; columns that are filled up with spaces have no delimiter.
_FIRST_COLUMNS = re.compile(r"[A-Za-z]+(?P<delimiter>[^A-Za-z0-9 ]+)[A-Za-z]")


def delimiter_of(header: str) -> str | None:
    """Return what stands between the columns of a list; None if this is not the first line of one."""
    match = _FIRST_COLUMNS.match(header)
    columns = header.rstrip().split(match["delimiter"]) if match else []
    return match["delimiter"] if match and (JOB_ID in columns or _RAW_ID in columns) else None


class SacctRows:
    """The lines of a list after the first one, as (number, columns by name)."""

    def __init__(self, path: Path, text: Iterator[str]) -> None:
        """Raises InputError when the first line names no columns."""
        header = next(text)
        self._lines = text
        self._path = path
        delimiter = delimiter_of(header)
        if delimiter is None:
            raise InputError(path, at="line 1", problem="has no columns of sacct's", remedy=REMEDY)
        self._delimiter = delimiter
        #: Whether the last field has a delimiter behind it, too, as with `-p` (--parsable).
        self._has_trailing_delimiter = header.rstrip().endswith(delimiter)
        columns = self._split(header)
        self.columns = columns if JOB_ID in columns else [JOB_ID if one == _RAW_ID else one for one in columns]
        texts = [column for column in self.columns if _FREE_TEXT_COLUMNS.fullmatch(column)]
        self._free_text_index = self.columns.index(texts[0]) if len(texts) == 1 else None
        self._remedy = (
            f"leave out {', '.join(texts)}: such a text may hold {delimiter!r} or a line break"
            if texts
            else "write it with -P (--parsable2)"
        )

    def __iter__(self) -> Iterator[tuple[int, dict[str, str]]]:
        for number, line in enumerate(self._lines, 2):
            if line.strip():
                yield number, self._cells(number, line)

    def _cells(self, number: int, line: str) -> dict[str, str]:
        values = self._split(line)
        more = len(values) - len(self.columns)
        if more > 0 and self._free_text_index is not None:
            end = self._free_text_index + more + 1
            values[self._free_text_index : end] = [self._delimiter.join(values[self._free_text_index : end])]
        if len(values) != len(self.columns):
            problem = f"does not have the {len(self.columns)} fields of the header"
            raise InputError(self._path, at=f"line {number}", problem=problem, remedy=self._remedy)
        return dict(zip(self.columns, map(str.strip, values), strict=True))

    def _split(self, line: str) -> list[str]:
        line = line.rstrip("\r\n")
        return (line.removesuffix(self._delimiter) if self._has_trailing_delimiter else line).split(self._delimiter)
