"""The command `batkube`: its sub-commands, and what it does about errors.

Exit codes are part of the interface: 0 done, 1 the run failed, 2 bad input or usage. An error is one message on
standard error, never a traceback; only a bug of ours shows one, because it is meant to be reported.
"""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from batkube.cli.compare import compare
from batkube.cli.gantt import gantt
from batkube.cli.policies import policies
from batkube.cli.run import run
from batkube.cli.workload import app as workload_app
from batkube.kernel.errors import InputError, RunFailed

app = typer.Typer(
    name="batkube",
    help="Simulate Kubernetes clusters to study schedulers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(run)
app.command()(policies)
app.command()(gantt)
app.command()(compare)
app.add_typer(workload_app, name="workload")


def _show_version(asked: bool) -> None:
    if asked:
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


def main() -> None:
    """Run the command line, turning errors into a message and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that knows only ASCII gets question marks, not a crash.
            stream.reconfigure(errors="replace")
    try:
        app()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except RunFailed as error:
        print(f"failed: {error}", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:
        # The reader of our output (`| head`) has seen enough.
        sys.stderr.close()
        sys.exit(0)
