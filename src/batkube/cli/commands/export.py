"""`batkube export`: a run as a trace for Perfetto or Chrome, or as Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from batkube.outputs.exports.formats import ExportFormat, format_of


def export(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="A run's output folder.", show_default=False)],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="The file to write, .pftrace or .json, or a folder for Parquet files, .parquet.",
            show_default=False,
        ),
    ],
    export_format: Annotated[
        ExportFormat | None, typer.Option("--format", help="The format, if the suffix of FILE is another one.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
) -> None:
    """Export a run to Perfetto, Chrome's trace viewer or Parquet.

    A trace has tracks for nodes, jobs and schedulers, counters, and a flow for each pod, on virtual time.

    \b
    batkube export out -o out.pftrace        open it at ui.perfetto.dev, or query it with SQL
    batkube export out -o out.json           for chrome://tracing and others
    batkube export out -o out.parquet        every table of the run
    """
    from batkube.outputs.exports.export import save_export

    save_export(run, out, export_format or format_of(out), force=force)
    typer.echo(f"wrote {out}")
