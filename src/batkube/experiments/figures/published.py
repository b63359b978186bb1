"""Data of others, read so that it can stand next to ours: a table with a row per run, or the jobs.csv of each run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from batkube.experiments.description.conditions import Condition, as_number
from batkube.experiments.description.figures import PublishedData
from batkube.experiments.figures.chart_data import sample_in
from batkube.kernel.errors import InputError
from batkube.outputs.measures.intervals import Sample, sample_of
from batkube.outputs.measures.metric_columns import MetricColumn
from batkube.outputs.measures.run_data.text_table import read_table
from batkube.outputs.results import Results

#: `exit_code = 0` in the place of a column: 1 where it holds, 0 where it does not.
_TEST = re.compile(r"(\w+)\s*(=|!=|<=|>=|<|>)\s*(\S+)")


@dataclass(frozen=True, slots=True)
class PublishedRows:
    """The rows that count, and how many were left out."""

    #: Cells by column, as text or number.
    cells: list[dict[str, object]]
    left_out: int


def read_published(published: PublishedData, folder: Path) -> PublishedRows:
    """Return the rows of published data; paths are relative to `folder`. Raises InputError."""
    if published.jobs:
        every = [_metrics_row(path) for path in _matching_files(published.jobs, folder)]
    else:
        table = read_table(folder / published.file)
        wanted = [each.column for each in published.where] + [published.x] * bool(published.x)
        wanted += [test.column if (test := _parse_test(text)) else text for text in published.y.values()]
        table.require(list(dict.fromkeys(wanted)), f"columns: {', '.join(table.columns)}")
        every = [dict(zip(table.columns, row, strict=True)) for row in zip(*table.columns.values(), strict=True)]
    kept = [row for row in every if all(each.matches(row.get(each.column, "")) for each in published.where)]
    return PublishedRows(kept, len(every) - len(kept))


def published_values(
    published: PublishedData, rows: Sequence[dict[str, object]], column: MetricColumn
) -> list[float | None]:
    """Return what each row tells of one of our columns, in the column's unit; None where it tells nothing."""
    theirs = published.y.get(column.name)
    if theirs is None:
        return [None] * len(rows)
    test = _parse_test(theirs)
    if test is not None:
        return [column.factor if test.matches(row[test.column]) else 0.0 for row in rows]
    numbers = (as_number(row.get(theirs, "")) for row in rows)
    return [None if number is None else number * published.y_factor * column.factor for number in numbers]


def published_sample(published: PublishedData, values: Sequence[float], column: MetricColumn) -> Sample:
    """Return the sample of some of its values: a share only where each row is an attempt, which succeeded or not."""
    is_attempt = _parse_test(published.y.get(column.name, "")) is not None
    return sample_in(column, values) if is_attempt else sample_of(values)


def _parse_test(text: str) -> Condition | None:
    match = _TEST.fullmatch(text.strip())
    return Condition(match[1], match[2], (match[3],)) if match else None


def _matching_files(pattern: str, folder: Path) -> list[Path]:
    path = folder / pattern
    root = Path(path.anchor) if path.is_absolute() else Path()
    paths = sorted(root.glob(str(path.relative_to(path.anchor) if path.is_absolute() else path)))
    if not paths:
        raise InputError(path, problem="matches no file", remedy="a path is relative to the experiment file")
    return paths


def _metrics_row(path: Path) -> dict[str, object]:
    """Return what a jobs.csv tells, under the names of schedule.csv."""
    return dict(Results(path).metrics.columns)
