"""From a figure as asked for, and an experiment's findings, to a chart ready to be drawn."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from batkube.experiments.description.conditions import as_number, matching_rows
from batkube.experiments.description.figures import FigureKind, FigureSpec, PublishedData
from batkube.experiments.figures.chart_data import (
    AxisScale,
    Chart,
    ChartPoint,
    Level,
    Panel,
    Series,
    chart_points,
    column_scale,
    label_amount,
    observations,
    sample_in,
    scale_of,
    values_in,
)
from batkube.experiments.figures.distributions import distribution_chart
from batkube.experiments.figures.published import PublishedRows, published_sample, published_values, read_published
from batkube.experiments.results.comparability import comparability_of_sets
from batkube.experiments.results.findings import Findings
from batkube.kernel.errors import InputError
from batkube.outputs.measures.comparisons.comparability import Comparability, not_comparable
from batkube.outputs.measures.intervals import sample_of
from batkube.outputs.measures.metric_columns import COMPLETED, MetricColumn, column_of

if TYPE_CHECKING:
    import pandas as pd

#: What our own runs are called where nothing else tells them from the others.
OWN_SERIES = "this experiment"


def chart_of(spec: FigureSpec, findings: Findings) -> Chart | None:
    """Return the chart of one figure; None when no run has anything to draw. Raises InputError."""
    charting = _ChartBuilder(spec, findings)
    return charting.distribution() if spec.kind is FigureKind.CDF else charting.chart()


class _ChartBuilder:
    """The making of one chart."""

    def __init__(self, spec: FigureSpec, findings: Findings) -> None:
        self._spec = spec
        self._findings = findings
        self._axes = findings.axes
        self._frame = matching_rows(findings.frame, spec.where)
        self._remarks: list[str] = []
        self._published = self._read_published()
        self._scale = self._x_scale() if spec.x else AxisScale("")

    def distribution(self) -> Chart | None:
        marks = {label: standing.sign for label, standing in self._comparability(self._spec.by).items()}
        return distribution_chart(self._spec, self._findings, self._frame, marks, self._chart_remarks())

    def chart(self) -> Chart | None:
        spec = self._spec
        facets = self._labels_with_runs(spec.facet) if spec.facet else [""]
        rows = tuple(tuple(self._panel(column_of(name), facet) for facet in facets) for name in spec.y)
        if not any(panel.series for row in rows for panel in row):
            return None
        standings = self._comparability(spec.x)
        marked = tuple(standings.get(one, Comparability.COMPARABLE).marked(one) for one in self._scale.categories)
        scale = replace(self._scale, categories=marked)
        return Chart(
            spec.title, spec.kind, scale, rows, spec.log_y, spec.caption, (*self._chart_remarks(), *self._remarks)
        )

    def _comparability(self, axis: str) -> dict[str, Comparability]:
        """Return which labels of an axis may be compared, where not all of them are alike in that."""
        if axis not in self._axes:
            return {}
        there = self._labels_with_runs(axis)
        same = [*(name for name in self._axes if name != axis), "seed", "repeat"]
        runs: dict[str, dict[object, pd.Series[Any]]] = {label: {} for label in there}
        failures: dict[str, list[object]] = {label: [] for label in there}
        for _, row in self._frame.iterrows():
            key = tuple(row[name] for name in same)
            if row["state"] == "done":
                runs[row[axis]][key] = row
            else:
                failures[row[axis]].append(key)
        found = dict(zip(there, comparability_of_sets(list(runs.values()), list(failures.values())), strict=True))
        return found if len(set(found.values())) > 1 else {}

    def _labels_with_runs(self, axis: str) -> list[str]:
        """Return the labels of an axis that any run to be drawn has, in the experiment's order."""
        there = self._frame[axis].tolist()
        return [label for label in self._axes[axis] if label in there]

    def _x_scale(self) -> AxisScale:
        spec = self._spec
        in_categories = spec.kind in (FigureKind.BAR, FigureKind.BOX)
        if spec.x not in self._axes:
            if not in_categories:
                return column_scale(spec.x, is_log=spec.log_x)
            labels = [f"{value:g}" for value in sorted(self._frame[spec.x].dropna().unique())]
        else:
            labels = self._labels_with_runs(spec.x)
            if not in_categories:
                scale = scale_of(spec.x, labels, is_log=spec.log_x)
                if not scale.categories:
                    return scale
        added = [one.label for one, _ in self._published if not one.x] if in_categories else []
        return AxisScale(spec.x.replace("_", " "), categories=tuple(dict.fromkeys([*labels, *added])))

    def _position(self, cell: object) -> float | None:
        """Return where on the x axis a cell is; None when it has no place there."""
        if not self._scale.categories:
            return label_amount(str(cell))
        label = f"{cell:g}" if isinstance(cell, float) else str(cell)
        return float(self._scale.categories.index(label)) if label in self._scale.categories else None

    def _panel(self, column: MetricColumn, facet: str) -> Panel:
        spec = self._spec
        frame = observations(self._frame, column, list(self._axes))
        if facet:
            frame = frame[frame[spec.facet] == facet]
        series: list[Series] = []
        levels: list[Level] = []
        standings = self._comparability(spec.by)
        for label in self._labels_with_runs(spec.by) if spec.by else [""]:
            own = frame[frame[spec.by] == label] if spec.by else frame
            name = _qualified_label(spec.by, label) or OWN_SERIES
            self._add_series(column, own, standings.get(label, Comparability.COMPARABLE).marked(name), series, levels)
        for published, rows in self._published:
            if not published.facets or facet in published.facets:
                self._add_published(column, published, rows, series, levels)
        levels += [
            Level(one.label, one.value * column.factor)
            for one in spec.baselines
            if one.y == column.name and (not one.facets or facet in one.facets)
        ]
        return self._without_nonpositive(
            Panel(_qualified_label(spec.facet, facet), column, tuple(series), tuple(levels))
        )

    def _without_nonpositive(self, panel: Panel) -> Panel:
        """Return the panel without what has no place on a logarithmic axis, and remark it."""
        log_y, log_x = self._spec.log_y, self._scale.is_log

        def kept(point: ChartPoint) -> bool:
            return (point.x > 0 or not log_x) and (point.sample.mean > 0 or not log_y)

        series = tuple(replace(one, points=tuple(filter(kept, one.points))) for one in panel.series)
        levels = tuple(level for level in panel.levels if level.value > 0 or not log_y)
        lost = sum(len(one.points) for one in panel.series) - sum(len(one.points) for one in series)
        lost += len(panel.levels) - len(levels)
        remark = "What is 0 or less has no place on a logarithmic axis and is not drawn."
        if lost and remark not in self._remarks:
            self._remarks.append(remark)
        return replace(panel, series=tuple(one for one in series if one.points), levels=levels)

    def _add_series(
        self, column: MetricColumn, frame: pd.DataFrame, label: str, series: list[Series], levels: list[Level]
    ) -> None:
        """Add the points of one series of ours, and a level for each value of x that is no number."""
        positions = [self._position(cell) for cell in frame[self._spec.x]]
        placed = frame.iloc[[row for row, position in enumerate(positions) if position is not None]]
        known = [position for position in positions if position is not None]
        points = _single_points(column, placed, known) if self._is_scatter else chart_points(column, placed, known)
        if points:
            series.append(Series(label, points))
        if self._spec.x in self._axes and not self._scale.categories:
            for odd in [one for one in self._labels_with_runs(self._spec.x) if label_amount(one) is None]:
                values = values_in(column, frame[frame[self._spec.x] == odd])
                if values:
                    name = f"{label}, {odd}" if self._spec.by else odd
                    sample = sample_in(column, values)
                    levels.append(Level(name, sample.mean, sample))

    @property
    def _is_scatter(self) -> bool:
        return self._spec.kind is FigureKind.SCATTER

    def _add_published(
        self,
        column: MetricColumn,
        published: PublishedData,
        rows: PublishedRows,
        series: list[Series],
        levels: list[Level],
    ) -> None:
        values = published_values(published, rows.cells, column)
        pairs = [(row, value) for row, value in zip(rows.cells, values, strict=True) if value is not None]
        if not pairs:
            return
        if not published.x and not self._scale.categories:
            sample = published_sample(published, [value for _, value in pairs], column)
            levels.append(Level(published.label, sample.mean, sample, is_published=True))
            return
        by_position: dict[float, list[float]] = {}
        for row, value in pairs:
            position = self._published_position(published, row)
            if position is not None:
                by_position.setdefault(position, []).append(value)
        points = tuple(
            ChartPoint(position, published_sample(published, sample_values, column), tuple(sample_values))
            for position, sample_values in sorted(by_position.items())
        )
        if points:
            series.append(Series(published.label, points, is_published=True))

    def _published_position(self, published: PublishedData, row: dict[str, object]) -> float | None:
        if not published.x:
            return self._position(published.label)
        if self._scale.categories:
            return self._position(row[published.x])
        number = as_number(row[published.x])
        return None if number is None else number * published.x_factor

    def _read_published(self) -> list[tuple[PublishedData, PublishedRows]]:
        """Read what there is; what is missing is said in the figure rather than spoiling the whole report."""
        folder = self._findings.file.parent
        tables: list[tuple[PublishedData, PublishedRows]] = []
        for one in self._spec.published:
            try:
                rows = read_published(one, folder)
            except InputError as error:
                self._remarks.append(f"“{one.label}” is not drawn: {error.source}: {error.problem}.")
                continue
            tables.append((one, rows))
            if rows.left_out:
                conditions = " and ".join(str(each) for each in one.where)
                total = rows.left_out + len(rows.cells)
                self._remarks.append(
                    f"“{one.label}” shows rows where {conditions}: {rows.left_out:,} of {total:,} are left out."
                )
        return tables

    def _chart_remarks(self) -> list[str]:
        """Return what the reader must know of the numbers."""
        spec, remarks = self._spec, []
        if spec.where:
            remarks.append(f"Runs where {' and '.join(str(each) for each in spec.where)}.")
        drawn = (spec.x, spec.by, spec.facet)
        mixed = [axis for axis in self._axes if axis not in drawn and len(self._labels_with_runs(axis)) > 1]
        if mixed and not self._is_scatter:
            remarks.append(f"Means are over all values of {' and '.join(mixed)}, which is more than chance.")
        found = [one for axis in (spec.x, spec.by) for one in self._comparability(axis).values()]
        remarks += [f"{one.sign} {one.meaning}." for one in not_comparable(found)]
        failed = int((self._frame["state"] != "done").sum())
        if failed and spec.y != (COMPLETED,):
            remarks.append(f"{failed:,} of {len(self._frame):,} runs failed and do not count.")
        return remarks


def _qualified_label(axis: str, label: str) -> str:
    """Return what to call a value of an axis where the axis' name does not stand beside it; numbers need the name."""
    tells_itself = not label[:1].isdecimal() and label not in ("true", "false", "none")
    return label if tells_itself else f"{axis.replace('_', ' ')} {label}"


def _single_points(column: MetricColumn, frame: pd.DataFrame, positions: list[float]) -> tuple[ChartPoint, ...]:
    values = values_in(column, frame)
    return tuple(ChartPoint(x, sample_of([y]), (y,)) for x, y in zip(positions, values, strict=True))
