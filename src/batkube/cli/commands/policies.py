"""`batkube policies`: list the in-process policies."""

from __future__ import annotations

import typer

from batkube.policies.registry.catalogue import policy_names


def policies() -> None:
    """List the in-process policies."""
    for name, description in policy_names():
        typer.echo(f"policy:{name:<14} {description}")
