"""The sub-commands of `batkube`."""

from __future__ import annotations

from typing import Annotated

import typer

from batkube.cli.batsim import batsim
from batkube.cli.calibrate import calibrate
from batkube.cli.compare import compare
from batkube.cli.emulate import emulate
from batkube.cli.experiment import experiment
from batkube.cli.gantt import gantt
from batkube.cli.graph import app as graph_app
from batkube.cli.policies import policies
from batkube.cli.report import report
from batkube.cli.run import run
from batkube.cli.schedulers import app as schedulers_app
from batkube.cli.serve import serve
from batkube.cli.workload import app as workload_app

app = typer.Typer(
    name="batkube",
    help="Simulate Kubernetes clusters to study schedulers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(run)
app.command()(serve)
app.command()(emulate)
app.command()(policies)
app.command()(gantt)
app.command()(compare)
app.command()(calibrate)
app.command()(report)
app.command()(experiment)
app.command()(batsim)
app.add_typer(workload_app, name="workload")
app.add_typer(graph_app, name="graph")
app.add_typer(schedulers_app, name="schedulers")


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
        from batkube.version import __version__

        typer.echo(f"batkube {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Simulate Kubernetes clusters to study schedulers."""
