"""The subcommands of `batkube`.

Only the module of the requested command is imported. Importing all of them takes longer than a small run, and more
memory. The list of commands, for help or after a misspelt command, needs no import.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Annotated

import typer

from batkube.cli.process.log import LogLevel, configure_logging

#: The help summary of each command, in the order of the list. Each command is a function of the same name.
_COMMANDS = {
    "run": "Run a workload on a simulated cluster.",
    "rerun": "Repeat a run, and report differences.",
    "serve": "Serve the Kubernetes API of a simulated cluster.",
    "batsim": "Simulate like Batsim 4, for schedulers that use its protocol.",
    "emulate": "Run a workload on a real cluster, in real time.",
    "record": "Record a live cluster, to replay it in a simulation.",
    "kubeflux": "Schedule the pods of a live cluster with KubeFlux.",
    "scheduler": "Schedule the pods of a live cluster with a policy.",
    "policies": "List the in-process policies.",
    "show": "Show a run in a browser: any instant, any node, any job.",
    "gantt": "Draw a Gantt chart of a run.",
    "chart": "Draw machine states, free resources or the queue over time.",
    "compare": "Compare runs of one workload, metric by metric.",
    "fairness": "Measure fairness between the users of a run.",
    "calibrate": "Fit latencies to recorded runs.",
    "export": "Export a run to Perfetto, Chrome's trace viewer or Parquet.",
    "explain": "Explain why a job waited, and why it ran where it did.",
    "report": "Write a report of a run or an experiment as one HTML file.",
    "doctor": "Check the requirements of Batkube on this machine.",
    "cite": "Write the methods paragraph of runs, and how to cite.",
    "experiment": "Run every scenario of a grid, and collect the results.",
    "completion": "Print a completion script for a shell.",
}
#: Command groups; each module has an `app`.
_GROUPS = {
    "workload": "Summarise, convert and generate workloads.",
    "graph": "Query and draw a resource graph.",
    "schedulers": "Build real schedulers for virtual time.",
}
#: The modules of commands without a module of their own.
_SHARED_MODULES = {"kubeflux": "live_schedulers", "scheduler": "live_schedulers"}


def help_only_app() -> typer.Typer:
    """Return a command line that lists all commands for help, and implements none of them."""
    app = _empty_app()
    for command, summary in (_COMMANDS | _GROUPS).items():
        app.command(command, help=summary)(lambda: None)
    return app


def build_app(name: str = "") -> typer.Typer:
    """Return the command line with the command `name`, or with all; for an unknown name, `help_only_app`."""
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


def _print_version(is_requested: bool) -> None:
    if is_requested:
        from batkube.version import __version__

        typer.echo(f"batkube {__version__}")
        raise typer.Exit


def _global_options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
    verbose: Annotated[
        int,
        typer.Option("--verbose", "-v", count=True, show_default=False, help="Log more: info, or debug with -vv."),
    ] = 0,
    log_level: Annotated[
        LogLevel | None, typer.Option("--log-level", help="Log level: error, warning, info or debug.")
    ] = None,
    traceback: Annotated[  # handled by `invocation`
        bool, typer.Option("--traceback", help="Also print the Python traceback of an error.")
    ] = False,
) -> None:
    """Simulate Kubernetes clusters to study schedulers."""
    configure_logging(log_level, verbose)
