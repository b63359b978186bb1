"""`batkube explain`: why a job or pod waited and ran where it did, and what happened on a node."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def explain(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="A run's output folder.", show_default=False)],
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="A job (`w0!17`, or `17`), a pod or a node of the run.", show_default=False
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the same as JSON, with complete lists.")] = False,
) -> None:
    """Explain why a job waited, and why it ran where it did.

    The explanation of a job or a pod has the jobs that held the resources it needed, the jobs that overtook it and by
    which rule, each failed attempt, and why its node was chosen. That of a node has what ran on it. A run with
    --explain records the schedulers' own reasons, too.

    \b
    batkube explain out 'w0!17'
    batkube explain out w0-17 --json
    batkube explain out node-3
    """
    import msgspec

    from batkube.outputs.explain.explanation import Explainer
    from batkube.outputs.explain.text import lines_of

    explanation = Explainer(run).explain(name)
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(explanation), indent=2).decode())
        return
    for line in lines_of(explanation):
        typer.echo(line)
