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
    PGF = "pgf"


class FigureWidth(enum.StrEnum):
    """How wide figures are in print."""

    COLUMN = "column"
    PAGE = "page"


#: In inches: a column, and the whole page, of a journal with two columns (IEEE, ACM).
_WIDTHS_IN = {FigureWidth.COLUMN: 3.5, FigureWidth.PAGE: 7.16}


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
    width: Annotated[
        FigureWidth | None,
        typer.Option(help="For print: as wide as a column (3.5 in) or a page (7.16 in) of a paper, without titles."),
    ] = None,
    tables: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Also write an experiment's tables there, as LaTeX and CSV."),
    ] = None,
    columns: Annotated[
        str | None, typer.Option(metavar="NAME,…", help="Which numbers those tables have; the usual ones unless said.")
    ] = None,
) -> None:
    """Tell a run or an experiment in one HTML file.

    The file needs nothing else.

    \b
    batkube report out -o report.html
    batkube report experiment --figures figures --format pdf --width column
    batkube report experiment --tables tables --columns mean_waiting_time,mean_bounded_slowdown
    """
    from batkube.experiments.running.folder import DESCRIPTION

    is_experiment = (folder / DESCRIPTION).is_file()
    if not is_experiment and folder.is_dir() and not any(folder.glob("*jobs.csv")):
        raise InputError(
            folder,
            problem="is neither a run's output folder nor an experiment's: it holds no jobs.csv and no experiment.json",
            remedy="give the --out of `batkube run` or of `batkube experiment`",
        )
    if out is not None and not out.is_dir() and out.suffix.lower() not in (".html", ".htm"):
        remedy = "end it in .html; figures for papers: --figures FOLDER --format pdf, tables: --tables FOLDER"
        raise InputError(out, problem="is no name for a report, which is an HTML page", remedy=remedy)
    if figures is not None and not is_experiment:
        raise InputError(
            "--figures", problem="is for experiments, and this is a run", remedy="draw a run with `batkube gantt`"
        )
    if tables is not None and not is_experiment:
        remedy = "compare runs with `batkube compare DIR DIR --latex FILE`"
        raise InputError("--tables", problem="is for experiments, and this is a run", remedy=remedy)
    if columns is not None and tables is None:
        raise InputError("--columns", problem="means nothing without --tables")
    if width is not None and figures is None:
        raise InputError("--width", problem="means nothing without --figures")
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

        width_in = None if width is None else _WIDTHS_IN[width]
        for path in save_figures(folder, figures, kind.value, width_in):
            typer.echo(f"wrote {path}")
    if tables is not None:
        from batkube.experiments.report.paper_tables import write_paper_tables

        names = [name.strip() for name in (columns or "").split(",") if name.strip()]
        for path in write_paper_tables(folder, tables, names):
            typer.echo(f"wrote {path}")
