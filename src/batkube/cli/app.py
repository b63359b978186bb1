"""The sub-commands of `batkube`.

Only the one that is asked for is imported: what the others need takes longer to load than a small run takes to run, and
is held in memory for nothing. Where none is named, or one that does not exist, all are there to be listed.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Annotated

import typer

from batkube.cli.log import LogLevel, start_log

#: Each is a function of its name, with the module that has it, in the order in which help lists them.
_COMMANDS = {
    "run": "run",
    "rerun": "rerun",
    "serve": "serve",
    "batsim": "batsim",
    "emulate": "emulate",
    "record": "record",
    "kubeflux": "joined",
    "scheduler": "joined",
    "policies": "policies",
    "gantt": "gantt",
    "chart": "chart",
    "compare": "compare",
    "calibrate": "calibrate",
    "report": "report",
    "cite": "cite",
    "experiment": "experiment",
    "completion": "completion",
}
#: Each is an `app` with commands of its own.
_GROUPS = ("workload", "graph", "schedulers")


def command_line(name: str = "") -> typer.Typer:
    """Return the command line with the command `name`, or with all of them if there is no such."""
    app = typer.Typer(
        name="batkube",
        help="Simulate Kubernetes clusters to study schedulers.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    is_known = name in _COMMANDS or name in _GROUPS
    for command, module in _COMMANDS.items():
        if command == name or not is_known:
            app.command()(getattr(_module(module), command))
    for group in _GROUPS:
        if group == name or not is_known:
            app.add_typer(_module(group).app, name=group)
    return app


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"batkube.cli.{name}")


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
        from batkube.version import __version__

        typer.echo(f"batkube {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
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
    start_log(log_level, verbose)
