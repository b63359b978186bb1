"""`batkube report`: a run or an experiment as one page."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from batkube.kernel.errors import InputError


class FigureFormat(enum.StrEnum):
    """What figures are written as."""

    SVG = "svg"
    PNG = "png"
    PDF = "pdf"


def report(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="The output folder of a run or of an experiment.", show_default=False),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="The page to write; DIR/report.html unless said."),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Also write each figure of an experiment there, a file each."),
    ] = None,
    kind: Annotated[FigureFormat, typer.Option("--format", help="What those files are.")] = FigureFormat.SVG,
) -> None:
    """Tell a run or an experiment in one HTML file.

    The file needs nothing else.

    \b
    batkube report out -o report.html
    batkube report experiment --figures figures --format pdf
    """
    from batkube.experiments.running.folder import DESCRIPTION

    is_experiment = (folder / DESCRIPTION).is_file()
    if not is_experiment and folder.is_dir() and not any(folder.glob("*jobs.csv")):
        raise InputError(
            folder,
            problem="is neither a run's output folder nor an experiment's: it holds no jobs.csv and no experiment.json",
            remedy="give the --out of `batkube run` or of `batkube experiment`",
        )
    if figures is not None and not is_experiment:
        raise InputError(
            "--figures", problem="is for experiments, and this is a run", remedy="draw a run with `batkube gantt`"
        )
    from batkube.outputs.pages.page import page_place

    target = out or page_place(folder.parent if folder.is_file() else folder)
    if is_experiment:
        from batkube.experiments.report.document import write_report

        write_report(folder, target)
    else:
        from batkube.outputs.report.document import write_run_report

        write_run_report(folder, target)
    typer.echo(f"wrote {target}")
    if figures is not None:
        from batkube.experiments.figures.gallery import save_figures

        for path in save_figures(folder, figures, kind.value):
            typer.echo(f"wrote {path}")
