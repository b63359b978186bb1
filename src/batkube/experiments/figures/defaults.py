"""Default figures of an experiment without `figures:`, derived from its axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from batkube.experiments.description.figures import FigureKind, FigureSpec, default_title, distribution_title
from batkube.experiments.figures.chart_data import scale_of
from batkube.outputs.measures.metric_columns import COMPLETED

#: More panels are too many to read.
_MAX_FACETS = 6
_DEFAULT_COLUMNS = ("makespan", "mean_waiting_time")


def default_figures(axes: Mapping[str, Sequence[str]], *, has_failures: bool = False) -> list[FigureSpec]:
    """Return a line chart over each numeric axis, otherwise bars; a series per scheduler, panels for the inputs."""
    varied = {name: labels for name, labels in axes.items() if len(labels) > 1}
    if not varied:
        return []
    numeric = [name for name, labels in varied.items() if not scale_of(name, labels, is_log=False).categories]
    figures = [_line(name, varied) for name in numeric] or [_bars(varied)]
    figures += [_distribution(name, varied) for name in ("waiting_time", "bounded_slowdown")]
    if has_failures:
        figures.append(replace(figures[0], title="Runs completed", y=(COMPLETED,)))
    return figures


def _line(x: str, varied: Mapping[str, Sequence[str]]) -> FigureSpec:
    by, facet = _series_and_facets(x, varied)
    return FigureSpec(default_title(x, _DEFAULT_COLUMNS), FigureKind.LINE, x, _DEFAULT_COLUMNS, by, facet)


def _bars(varied: Mapping[str, Sequence[str]]) -> FigureSpec:
    x = "scheduler" if "scheduler" in varied else max(varied, key=lambda name: len(varied[name]))
    facet, by = _series_and_facets(x, varied)
    if facet and len(varied[facet]) > _MAX_FACETS:
        facet, by = "", facet
    return FigureSpec(default_title(x, _DEFAULT_COLUMNS), FigureKind.BAR, x, _DEFAULT_COLUMNS, by, facet)


def _distribution(name: str, varied: Mapping[str, Sequence[str]]) -> FigureSpec:
    """Return the distribution of a per-job number: a curve per scheduler, panels for the inputs."""
    by, facet = _series_and_facets("", varied)
    return FigureSpec(distribution_title(name), FigureKind.CDF, "", (name,), by, facet)


def _series_and_facets(x: str, varied: Mapping[str, Sequence[str]]) -> tuple[str, str]:
    """Return the axes for series and panels: schedulers become series, workloads and platforms panels."""
    others = [name for name in varied if name != x]
    others.sort(key=lambda name: (name != "scheduler", name in ("workload", "platform")))
    by = others[0] if others else ""
    facet = next((name for name in reversed(others[1:]) if len(varied[name]) <= _MAX_FACETS), "")
    return by, facet
