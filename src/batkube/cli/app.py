"""The sub-commands of `batkube`.

Only the one that is asked for is imported: what the others need takes longer to load than a small run takes to run, and
is held in memory for nothing. Who names none, or one that does not exist, sees the list of them, for which none is.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Annotated

import typer

from batkube.cli.process.log import LogLevel, configure_logging

#: What each does, as it says itself, in the order in which help lists them; each is a function of its name.
_COMMANDS = {
    "run": "Run a workload on a simulated cluster.",
    "rerun": "Run a run again, and say what differs.",
    "serve": "Serve the Kubernetes API of a simulated cluster.",
    "batsim": "Simulate as Batsim 4 does, for schedulers of its protocol.",
    "emulate": "Play a workload on a real cluster, in real time.",
    "record": "Watch a live cluster and write what replays it.",
    "kubeflux": "Schedule pods by matching them on a graph, until ended.",
    "scheduler": "Schedule pods as a policy of ours decides, until ended.",
    "policies": "List the in-process policies.",
    "gantt": "Draw who ran where and when.",
    "chart": "Draw what goes on in runs over time.",
    "compare": "Compare runs of one workload, metric by metric.",
    "calibrate": "Fit latencies to recorded runs.",
    "report": "Tell a run or an experiment in one HTML file.",
    "doctor": "Check what this machine offers, and say what is missing.",
    "cite": "Write the methods paragraph of runs, and how to cite.",
    "experiment": "Run every scenario of a grid, and gather the results.",
    "completion": "Print what a shell needs to complete `batkube`.",
}
#: Each is an `app` with commands of its own.
_GROUPS = {
    "workload": "Look at, convert and generate workloads.",
    "graph": "Ask a resource graph for room, and look at it.",
    "schedulers": "Build real schedulers, for virtual time.",
}
#: The modules of commands that have not one of their own.
_SHARED_MODULES = {"kubeflux": "live_schedulers", "scheduler": "live_schedulers"}


def help_only_app() -> typer.Typer:
    """Return the command line for who names no command, or none that there is: all are listed, and none is there."""
    app = _empty_app()
    for command, summary in (_COMMANDS | _GROUPS).items():
        app.command(command, help=summary)(lambda: None)
    return app


def build_app(name: str = "") -> typer.Typer:
    """Return the command line with the command `name`, or with all; the `help_only_app` if there is no such command."""
    if name and name not in _COMMANDS and name not in _GROUPS:
        return help_only_app()
    app = _empty_app()
    for command in _COMMANDS:
        if name in ("", command):
            app.command()(getattr(_command_module(command), command))
    for group in _GROUPS:
        if name in ("", group):
            app.add_typer(_command_module(group).app, name=group)
    return app


def _empty_app() -> typer.Typer:
    app = typer.Typer(
        name="batkube",
        help="Simulate Kubernetes clusters to study schedulers.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_global_options)
    return app


def _command_module(command: str) -> ModuleType:
    return importlib.import_module(f"batkube.cli.commands.{_SHARED_MODULES.get(command, command)}")


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        from batkube.version import __version__

        typer.echo(f"batkube {__version__}")
        raise typer.Exit


def _global_options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
    verbose: Annotated[
        int,
        typer.Option("--verbose", "-v", count=True, show_default=False, help="Say more of what is done; -vv for all."),
    ] = 0,
    log_level: Annotated[
        LogLevel | None, typer.Option("--log-level", help="How much to say: error, warning, info or debug.")
    ] = None,
    traceback: Annotated[  # heeded in `answering`, where errors are told
        bool, typer.Option("--traceback", help="With an error, also show where in the program it arose.")
    ] = False,
) -> None:
    """Simulate Kubernetes clusters to study schedulers."""
    configure_logging(log_level, verbose)
