"""The option `--labels` of commands that draw figures."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from batkube.outputs.charts.labels import FigureLabels

LabelsFile = Annotated[
    Path | None,
    typer.Option("--labels", metavar="FILE", help="A YAML file of names and the texts that figures show for them."),
]
_MAX_LISTED = 5


@contextlib.contextmanager
def figure_labels(file: Path | None) -> Iterator[FigureLabels]:
    """Provide the labels of a file, and print to stderr afterwards which names were cut, and which never appeared."""
    from batkube.outputs.charts.labels import FigureLabels, read_labels

    labels = FigureLabels() if file is None else read_labels(file)
    yield labels
    if labels.cut_names:
        typer.echo(f"cut in figures: {_listed(labels.cut_names)}; set their texts with --labels FILE", err=True)
    if labels.unused_names:
        typer.echo(f"{file}: in no figure: {_listed(labels.unused_names)}", err=True)


def _listed(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:_MAX_LISTED]))
    return shown if len(names) <= _MAX_LISTED else f"{shown} and {len(names) - _MAX_LISTED} others"
