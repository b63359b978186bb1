"""`batkube calibrate`: latencies from runs recorded on a real cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from batkube.kernel.errors import InputError

if TYPE_CHECKING:
    from batkube.calibration.calibrate import Calibration


def calibrate(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN_OR_JOBS_CSV…", help="Output folders of recorded runs, or jobs.csv files.", show_default=False
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The latencies file to write.", show_default=False)
    ],
    family: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[STEP=]NAME", help="Fit this kind of distribution, for a step or for all: notice=empirical."
        ),
    ] = None,
    workload: Annotated[
        Path | None, typer.Option(metavar="W", help="The workload that was played, for the exact run times.")
    ] = None,
    nodes: Annotated[int | None, typer.Option(metavar="N", help="How many nodes the cluster had.", min=1)] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also draw how well it fits: .svg, .png or .pdf.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
) -> None:
    """Fit latencies to recorded runs.

    Those of start-up and completion, for `batkube run --latencies`.

    \b
    batkube calibrate recorded/* -o latencies.yaml
    batkube calibrate burst_0_jobs.csv burst_1_jobs.csv -o latencies.yaml --nodes 16 --plot fit.svg
    """
    for path in (out, plot):
        if path is not None and path.exists() and not force:
            raise InputError(path, problem="exists already", remedy="choose another name, or add --force")
        if path is not None and not path.parent.is_dir():
            raise InputError(path, problem=f"the folder {path.parent} does not exist", remedy="create it first")
    kind = "" if plot is None else plot.suffix.lower().removeprefix(".")
    if plot is not None and kind not in ("svg", "png", "pdf"):
        raise InputError(plot, problem="its ending names no kind of picture", remedy="end it in .svg, .png or .pdf")
    from batkube.calibration.calibrate import calibrate as calibrate_runs
    from batkube.calibration.latencies_file import latencies_text
    from batkube.outputs.files.derived_files import write_derived_file

    calibration = calibrate_runs(runs, workload=workload, nodes=nodes, families=_families(family or []))
    write_derived_file(out, latencies_text(calibration).encode())
    if plot is not None:
        write_derived_file(plot, _fit_plot(calibration, kind))
    console = Console(highlight=False)
    console.width = max(console.width, 100)
    _print_fits(calibration, console)
    for path in (out, plot):
        if path is not None:
            console.print(f"wrote {path}", soft_wrap=True)


def _families(texts: list[str]) -> dict[str, str]:
    from batkube.calibration.families import FAMILIES
    from batkube.execution.latencies.delays import STEPS

    families: dict[str, str] = {}
    for text in texts:
        step, _, name = text.rpartition("=")
        if name not in FAMILIES:
            raise InputError("--family", problem=f"{name!r} is not one of {', '.join(FAMILIES)}")
        if step and step.partition(".")[0] not in STEPS:
            raise InputError("--family", problem=f"{step!r} is not a step", remedy=f"steps: {', '.join(STEPS)}")
        families[step] = name
    return families


def _fit_plot(calibration: Calibration, kind: str) -> bytes:
    from batkube.calibration.fit_figure import fit_figure
    from batkube.outputs.charts.inline_svg import render_figure
    from batkube.outputs.charts.style import chart_style

    with chart_style():
        figure = fit_figure(calibration.fits)
    return render_figure(figure, kind)


def _print_fits(calibration: Calibration, console: Console) -> None:
    """Print what was found; the file holds the same, in full."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("step", no_wrap=True)
    for name in ("recorded", "missing", "mean s", "fitted mean", "KS"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("fitted", no_wrap=True)
    for one in calibration.fits:
        values = one.sample.values
        name = one.distribution.name
        table.add_row(
            one.sample.step,
            f"{len(values):,}",
            f"{one.sample.missing:,}",
            f"{values.mean():.3f}",
            f"{one.mean:.3f}",
            "–" if name == "constant" else f"{one.ks_distance:.3f}",
            f"empirical, {values[0]:.3g} to {values[-1]:.3g}" if name == "empirical" else one.distribution.describe(),
        )
    runs = len(calibration.sources)
    console.print(f"{calibration.jobs:,} jobs of {runs} recorded run{'s' if runs > 1 else ''}")
    console.print(table)
    for line in _remarks(calibration):
        console.print(line, soft_wrap=True)


def _remarks(calibration: Calibration) -> list[str]:
    nodes = calibration.nodes
    remarks = []
    if calibration.client is not None:
        remarks.append(f"client: {calibration.client.burst} jobs at once, then {calibration.client.qps:g} a second")
    if calibration.cached_share is not None:
        remarks.append(f"images: {calibration.cached_share:.0%} of the nodes had theirs when a run began")
    held = f"{len(nodes.system_pods)} pod{'s' if len(nodes.system_pods) != 1 else ''} of the cluster itself"
    why = "assumed; say how many nodes there were with --nodes" if nodes.stated is None else f"of {nodes.stated} nodes"
    remarks.append(f"nodes: jobs ran on {nodes.used}, at most {nodes.peak_concurrency} at once; {held} ({why})")
    return remarks
