"""Section of a run's report: the waits of users' jobs, and of short and long, narrow and wide ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from batkube.outputs.charts.inline_svg import inline_figure
from batkube.outputs.charts.labels import FigureLabels
from batkube.outputs.charts.style import chart_style
from batkube.outputs.job_statistics import CLASSES, NARROW, SHORT_S, size_class
from batkube.outputs.measures.measured_run import MeasuredRun
from batkube.outputs.measures.metrics import finished_jobs, jobs_in
from batkube.outputs.measures.occupancy.stays import Floats
from batkube.outputs.pages.colours import LIGHT, SERIES
from batkube.outputs.pages.html_tables import Cell, Heading, html_table
from batkube.outputs.pages.markup import Markup, element, join
from batkube.outputs.pages.page import Section

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Users with a row of their own, those with most jobs.
_MAX_USERS = 8
_WIDTH_IN, _ROW_IN, _AXIS_IN = 9.6, 0.3, 0.75

Waits = dict[str, Floats]
"""Sorted waits in seconds, by the name of a group of jobs."""


def waits_section(results: MeasuredRun, labels: FigureLabels | None = None) -> Section | None:
    """Return waits by user and by size class; None if no job of the window finished."""
    done = jobs_in(results.window, finished_jobs(results.jobs))
    if done.empty:
        return None
    groups = {"by user": waits_by_user(done), "by size class": waits_by_class(done)}
    figure = _draw({title: waits for title, waits in groups.items() if len(waits) > 1}, labels or FigureLabels())
    parts: list[Markup] = [_table(groups["by size class"])]
    if figure is not None:
        description = "Boxes from the 25th to the 75th percentile, with the median, for each user and each size class."
        drawing = inline_figure(figure, prefix="waits1", title="Waits by user and size class", description=description)
        caption = (
            "Boxes are the middle half of the waits, lines in them the medians, whiskers the 5th and the 95th "
            "percentile, diamonds the means; numbers of jobs in brackets."
        )
        scrolled = element("div", drawing, class_="scroll", tabindex=0)
        parts.insert(0, element("figure", scrolled, element("figcaption", caption), class_="chart"))
    return Section("waits", "Waits by user and size", join(parts))


def waits_by_user(done: pd.DataFrame) -> Waits:
    """Return the waits of the users with most jobs, and of all others together."""
    counts = done["user"].value_counts(sort=False)
    largest = sorted(counts.index, key=lambda user: (-int(counts[user]), str(user)))[:_MAX_USERS]
    waits = {str(user) or "(no user)": _sorted_waits(done[done["user"] == user]) for user in largest}
    others = done[~done["user"].isin(largest)]
    return waits if others.empty else waits | {f"{len(counts) - len(largest):,} others": _sorted_waits(others)}


def waits_by_class(done: pd.DataFrame) -> Waits:
    """Return the waits of each size class that has jobs, as in the metrics."""
    sizes = done["requested_number_of_resources"].fillna(1)
    kinds = pd.Series([size_class(*pair) for pair in zip(done["execution_time"], sizes, strict=True)], done.index)
    found = {kind.replace("_", " "): done[kinds == kind] for kind in CLASSES}
    return {name: _sorted_waits(jobs) for name, jobs in found.items() if len(jobs)}


def _sorted_waits(jobs: pd.DataFrame) -> Floats:
    return np.sort(jobs["waiting_time"].to_numpy(dtype=np.float64))


def _table(waits: Waits) -> Markup:
    heads = [Heading("size class"), Heading("jobs", is_number=True)]
    heads += [Heading(name, "s", is_number=True) for name in ("mean wait", "median", "p95", "longest")]
    rows: list[list[Any]] = []
    for name, values in waits.items():
        numbers = (float(values.mean()), *map(float, np.percentile(values, [50, 95])), float(values[-1]))
        cells = [Cell(f"{number:,.2f}", number) for number in numbers]
        rows.append([name, Cell(f"{len(values):,}", len(values)), *cells])
    note = f"Short jobs run for at most {SHORT_S:,.0f} s; narrow ones have at most {NARROW} machines or pods."
    return join((html_table(heads, rows, sortable=False), element("p", note, class_="note")))


def _draw(groups: Mapping[str, Waits], labels: FigureLabels) -> Figure | None:
    """Return a figure with a panel for each grouping; None if there is none."""
    if not groups:
        return None
    with chart_style():
        from matplotlib.figure import Figure

        rows = max(map(len, groups.values()))
        size = _WIDTH_IN, _ROW_IN * max(3, rows) + _AXIS_IN
        figure = Figure(figsize=size, dpi=160, facecolor="white", layout="constrained")
        panels = figure.subplots(1, len(groups), squeeze=False, sharex=True)[0]
        for axes, (title, waits) in zip(panels, groups.items(), strict=True):
            _draw_panel(axes, title, waits, labels)
    return figure


def _draw_panel(axes: Axes, title: str, waits: Waits, labels: FigureLabels) -> None:
    from batkube.outputs.charts.axes import format_axis

    for row, values in enumerate(waits.values()):
        low, first, median, third, high = np.percentile(values, [5, 25, 50, 75, 95])
        axes.plot([low, high], [row, row], color=SERIES[0], linewidth=1.0)
        axes.barh(row, third - first, 0.55, left=first, color=SERIES[0], alpha=0.35)
        axes.plot([median, median], [row - 0.28, row + 0.28], color=SERIES[0], linewidth=1.8)
        axes.plot(values.mean(), row, color=SERIES[1], marker="D", markersize=4, linestyle="none")
    names = [f"{labels.text(name, 24)} ({len(values):,})" for name, values in waits.items()]
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    ends = [max(float(np.percentile(values, 95)), float(values.mean())) for values in waits.values()]
    axes.set_xlim(0, max(max(ends) * 1.04, axes.get_xlim()[1] if axes.get_xlim()[0] == 0 else 0.0) or 1.0)
    axes.grid(axis="x", color=LIGHT["rule"], linewidth=0.6)
    axes.set_title(title, fontsize=9, weight="bold", loc="left")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    format_axis(axes.xaxis, "wait", "s", max_ticks=5)
