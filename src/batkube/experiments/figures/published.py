"""Read published data to show next to ours: a table with a row per run, or the jobs.csv of each run."""

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

#: A test such as `exit_code = 0` instead of a column: 1 if it is true, otherwise 0.
_TEST = re.compile(r"(\w+)\s*(=|!=|<=|>=|<|>)\s*(\S+)")


@dataclass(frozen=True, slots=True)
class PublishedRows:
    """The selected rows, and the number of others."""

    #: Cells by column, as text or number.
    cells: list[dict[str, object]]
    excluded_count: int


def read_published(published: PublishedData, folder: Path) -> PublishedRows:
    """Return the rows of published data; paths are relative to `folder`. Raises InputError."""
    if published.jobs:
        rows = [_metrics_row(path) for path in _matching_files(published.jobs, folder)]
    else:
        table = read_table(folder / published.file)
        required = [condition.column for condition in published.where] + [published.x] * bool(published.x)
        required += [test.column if (test := _parse_test(text)) else text for text in published.y.values()]
        table.require(list(dict.fromkeys(required)), f"columns: {', '.join(table.columns)}")
        rows = [dict(zip(table.columns, row, strict=True)) for row in zip(*table.columns.values(), strict=True)]
    selected = [row for row in rows if all(test.matches(row.get(test.column, "")) for test in published.where)]
    return PublishedRows(selected, len(rows) - len(selected))


def published_values(
    published: PublishedData, rows: Sequence[dict[str, object]], column: MetricColumn
) -> list[float | None]:
    """Return each row's value of one of our columns, in the column's unit; None if it has none."""
    name = published.y.get(column.name)
    if name is None:
        return [None] * len(rows)
    test = _parse_test(name)
    if test is not None:
        return [column.factor if test.matches(row[test.column]) else 0.0 for row in rows]
    numbers = (as_number(row.get(name, "")) for row in rows)
    return [None if number is None else number * published.y_factor * column.factor for number in numbers]


def published_sample(published: PublishedData, values: Sequence[float], column: MetricColumn) -> Sample:
    """Return the sample of some values; a share of successes if each row is an attempt."""
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
    """Return the metrics of a jobs.csv, under the names of schedule.csv."""
    return dict(Results(path).metrics.columns)
