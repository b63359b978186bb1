"""`batkube cite`: the methods paragraph of a paper from its runs, and how to cite Batkube."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from batkube.kernel.errors import InputError


def cite(
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="DIR…", help="Output folders of runs or experiments.")
    ] = None,
    latex: Annotated[bool, typer.Option("--latex", help="Write LaTeX that cites `batkube`.")] = False,
    bibtex: Annotated[bool, typer.Option("--bibtex", help="Write only the BibTeX entry.")] = False,
) -> None:
    """Write the methods paragraph of runs, and how to cite.

    \b
    batkube cite fcfs easy
    batkube cite study --latex > methods.tex
    batkube cite --bibtex > batkube.bib
    """
    from batkube.outputs.report import citation

    if bibtex and (folders or latex):
        raise InputError(
            "--bibtex",
            problem="cannot be combined with DIR or --latex",
            remedy="omit them: the entry is the same for all runs",
        )
    if bibtex:
        typer.echo(citation.bibtex())
        return
    if not folders:
        typer.echo(citation.reference())
        typer.echo(f"\n{citation.bibtex()}")
        return
    from batkube.experiments.report.methods import run_facts_in
    from batkube.outputs.report.methods import methods_latex, methods_text

    runs, failed = run_facts_in(folders)
    if not runs:
        raise InputError(
            folders[0],
            problem="contains no run with results",
            remedy="use the output folder of a completed run or experiment",
        )
    if latex:
        typer.echo(methods_latex(runs, failed))
        return
    typer.echo(methods_text(runs, failed))
    typer.echo(f"\n{citation.reference()}")
