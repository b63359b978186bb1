"""`batkube show`: show runs in a browser."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from batkube.kernel.errors import InputError


def show(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="DIR [DIR]", help="The output folder of a run, or of two.", show_default=False),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write the page to this .html file, and serve nothing."),
    ] = None,
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="The port to listen on; any free one by default.")
    ] = 0,
) -> None:
    """Show a run in a browser: any instant, any node, any job.

    Prints the address of the page, and serves it on this machine until it is interrupted. Two runs are shown side by
    side, beginning with the first decision that differs.

    \b
    batkube show out
    batkube show out/fcfs out/easy
    batkube show out -o page.html
    """
    from batkube.outputs.pages.page import write_page
    from batkube.page.document import page_of_runs

    if out is None:
        _serve(runs, port)
        return
    if port:
        raise InputError("--port", problem="has no effect with -o", remedy="omit one of them")
    if out.suffix.lower() not in (".html", ".htm"):
        raise InputError(out, problem="does not have the extension of an HTML page", remedy="use .html")
    write_page(out, page_of_runs(runs))
    typer.echo(f"wrote {out}")


def _serve(runs: list[Path], port: int) -> None:
    from batkube.page.replay import resources_of_runs
    from batkube.page.server import PageServer

    with PageServer(resources_of_runs(runs), port) as server:
        typer.echo(f"showing at {server.url} (stop with Ctrl-C)")
        sys.stdout.flush()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return
