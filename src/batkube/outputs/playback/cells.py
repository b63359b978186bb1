"""Parses the cells of a run's tables exactly, without binary floats: instants, numbers and amounts."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from batkube.kernel.errors import InputError
from batkube.kernel.instants import Instant, seconds
from batkube.kernel.quantities import CPU, GPU, MEMORY, PODS, parse_amount
from batkube.outputs.measures.run_data.text_table import TextTable

#: The columns of nodes.csv and pods.csv that have amounts, with their resources.
REQUEST_COLUMNS = {"cpu": CPU, "memory": MEMORY, "gpus": GPU}
CAPACITY_COLUMNS = {**REQUEST_COLUMNS, "pods": PODS}
_WHOLE_NUMBER = re.compile("-?[0-9]{1,19}")
#: Nanoseconds in the last digit of `format_seconds`.
_RESOLUTION = 1000


def at_resolution(at: int) -> Instant:
    """Round an instant half up to a microsecond, the resolution of the tables, as `format_seconds` does."""
    rounded = (abs(at) + _RESOLUTION // 2) // _RESOLUTION * _RESOLUTION
    return Instant(-rounded if at < 0 else rounded)


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of a table, by column and row."""

    table: TextTable

    def __len__(self) -> int:
        return len(self.table.lines)

    def texts(self, column: str) -> Sequence[str]:
        """Return a column; empty texts if the file does not have it."""
        return self.table.columns.get(column) or [""] * len(self)

    def instants(self, column: str) -> list[Instant | None]:
        """Return a column of seconds; None where a cell is empty."""
        # Pods of a job share their times, so most cells are converted once.
        parsed: dict[str, Instant | None] = {"": None}
        instants = []
        for row, text in enumerate(self.texts(column)):
            if text not in parsed:
                parsed[text] = self._instant(row, column, text)
            instants.append(parsed[text])
        return instants

    def present_instants(self, column: str) -> list[Instant]:
        """Return a column of seconds. Raises InputError if a cell is empty."""
        instants = []
        for row, instant in enumerate(self.instants(column)):
            if instant is None:
                raise InputError(self.table.path, at=self.table.place(row, column), problem="is empty")
            instants.append(instant)
        return instants

    def _instant(self, row: int, column: str, text: str) -> Instant:
        try:
            return at_resolution(seconds(text))
        except ValueError as error:
            raise InputError(self.table.path, at=self.table.place(row, column), problem=str(error)) from error

    def counts(self, column: str) -> list[int]:
        """Return a column of whole numbers; 0 where a cell is empty."""
        counts = []
        for row, text in enumerate(self.texts(column)):
            if text and not _WHOLE_NUMBER.fullmatch(text):
                problem = f"{text!r} is not a whole number"
                raise InputError(self.table.path, at=self.table.place(row, column), problem=problem)
            counts.append(int(text or 0))
        return counts

    def amounts(self, columns: dict[str, str]) -> list[dict[str, int]]:
        """Return the amounts of each row by resource; `columns` maps columns to resources. Equal rows share a dict."""
        parsed: dict[tuple[str, ...], dict[str, int]] = {}
        cells = zip(*(self.texts(column) for column in columns), strict=True)
        amounts = []
        for row, texts in enumerate(cells):
            if texts not in parsed:
                parsed[texts] = self._amounts(row, dict(zip(columns, texts, strict=True)), columns)
            amounts.append(parsed[texts])
        return amounts

    def _amounts(self, row: int, cells: dict[str, str], resources: dict[str, str]) -> dict[str, int]:
        amounts = {}
        for column, text in cells.items():
            if text:
                try:
                    amounts[resources[column]] = parse_amount(resources[column], text)
                except ValueError as error:
                    raise InputError(self.table.path, at=self.table.place(row, column), problem=str(error)) from error
        return amounts

    def other_amounts(self, column: str) -> list[dict[str, int]]:
        """Return a column of JSON objects, from resources to amounts."""
        objects = []
        for row, text in enumerate(self.texts(column)):
            try:
                content = json.loads(text) if text else {}
            except (ValueError, RecursionError):
                content = None
            if not isinstance(content, dict) or not all(type(amount) is int for amount in content.values()):
                problem = f"{text!r} is not a JSON object of whole numbers"
                raise InputError(self.table.path, at=self.table.place(row, column), problem=problem)
            objects.append(content)
        return objects
