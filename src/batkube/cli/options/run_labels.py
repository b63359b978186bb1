"""The option `--label` of commands that show several runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from batkube.kernel.errors import InputError

Labels = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="TEXT", help="The name of a run in the output; repeat it, once per DIR."),
]


def labels_for(count: int, labels: Sequence[str] | None) -> Sequence[str]:
    """Return a label per run, empty for default names. Raises InputError if some are missing or equal."""
    if not labels:
        return [""] * count
    if len(labels) != count:
        problem = f"is given {len(labels)} times for {count} runs"
        raise InputError("--label", problem=problem, remedy="give one per DIR, in the same order, or none")
    if "" in labels or len(set(labels)) < count:
        raise InputError("--label", problem="is empty or given twice", remedy="use a different name for each run")
    return labels
