"""Compute the chart of a figure's specification from an experiment's results."""

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

#: Label of our own runs, if there is only one series of them.
OWN_SERIES = "this experiment"


def chart_of(spec: FigureSpec, findings: Findings) -> Chart | None:
    """Return the chart of one figure; None if no run has data for it. Raises InputError."""
    builder = _ChartBuilder(spec, findings)
    return builder.distribution() if spec.kind is FigureKind.CDF else builder.chart()


class _ChartBuilder:
    """Computes one chart."""

    def __init__(self, spec: FigureSpec, findings: Findings) -> None:
        self._spec = spec
        self._findings = findings
        self._axes = findings.axes
        self._frame = matching_rows(findings.frame, spec.where)
        self._remarks: list[str] = []
        self._published = self._read_published()
        self._scale = self._x_scale() if spec.x else AxisScale("")

    def distribution(self) -> Chart | None:
        marks = {label: comparability.sign for label, comparability in self._comparability(self._spec.by).items()}
        return distribution_chart(self._spec, self._findings, self._frame, marks, self._chart_remarks())

    def chart(self) -> Chart | None:
        spec = self._spec
        facets = self._labels_with_runs(spec.facet) if spec.facet else [""]
        rows = tuple(tuple(self._panel(column_of(name), facet) for facet in facets) for name in spec.y)
        if not any(panel.series for row in rows for panel in row):
            return None
        comparability_of = self._comparability(spec.x)
        marked = tuple(
            comparability_of.get(name, Comparability.COMPARABLE).marked(name) for name in self._scale.categories
        )
        scale = replace(self._scale, categories=marked)
        return Chart(
            spec.title, spec.kind, scale, rows, spec.log_y, spec.caption, (*self._chart_remarks(), *self._remarks)
        )

    def _comparability(self, axis: str) -> dict[str, Comparability]:
        """Return the comparability of each label of an axis; empty if all labels have the same one."""
        if axis not in self._axes:
            return {}
        labels = self._labels_with_runs(axis)
        other_names = [*(name for name in self._axes if name != axis), "seed", "repeat"]
        runs: dict[str, dict[object, pd.Series[Any]]] = {label: {} for label in labels}
        failures: dict[str, list[object]] = {label: [] for label in labels}
        for _, row in self._frame.iterrows():
            key = tuple(row[name] for name in other_names)
            if row["state"] == "done":
                runs[row[axis]][key] = row
            else:
                failures[row[axis]].append(key)
        values = dict(zip(labels, comparability_of_sets(list(runs.values()), list(failures.values())), strict=True))
        return values if len(set(values.values())) > 1 else {}

    def _labels_with_runs(self, axis: str) -> list[str]:
        """Return the labels of an axis that have runs to draw, in the experiment's order."""
        labels = set(self._frame[axis])
        return [label for label in self._axes[axis] if label in labels]

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
        published = [data.label for data, _ in self._published if not data.x] if in_categories else []
        return AxisScale(spec.x.replace("_", " "), categories=tuple(dict.fromkeys([*labels, *published])))

    def _position(self, cell: object) -> float | None:
        """Return the position of a cell on the x axis; None if it has none."""
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
        comparability_of = self._comparability(spec.by)
        for label in self._labels_with_runs(spec.by) if spec.by else [""]:
            own = frame[frame[spec.by] == label] if spec.by else frame
            name = _qualified_label(spec.by, label) or OWN_SERIES
            self._add_series(
                column, own, comparability_of.get(label, Comparability.COMPARABLE).marked(name), series, levels
            )
        for published, rows in self._published:
            if not published.facets or facet in published.facets:
                self._add_published(column, published, rows, series, levels)
        levels += [
            Level(baseline.label, baseline.value * column.factor)
            for baseline in spec.baselines
            if baseline.y == column.name and (not baseline.facets or facet in baseline.facets)
        ]
        return self._without_nonpositive(
            Panel(_qualified_label(spec.facet, facet), column, tuple(series), tuple(levels))
        )

    def _without_nonpositive(self, panel: Panel) -> Panel:
        """Return the panel without values that a logarithmic axis cannot show, and add a remark."""
        log_y, log_x = self._spec.log_y, self._scale.is_log

        def is_drawable(point: ChartPoint) -> bool:
            return (point.x > 0 or not log_x) and (point.sample.mean > 0 or not log_y)

        series = tuple(replace(line, points=tuple(filter(is_drawable, line.points))) for line in panel.series)
        levels = tuple(level for level in panel.levels if level.value > 0 or not log_y)
        points = [(line.label, point) for line in panel.series for point in line.points if not is_drawable(point)]
        count = len(points) + len(panel.levels) - len(levels)
        if log_y and self._spec.kind is FigureKind.BOX:
            drawn = [point for line in series for point in line.points]
            count += sum(value <= 0 for point in drawn for value in point.values)
        remark = "Values of 0 or less are not drawn on a logarithmic axis."
        if count and remark not in self._remarks:
            self._remarks.append(remark)
        return replace(
            panel,
            series=tuple(line for line in series if line.points),
            levels=levels,
            undrawn=tuple((label, point.x) for label, point in points),
            undrawn_count=count,
        )

    def _add_series(
        self, column: MetricColumn, frame: pd.DataFrame, label: str, series: list[Series], levels: list[Level]
    ) -> None:
        """Add the points of one series of ours, and a level for each value of x that is not a number."""
        positions = [self._position(cell) for cell in frame[self._spec.x]]
        rows = frame.iloc[[row for row, position in enumerate(positions) if position is not None]]
        drawable = [position for position in positions if position is not None]
        points = _single_points(column, rows, drawable) if self._is_scatter else chart_points(column, rows, drawable)
        if points:
            series.append(Series(label, points))
        if self._spec.x in self._axes and not self._scale.categories:
            labels = self._labels_with_runs(self._spec.x)
            for text_label in [name for name in labels if label_amount(name) is None]:
                values = values_in(column, frame[frame[self._spec.x] == text_label])
                if values:
                    name = f"{label}, {text_label}" if self._spec.by else text_label
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
        """Read published data; missing data is a remark in the figure, so that it does not prevent the report."""
        folder = self._findings.file.parent
        tables: list[tuple[PublishedData, PublishedRows]] = []
        for published in self._spec.published:
            label = published.label
            try:
                rows = read_published(published, folder)
            except InputError as error:
                self._remarks.append(f"“{label}” is not drawn: {error.source}: {error.problem}.")
                continue
            tables.append((published, rows))
            if rows.excluded_count:
                conditions = " and ".join(map(str, published.where))
                total = rows.excluded_count + len(rows.cells)
                self._remarks.append(
                    f"“{label}” shows rows where {conditions}: {rows.excluded_count:,} of {total:,} are left out."
                )
        return tables

    def _chart_remarks(self) -> list[str]:
        """Return remarks on the selection of runs, on comparability and on failures."""
        spec, remarks = self._spec, []
        if spec.where:
            remarks.append(f"Runs where {' and '.join(map(str, spec.where))}.")
        figure_axes = (spec.x, spec.by, spec.facet)
        hidden_axes = [axis for axis in self._axes if axis not in figure_axes and len(self._labels_with_runs(axis)) > 1]
        if hidden_axes and not self._is_scatter:
            names = " and ".join(hidden_axes)
            remarks.append(f"Means are over all values of {names}, so their spread is not only due to chance.")
        values = [value for axis in (spec.x, spec.by) for value in self._comparability(axis).values()]
        remarks += [f"{value.sign} {value.meaning}." for value in not_comparable(values)]
        failed = int((self._frame["state"] != "done").sum())
        if failed and spec.y != (COMPLETED,):
            remarks.append(f"{failed:,} of {len(self._frame):,} runs failed and do not count.")
        return remarks


def _qualified_label(axis: str, label: str) -> str:
    """Return the label of a value of an axis, with the axis' name if it is a number, a bool or none."""
    is_clear = not label[:1].isdecimal() and label not in ("true", "false", "none")
    return label if is_clear else f"{axis.replace('_', ' ')} {label}"


def _single_points(column: MetricColumn, frame: pd.DataFrame, positions: list[float]) -> tuple[ChartPoint, ...]:
    values = values_in(column, frame)
    return tuple(ChartPoint(x, sample_of([y]), (y,)) for x, y in zip(positions, values, strict=True))
