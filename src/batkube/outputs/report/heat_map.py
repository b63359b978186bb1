"""Section of a run's report: how busy each machine was over time, as a heat map."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from batkube.kernel.errors import InputError
from batkube.outputs.charts.inline_svg import inline_figure
from batkube.outputs.charts.labels import FigureLabels
from batkube.outputs.charts.style import chart_style
from batkube.outputs.charts.time_axis import time_axis
from batkube.outputs.measures.measured_run import MeasuredRun
from batkube.outputs.measures.occupancy.absences import absences_of
from batkube.outputs.measures.occupancy.stays import Floats, Ints, capacity_of, horizon_s, stays_of
from batkube.outputs.pages.markup import element
from batkube.outputs.pages.page import Section, paragraph

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TITLE = ("heat", "Machines over time")
#: More machines share rows, and the run has this many columns: finer than a screen shows.
_MAX_ROWS, _COLUMNS = 128, 240
_WIDTH_IN, _ROW_IN, _MIN_ROWS_IN, _MAX_ROWS_IN = 9.6, 0.16, 0.6, 3.6
#: From idle to busy: light to dark, so that it is readable in grey; machines that are absent are hatched.
_COLOURS = ("#EEF3F8", "#9FC3E4", "#33669A", "#10243A")
_ABSENT_FROM = 0.999


class BusyShares(NamedTuple):
    """Shares of machines' capacity over time."""

    #: A row per group of consecutive machines, a column per period: the busy share of the capacity, and the absent one.
    busy: Floats
    absent: Floats
    #: The borders of the periods in seconds.
    edges_s: Floats


def heat_map_section(results: MeasuredRun, labels: FigureLabels | None = None) -> Section | None:
    """Return the heat map; None if no job ran on a known machine."""
    try:
        shares = busy_shares(results)
    except InputError as error:
        return Section(*_TITLE, paragraph(f"Not drawn: {error.problem}.", class_="note"))
    if shares is None:
        return None
    figure = _draw(shares, results.machine_names, labels or FigureLabels())
    drawing = inline_figure(
        figure,
        prefix="heat1",
        title="Utilisation of machines over time",
        description="A row per machine, or per group of them, from the first at the top; dark is busy.",
        recolour=False,
    )
    rows, count = len(shares.busy), len(results.machine_names)
    capacity = "cpu that jobs requested" if results.shares_machines else "time with a job"
    caption = f"Mean share of each machine's {capacity}, in {shares.busy.shape[1]} periods."
    if rows < count:
        caption += f" {count:,} machines share {rows} rows, in their order."
    if (shares.absent >= _ABSENT_FROM).any():
        caption += " Hatched: not available."
    content = element(
        "figure", element("div", drawing, class_="scroll", tabindex=0), element("figcaption", caption), class_="sheet"
    )
    return Section(*_TITLE, content)


def busy_shares(results: MeasuredRun) -> BusyShares | None:
    """Return how busy machines were; None if no job ran on a known machine."""
    stays, capacity, end_s = stays_of(results).per_machine(), capacity_of(results), horizon_s(results.jobs)
    if not len(stays) or end_s <= 0 or not capacity.sum():
        return None
    rows = min(len(capacity), _MAX_ROWS)
    row_of = np.arange(len(capacity), dtype=np.int64) * rows // len(capacity)
    edges = np.linspace(0.0, end_s, _COLUMNS + 1)
    offered = np.bincount(row_of, weights=capacity, minlength=rows)[:, None] * (end_s / _COLUMNS)
    work = _amounts(row_of[stays.first], stays.start, stays.end, stays.milli, edges, rows)
    absences = absences_of(results)
    machines = np.array([absence.machine for absence in absences], dtype=np.int64)
    starts, ends = (np.array([getattr(absence, name) for absence in absences]) for name in ("start", "end"))
    missing = _amounts(row_of[machines], starts, ends, capacity[machines], edges, rows)
    offered = np.where(offered > 0, offered, 1.0)
    # Over-allocated machines are as busy as full ones.
    return BusyShares(np.minimum(work / offered, 1.0), np.minimum(missing / offered, 1.0), edges)


def _amounts(row: Ints, start: Floats, end: Floats, milli: Ints, edges: Floats, rows: int) -> Floats:
    """Return the capacity in use in each row between consecutive edges, times seconds."""
    until = np.empty((len(edges), rows))
    for number, edge in enumerate(edges):
        until[number] = np.bincount(row, milli * np.clip(edge - start, 0, end - start), minlength=rows)
    return until[1:].T - until[:-1].T


def _draw(shares: BusyShares, machines: list[str], labels: FigureLabels) -> Figure:
    with chart_style():
        from matplotlib.colors import LinearSegmentedColormap
        from matplotlib.figure import Figure

        from batkube.outputs.gantt.machine_labels import row_names

        height_in = min(_MAX_ROWS_IN, max(_MIN_ROWS_IN, _ROW_IN * len(machines)))
        figure = Figure(figsize=(_WIDTH_IN, height_in + 0.6), dpi=160, facecolor="white", layout="constrained")
        axes = figure.subplots()
        extent = (0.0, float(shares.edges_s[-1]), float(len(machines)), 0.0)
        colours = LinearSegmentedColormap.from_list("busy", _COLOURS)
        image = axes.imshow(
            shares.busy, cmap=colours, vmin=0, vmax=1, aspect="auto", interpolation="nearest", extent=extent
        )
        _hatch_absent(axes, shares, len(machines))
        names = row_names(machines, height_in, labels).names
        axes.set_yticks([place for place, _ in names], [name for _, name in names], fontsize=7)
        axes.tick_params(axis="y", length=0)
        axis = time_axis(0.0, extent[1])
        axes.set_xticks(axis.ticks_s, axis.labels)
        axes.set_xlabel(f"time ({axis.unit})")
        figure.colorbar(image, ax=axes, pad=0.01, fraction=0.03, ticks=[0, 1], format=lambda at, _: f"{at:.0%}")
    return figure


def _hatch_absent(axes: Axes, shares: BusyShares, machines: int) -> None:
    """Hatch the periods in which all machines of a row were absent, consecutive ones as one."""
    height = machines / len(shares.absent)
    for row, absent in enumerate(shares.absent >= _ABSENT_FROM):
        changes = np.flatnonzero(np.diff(np.concatenate(([0], absent.astype(np.int8), [0]))))
        spans = [(shares.edges_s[start], shares.edges_s[end]) for start, end in zip(*[iter(changes)] * 2, strict=True)]
        axes.broken_barh(
            [(start, end - start) for start, end in spans],
            (row * height, height),
            facecolor="#FFFFFF",
            edgecolor="#888888",
            hatch="xxxx",
            linewidth=0,
        )
