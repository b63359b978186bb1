"""`batkube report`: write a report of a run or an experiment as one HTML page."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from batkube.cli.options.figure_labels import LabelsFile, figure_labels
from batkube.cli.options.figure_widths import WIDTHS_IN, FigureWidth
from batkube.kernel.errors import InputError

if TYPE_CHECKING:
    from batkube.outputs.charts.labels import FigureLabels


class FigureFormat(enum.StrEnum):
    """The file format of figures."""

    SVG = "svg"
    PNG = "png"
    PDF = "pdf"
    PGF = "pgf"


def report(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="The output folder of a run or of an experiment.", show_default=False),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="The page to write; DIR/report.html by default."),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Also write each figure of an experiment to a file in this folder."),
    ] = None,
    kind: Annotated[
        FigureFormat | None, typer.Option("--format", help="The format of these files; svg by default.")
    ] = None,
    width: Annotated[
        FigureWidth | None,
        typer.Option(help="For print: as wide as a column (3.5 in) or a page (7.16 in) of a paper, without titles."),
    ] = None,
    tables: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Also write an experiment's tables to this folder, as LaTeX and CSV."),
    ] = None,
    columns: Annotated[str | None, typer.Option(metavar="NAME,…", help="The metrics in these tables.")] = None,
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            metavar="AXIS=LABEL", help="Compute an experiment's differences from this point; may be repeated."
        ),
    ] = None,
    labels: LabelsFile = None,
) -> None:
    """Write a report of a run or an experiment as one HTML file.

    The file is self-contained.

    \b
    batkube report out -o report.html
    batkube report experiment --figures figures --format pdf --width column
    batkube report experiment --tables tables --columns mean_waiting_time,mean_bounded_slowdown
    """
    is_experiment = _is_experiment(folder)
    figure_options = {"--figures": figures, "--width": width, "--format": kind}
    table_options = {"--tables": tables, "--columns": columns, "--baseline": baseline}
    _reject_unused_options(out, is_experiment, {**figure_options, **table_options})
    subtracted = _parse_baseline(baseline or [])
    from batkube.outputs.pages.page import default_page_path

    if tables is not None:
        _write_tables(folder, tables, columns or "", subtracted)
    target = out or default_page_path(folder.parent if folder.is_file() else folder)
    with figure_labels(labels) as texts:
        if is_experiment:
            from batkube.experiments.report.document import write_report

            write_report(folder, target, baseline=subtracted, labels=texts)
        else:
            from batkube.outputs.report.document import write_run_report

            write_run_report(folder, target, labels=texts)
        typer.echo(f"wrote {target}")
        if figures is not None:
            _write_figures(folder, figures, kind or FigureFormat.SVG, width, texts)


def _is_experiment(folder: Path) -> bool:
    """Return whether a folder is that of an experiment; raise InputError if it is not that of a run either."""
    from batkube.experiments.running.folder import DESCRIPTION_FILE

    is_experiment = (folder / DESCRIPTION_FILE).is_file()
    if not is_experiment and folder.is_dir() and not any(folder.glob("*jobs.csv")):
        raise InputError(
            folder,
            problem="is not the output folder of a run or an experiment: it has no jobs.csv and no experiment.json",
            remedy="use the --out folder of `batkube run` or `batkube experiment`",
        )
    return is_experiment


def _write_figures(
    folder: Path, figures: Path, kind: FigureFormat, width: FigureWidth | None, labels: FigureLabels
) -> None:
    from batkube.experiments.figures.gallery import save_figures

    for path in save_figures(folder, figures, kind.value, None if width is None else WIDTHS_IN[width], labels):
        typer.echo(f"wrote {path}")


def _write_tables(folder: Path, tables: Path, columns: str, baseline: Mapping[str, str]) -> None:
    from batkube.experiments.report.paper_tables import write_paper_tables

    names = [name.strip() for name in columns.split(",") if name.strip()]
    for path in write_paper_tables(folder, tables, names, baseline):
        typer.echo(f"wrote {path}")


def _parse_baseline(texts: Sequence[str]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for text in texts:
        axis, equals, label = text.partition("=")
        if not equals or not label or axis in labels:
            problem = f"{text!r} is not one label of an axis"
            raise InputError("--baseline", problem=problem, remedy="write, for example, scheduler=policy:easy")
        labels[axis.strip()] = label.strip()
    return labels


def _reject_unused_options(out: Path | None, is_experiment: bool, options: Mapping[str, object]) -> None:
    """Raise InputError for an output file that is not HTML, and for options that would have no effect."""
    if out is not None and not out.is_dir() and out.suffix.lower() not in (".html", ".htm"):
        remedy = "use .html; for figures, use --figures FOLDER --format pdf; for tables, --tables FOLDER"
        raise InputError(out, problem="does not have the extension of an HTML page", remedy=remedy)
    remedies = {
        "--figures": "draw a run with `batkube gantt`",
        "--tables": "compare runs with `batkube compare DIR DIR --latex FILE`",
        "--baseline": "compare runs with `batkube compare DIR DIR --baseline N`",
    }
    for option, remedy in remedies.items():
        if options[option] is not None and not is_experiment:
            raise InputError(option, problem="applies only to experiments, and this is a run", remedy=remedy)
    for option, needed in (("--columns", "--tables"), ("--width", "--figures"), ("--format", "--figures")):
        if options[option] is not None and options[needed] is None:
            raise InputError(option, problem=f"requires {needed}", remedy=f"add {needed} FOLDER, or omit {option}")
