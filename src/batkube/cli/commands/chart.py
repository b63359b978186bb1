"""`batkube chart`: machine states, free resources or the queue over time, as a figure for a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from batkube.cli.options.durations import time_option_s
from batkube.cli.options.figure_labels import LabelsFile, figure_labels
from batkube.cli.options.figure_widths import WIDTH_HELP, WIDTHS_IN, FigureWidth
from batkube.cli.options.run_labels import Labels, labels_for
from batkube.outputs.over_time.chart_kinds import ChartKind


def chart(
    kind: Annotated[
        ChartKind, typer.Argument(metavar="states|free|queue|users", help="What to draw.", show_default=False)
    ],
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="DIR…", help="Output folders of runs, or jobs.csv files.", show_default=False),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FILE", help="The file to write: .svg, .pdf, .pgf or .png.", show_default=False
        ),
    ],
    width: Annotated[FigureWidth | None, typer.Option(help=WIDTH_HELP)] = None,
    title: Annotated[str | None, typer.Option(help="The chart's title; the runs' names by default.")] = None,
    label: Labels = None,
    labels: LabelsFile = None,
    start: Annotated[str | None, typer.Option("--from", metavar="T", help="Start of the chart: 90, 1.5h, 2d.")] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="T", help="End of the chart.")] = None,
) -> None:
    """Draw machine states, free resources or the queue over time.

    The queue is shown in jobs and in their requests.

    \b
    batkube chart states out -o states.pdf --width column
    batkube chart queue fcfs easy -o queue.pdf
    """
    from batkube.outputs.over_time.chart import save_chart
    from batkube.outputs.results import Results

    window = (time_option_s("--from", start), time_option_s("--to", end))
    width_in = None if width is None else WIDTHS_IN[width]
    results = [Results(run, label=name) for run, name in zip(runs, labels_for(len(runs), label), strict=True)]
    with figure_labels(labels) as texts:
        save_chart(kind, results, out, title=title, window=window, width_in=width_in, labels=texts)
    typer.echo(f"wrote {out}")
