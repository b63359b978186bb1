"""`batkube cite`: the methods paragraph of a paper from its runs, and how to cite Batkube."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from batkube.kernel.errors import InputError

if TYPE_CHECKING:
    from batkube.outputs.report.methods import RunTold


def cite(
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="DIR…", help="Output folders of runs or experiments.")
    ] = None,
    latex: Annotated[bool, typer.Option("--latex", help="Write LaTeX that cites `batkube`.")] = False,
    bibtex: Annotated[bool, typer.Option("--bibtex", help="Write the BibTeX entry alone.")] = False,
) -> None:
    r"""Write the methods paragraph of runs, and how to cite.

    \b
    batkube cite fcfs easy
    batkube cite study --latex > methods.tex
    batkube cite --bibtex > batkube.bib
    """
    from batkube.outputs.report import citation

    if bibtex and (folders or latex):
        raise InputError("--bibtex", problem="stands alone: the entry is the same for all runs", remedy="leave out DIR")
    if bibtex:
        typer.echo(citation.bibtex())
        return
    if not folders:
        typer.echo(citation.reference())
        typer.echo(f"\n{citation.bibtex()}")
        return
    from batkube.outputs.report.methods import methods_latex, methods_text

    told = [run for folder in folders for run in _runs(folder)]
    runs = [run for run in told if run is not None]
    if not runs:
        raise InputError(folders[0], problem="holds no run that has results", remedy="run it to its end")
    failed = len(told) - len(runs)
    if latex:
        typer.echo(methods_latex(runs, failed))
        return
    typer.echo(methods_text(runs, failed))
    typer.echo(f"\n{citation.reference()}")


def _runs(folder: Path) -> Iterator[RunTold | None]:
    """Yield the runs of a folder, of a run's or of an experiment's; None for each that failed."""
    from batkube.experiments.running.folder import DESCRIPTION
    from batkube.outputs.files.manifest import read_manifest
    from batkube.outputs.measures.run_files import RunFiles
    from batkube.outputs.report.methods import RunTold

    is_experiment = (folder / DESCRIPTION).is_file()
    places = sorted((folder / "runs").iterdir()) if is_experiment else [folder]
    for place in places:
        manifest = read_manifest(place)
        if not manifest and is_experiment:
            continue
        if "scenario" not in manifest and "failure" not in manifest:
            problem = "is not the output of a simulated run"
            raise InputError(place, problem=problem, remedy="give the --out of `batkube run` or `batkube experiment`")
        yield None if manifest.get("result") == "failed" else RunTold(manifest, RunFiles(place).notes)
