"""`batkube gantt`: draw a Gantt chart of a run."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from batkube.cli.options.durations import time_option_s
from batkube.cli.options.figure_labels import LabelsFile, figure_labels
from batkube.cli.options.figure_widths import WIDTH_HELP, WIDTHS_IN, FigureWidth
from batkube.kernel.errors import InputError


class ColourBy(enum.StrEnum):
    """The meaning of the colours of jobs."""

    JOB = "job"
    USER = "user"
    PROFILE = "profile"
    STATE = "state"


def gantt(
    run: Annotated[
        Path, typer.Argument(metavar="DIR", help="A run's output folder, or a jobs.csv.", show_default=False)
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="The file to write: .svg, .pdf, .pgf, .png or .html.",
            show_default=False,
        ),
    ],
    title: Annotated[str | None, typer.Option(help="The chart's title; the run's name by default.")] = None,
    start: Annotated[str | None, typer.Option("--from", metavar="T", help="Start of the chart: 90, 1.5h, 2d.")] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="T", help="End of the chart.")] = None,
    against: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Another run: colour the jobs that start earlier or later than in it."),
    ] = None,
    by: Annotated[ColourBy, typer.Option("--by", help="The meaning of the colours.")] = ColourBy.JOB,
    width: Annotated[FigureWidth | None, typer.Option(help=WIDTH_HELP)] = None,
    labels: LabelsFile = None,
) -> None:
    """Draw a Gantt chart of a run.

    Utilisation and queue length are drawn below the chart.

    \b
    batkube gantt out -o out.svg
    batkube gantt out -o out.html --by user --from 2h --to 3h30m
    batkube gantt easy --against fcfs -o difference.pdf --width page
    """
    from batkube.outputs.gantt.chart import save_gantt
    from batkube.outputs.results import Results

    window = (time_option_s("--from", start), time_option_s("--to", end))
    other = None if against is None else Results(against)
    if other is not None and by is not ColourBy.JOB:
        problem = "cannot be combined with --against, which has colours of its own"
        raise InputError("--by", problem=problem, remedy="omit one of them")
    width_in = None if width is None else WIDTHS_IN[width]
    with figure_labels(labels) as texts:
        save_gantt(
            Results(run),
            out,
            title=title,
            color_by=by.value,
            window=window,
            against=other,
            width_in=width_in,
            labels=texts,
        )
    typer.echo(f"wrote {out}")
