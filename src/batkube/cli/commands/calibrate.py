"""`batkube calibrate`: fit latencies to runs recorded on a real cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from batkube.kernel.errors import InputError
from batkube.text.console import EscapingConsole

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
            metavar="[STEP=]NAME", help="The family of distributions to fit, for a step or for all: notice=empirical."
        ),
    ] = None,
    workload: Annotated[
        Path | None, typer.Option(metavar="W", help="The workload of the runs, for exact run times.")
    ] = None,
    nodes: Annotated[int | None, typer.Option(metavar="N", help="The number of nodes of the cluster.", min=1)] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Also draw the fits: .svg, .png or .pdf.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
) -> None:
    """Fit latencies to recorded runs.

    The file has the latencies of start-up and completion, for `batkube run --latencies`.

    \b
    batkube calibrate recorded/* -o latencies.yaml
    batkube calibrate burst_0_jobs.csv burst_1_jobs.csv -o latencies.yaml --nodes 16 --plot fit.svg
    """
    for path in (out, plot):
        if path is not None and path.exists() and not force:
            raise InputError(path, problem="already exists", remedy="choose another name, or add --force")
        if path is not None and not path.parent.is_dir():
            raise InputError(path, problem=f"the folder {path.parent} does not exist", remedy="create it first")
    kind = "" if plot is None else plot.suffix.lower().removeprefix(".")
    if plot is not None and kind not in ("svg", "png", "pdf"):
        raise InputError(
            plot, problem="does not have the extension of an image format", remedy="use .svg, .png or .pdf"
        )
    from batkube.calibration.calibrate import calibrate as calibrate_runs
    from batkube.calibration.latencies_file import latencies_text
    from batkube.outputs.files.derived_files import write_derived_file

    calibration = calibrate_runs(runs, workload=workload, nodes=nodes, families=_families(family or []))
    write_derived_file(out, latencies_text(calibration).encode())
    if plot is not None:
        write_derived_file(plot, _fit_plot(calibration, kind))
    console = EscapingConsole(highlight=False)
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


def _print_fits(calibration: Calibration, console: EscapingConsole) -> None:
    """Print the fits; the latencies file has them in full."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("step", no_wrap=True)
    for name in ("recorded", "missing", "mean s", "fitted mean", "KS"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("fitted", no_wrap=True)
    for fit in calibration.fits:
        values = fit.sample.values
        name = fit.distribution.name
        table.add_row(
            fit.sample.step,
            f"{len(values):,}",
            f"{fit.sample.missing:,}",
            f"{values.mean():.3f}",
            f"{fit.mean:.3f}",
            "–" if name == "constant" else f"{fit.ks_distance:.3f}",
            f"empirical, {values[0]:.3g} to {values[-1]:.3g}" if name == "empirical" else fit.distribution.describe(),
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
        remarks.append(f"client: {calibration.client.burst} jobs at once, then {calibration.client.qps:g} per second")
    if calibration.cached_share is not None:
        remarks.append(f"images: already on {calibration.cached_share:.0%} of the nodes when a run started")
    system = f"{len(nodes.system_pods)} system pod{'s' if len(nodes.system_pods) != 1 else ''}"
    basis = "assumed; add --nodes with the number of nodes" if nodes.total is None else f"of {nodes.total} nodes"
    remarks.append(f"nodes: jobs ran on {nodes.used}, at most {nodes.peak_concurrency} at once; {system} ({basis})")
    return remarks
