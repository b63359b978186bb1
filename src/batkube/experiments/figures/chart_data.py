"""Content of a figure, computed without matplotlib before anything is drawn.

Runs with the same x and the same series form one point: their mean with its 95 % interval. Only completed runs count,
except for the share of completed runs. Runs of a point that are byte-identical are one observation and count once,
whatever their seeds, since a seed that changes nothing is not a replicate. For measured real times, every run counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from batkube.experiments.description.conditions import as_number
from batkube.experiments.description.ranges import label_in_seconds
from batkube.outputs.measures.intervals import Sample, sample_of, share_of
from batkube.outputs.measures.metric_columns import COMPLETED, MetricColumn, column_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class AxisScale:
    """Label and scale of the x axis of a chart."""

    label: str
    #: `s` for times; empty if there is none.
    unit: str = ""
    #: The names at positions 0, 1, …; empty if x is a number.
    categories: tuple[str, ...] = ()
    is_log: bool = False


@dataclass(frozen=True, slots=True)
class ChartPoint:
    """One mean, in the column's unit, and its observations."""

    x: float
    sample: Sample
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Series:
    """Points that belong together: a line, or the bars of one colour."""

    label: str
    points: tuple[ChartPoint, ...]
    is_published: bool = False


@dataclass(frozen=True, slots=True)
class Level:
    """One value across the whole width of a panel: from theory (without a sample), or of runs that have no x."""

    label: str
    value: float
    sample: Sample | None = None
    is_published: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes: a column's values in one facet."""

    facet: str
    column: MetricColumn
    series: tuple[Series, ...]
    levels: tuple[Level, ...] = ()
    #: Points that a logarithmic axis cannot show, as their series and x.
    undrawn: tuple[tuple[str, float], ...] = ()
    #: The number of values that a logarithmic axis cannot show: those points, levels, and single runs of boxes.
    undrawn_count: int = 0


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure, ready to be drawn."""

    title: str
    kind: str
    x: AxisScale
    #: A row per column, with a panel per facet.
    rows: tuple[tuple[Panel, ...], ...]
    log_y: bool = False
    caption: str = ""
    #: Remarks on the numbers, in whole sentences.
    remarks: tuple[str, ...] = ()

    @property
    def panels(self) -> list[Panel]:
        """All panels, row by row."""
        return [panel for row in self.rows for panel in row]

    @property
    def labels(self) -> list[str]:
        """The labels of all series and levels, in order, each once; each has a colour."""
        labels = [series.label for panel in self.panels for series in panel.series]
        labels += [level.label for panel in self.panels for level in panel.levels]
        return list(dict.fromkeys(labels))


def observations(frame: pd.DataFrame, column: MetricColumn, axes: Sequence[str]) -> pd.DataFrame:
    """Return the rows that count as observations of a column."""
    if column.name == COMPLETED:
        return frame
    rows = frame[(frame["state"] == "done") & frame[column.name].notna()]
    return rows if column.is_real_time else without_duplicates(rows, axes)


def without_duplicates(frame: pd.DataFrame, axes: Sequence[str]) -> pd.DataFrame:
    """Return the rows without those that are byte-identical to an earlier one of the same point of the grid."""
    copies = frame.duplicated([*axes, "digest"]) & (frame["digest"] != "")
    return frame[~copies]


def sample_in(column: MetricColumn, values: Sequence[float]) -> Sample:
    """Return the sample of a column's values, in the column's unit; for completed runs, a share."""
    if column.name == COMPLETED:
        share = share_of(round(sum(values) / column.factor), len(values))
        scaled = [value * column.factor for value in (share.mean, share.low, share.high)]
        return Sample(share.n, scaled[0], None, scaled[1], scaled[2], has_interval=True)
    return sample_of(values)


def values_in(column: MetricColumn, frame: pd.DataFrame) -> list[float]:
    """Return a column's values in its unit."""
    return [float(value) * column.factor for value in frame[column.name]]


def chart_points(column: MetricColumn, frame: pd.DataFrame, positions: Sequence[float]) -> tuple[ChartPoint, ...]:
    """Return a point for each different position, ascending; `positions` are those of the frame's rows."""
    by_position: dict[float, list[float]] = {}
    for position, value in zip(positions, values_in(column, frame), strict=True):
        by_position.setdefault(position, []).append(value)
    return tuple(
        ChartPoint(position, sample_in(column, values), tuple(values))
        for position, values in sorted(by_position.items())
    )


def label_amount(label: str) -> float | None:
    """Return the number in a label, durations in seconds; None if it is not a number."""
    length = label_in_seconds(label)
    return as_number(label) if length is None else float(length)


def scale_of(name: str, labels: Sequence[str], *, is_log: bool) -> AxisScale:
    """Return the scale of an axis: numeric if at least two of its labels, and half of them, are numbers."""
    amounts = [label for label in labels if label_amount(label) is not None]
    if len(amounts) < 2 or len(amounts) * 2 < len(labels):
        return AxisScale(name.replace("_", " "), categories=tuple(labels))
    is_time = any(label_in_seconds(label) is not None for label in amounts)
    return AxisScale(name.replace("_", " "), "s" if is_time else "", is_log=is_log)


def column_scale(name: str, *, is_log: bool) -> AxisScale:
    """Return the scale of a column of numbers on the x axis."""
    column = column_of(name)
    return AxisScale(column.label, column.unit, is_log=is_log)
