"""Draw the samples of soaks: p99 latencies and memory over time.

    python benchmarks/soak_figure.py serve=soak-serve.csv real=soak-real.csv --out docs/images/soak.svg

A table of the same samples in Markdown goes to standard output.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from batkube.outputs.charts.axes import format_axis
from batkube.outputs.charts.style import house_style
from batkube.outputs.pages.colours import LIGHT, SERIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE_IN = (9.6, 5.4)
#: The panels, by column of the samples: title, unit, and whether the axis is logarithmic.
_PANELS = {
    "create p99 ms": ("create a pod, p99", "ms", True),
    "list of 50 p99 ms": ("list 50 pods, p99", "ms", True),
    "kubectl p99 ms": ("requests of kubectl, longest", "ms", True),
    "servers MB": ("resident memory", "MB", False),
}
#: Distinguishable without colour too.
_LINES = ("-", (0, (3.0, 1.4)), (0, (1.0, 1.0)))
#: Samples of the first minutes, in which the population and the history grow, do not count for the table.
_WARM_UP_S = 300


Samples = dict[str, pd.DataFrame]
"""The samples of each soak, by its label."""


def draw(samples: Samples, path: Path) -> None:
    """Write the figure."""
    with house_style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=_SIZE_IN, dpi=160, facecolor="white", layout="constrained")
        grid = figure.subplots(2, 2, sharex=True)
        for axes, (column, (title, unit, is_log)) in zip(grid.flat, _PANELS.items(), strict=True):
            _draw_panel(axes, samples, column, is_log)
            axes.set_title(title, loc="left", fontsize=9)
            format_axis(axes.yaxis, "latency" if unit == "ms" else "memory", unit, is_log=is_log)
        end_s = max(frame["elapsed s"].max() for frame in samples.values())
        for axes in grid[1]:
            axes.set_xlim(0, end_s)
            format_axis(axes.xaxis, "time", "s")
        grid[1][1].legend(loc="center right", frameon=False)
        figure.savefig(path, metadata={"Date": None, "Creator": None})


def _draw_panel(axes: Axes, samples: Samples, column: str, is_log: bool) -> None:
    if is_log:
        axes.set_yscale("log")
    for (label, frame), line, colour in zip(samples.items(), _LINES, SERIES, strict=False):
        axes.plot(frame["elapsed s"], frame[column], linestyle=line, label=label, color=colour, linewidth=1.2)
    if not is_log:
        axes.set_ylim(bottom=0)
    axes.grid(axis="y", color=LIGHT["rule"], linewidth=0.6)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def table(samples: Samples, warm_up_s: float) -> str:
    """Return a table of the samples after the first minutes, at most half of each soak."""
    title = f"after the first {warm_up_s / 60:.0f} minutes"
    rows = [f"| {title} | " + " | ".join(samples) + " |", "|---|" + "--:|" * len(samples)]
    steady = [frame[frame["elapsed s"] > min(warm_up_s, frame["elapsed s"].max() / 2)] for frame in samples.values()]
    for operation in ("create", "create checked", "delete", "list of 50", "get", "kubectl", "rollout"):
        cells = [_latencies(frame, operation) for frame in steady]
        rows.append(f"| {operation}: p50 / p99 (medians of the intervals) / longest | " + " | ".join(cells) + " |")
    for name, cell in _totals(steady).items():
        rows.append(f"| {name} | " + " | ".join(cell) + " |")
    return "\n".join(rows)


def _latencies(frame: pd.DataFrame, operation: str) -> str:
    """Return a cell of the table; a dash if no such operation has succeeded."""
    p50_ms, p99_ms, longest_ms = (frame[f"{operation} {kind} ms"].dropna() for kind in ("p50", "p99", "max"))
    return "–" if p50_ms.empty else f"{p50_ms.median():,.0f} / {p99_ms.median():,.0f} / {longest_ms.max():,.0f} ms"


def _totals(steady: list[pd.DataFrame]) -> dict[str, list[str]]:
    totals: dict[str, list[str]] = {}
    for frame in steady:
        first, last = frame.iloc[0], frame.iloc[-1]
        seconds = last["elapsed s"] - first["elapsed s"]
        created = frame["create count"].iloc[1:].sum() + frame["create checked count"].iloc[1:].sum()
        cells = {
            "pods created per second": f"{created / seconds:.0f}",
            "rollouts completed within a minute": f"{frame['rollout count'].sum()}",
            "CPU per pod": f"{(last['servers CPU s'] - first['servers CPU s']) / created * 1000:.1f} ms",
            "CPU per pod, all programs": (
                f"{(last['all programs CPU s'] - first['all programs CPU s']) / created * 1000:.1f} ms"
            ),
            "memory at the start and the end": f"{first['servers MB']:,.0f}, {last['servers MB']:,.0f} MB",
            "pods, events at the end": f"{last['pods']:,.0f}, {last['events']:,.0f}",
            "load average of the machine": f"{frame['load average'].mean():.0f}",
        }
        for name, cell in cells.items():
            totals.setdefault(name, []).append(cell)
    return totals


def main() -> None:
    """Draw the figure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("samples", nargs="+", help="LABEL=FILE: a CSV file of soak.py")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--warm-up", type=float, default=_WARM_UP_S, metavar="S", help="what the table leaves out")
    options = parser.parse_args()
    samples = {label: pd.read_csv(path) for label, _, path in (entry.partition("=") for entry in options.samples)}
    draw(samples, options.out)
    print(table(samples, options.warm_up))


if __name__ == "__main__":
    main()
