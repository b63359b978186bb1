"""`batkube doctor`: check the requirements of Batkube on this machine."""

from __future__ import annotations

import typer

from batkube.cli.process.exit_codes import FAILED


def doctor() -> None:
    """Check the requirements of Batkube on this machine.

    Each line is `ok`, `limited` (an optional feature does not work) or `missing` (real schedulers cannot run). The exit
    code is 1 if something is missing. Nothing is built or downloaded.
    """
    from batkube.cli.machine_checks import CheckState, checks
    from batkube.schedulers.installed import cache_folder, user_catalogue

    states = set()
    for check in checks(cache_folder(), user_catalogue()):
        states.add(check.state)
        typer.echo(f"{check.subject:<15} {check.state.value:<8} {check.finding}")
        if check.remedy:
            typer.echo(f"{'':<15} {'':<8} → {check.remedy}")
    if CheckState.MISSING in states:
        typer.echo("\nPolicies can run. Real schedulers cannot run until everything that is missing is installed.")
        raise typer.Exit(FAILED)
    typer.echo("\nPolicies and real schedulers can run.")
