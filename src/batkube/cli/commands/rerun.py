"""`batkube rerun`: repeat a run from its output folder, which may have been moved, and compare the results."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from batkube.cli.commands.run import build_scheduler
from batkube.cli.options.trust import Trust, confirmation
from batkube.cli.process.exit_codes import FAILED
from batkube.kernel.errors import InputError
from batkube.simulation.progress import progress_display
from batkube.simulation.rerun import RerunResult
from batkube.simulation.rerun import rerun as repeat


def rerun(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The output folder of `batkube run`.")],
    out: Annotated[
        Path | None, typer.Option(metavar="NEW", help="Keep the outputs of the new run in this folder.")
    ] = None,
    inputs: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH", help="Where to search for inputs: a file, or a folder and its subfolders; may be repeated."
        ),
    ] = None,
    outputs: Annotated[
        str | None,
        typer.Option(metavar="FILES", help="The files to write, as for `run`; by default the same as before."),
    ] = None,
    pack: Annotated[bool, typer.Option("--pack", help="Copy the inputs into NEW.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace NEW if it is the output of an earlier run.")] = False,
    trust: Trust = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only differences.")] = False,
) -> None:
    """Repeat a run, and report differences."""
    if out is None and (pack or force):
        problem = "requires --out: without it, no outputs are kept"
        raise InputError("--pack" if pack else "--force", problem=problem, remedy="add --out NEW")
    with progress_display(quiet) as progress:
        repetition = repeat(
            folder,
            out,
            inputs=inputs or (),
            outputs=outputs,
            force=force,
            pack=pack,
            command=["batkube", *sys.argv[1:]],
            progress=progress,
            builder=build_scheduler,
            confirm=confirmation(trust, lists_all=True),
        )
    if not (quiet and repetition.is_identical):
        for line in _report_lines(repetition):
            typer.echo(line)
    if not repetition.is_identical:
        raise typer.Exit(FAILED)


def _report_lines(repetition: RerunResult) -> Iterator[str]:
    """Yield the lines of the report: the verdict, then the differences, then possible causes."""
    before, now = repetition.digests
    if repetition.is_identical:
        yield f"identical: digest {now}, and byte for byte {', '.join(repetition.identical_files)}"
    elif before != now:
        yield f"differs: the digest was {before} and is now {now}"
    else:
        yield f"differs, but the digest is the same: {now}"
    if repetition.failures[0] != repetition.failures[1]:
        outcomes = ("failed" if failure else "completed" for failure in repetition.failures)
        yield "  the run {} before and {} now".format(*outcomes)
    for difference in repetition.differences:
        where = f", first in line {difference.line}" if difference.line else ""
        how = "was modified after the run" if difference.is_altered else "differs"
        yield f"  {difference.name} {how}{where}"
        if difference.line:
            yield f"    was: {difference.before}"
            yield f"    is:  {difference.now}"
    if not repetition.is_identical and repetition.identical_files:
        yield f"  identical: {', '.join(repetition.identical_files)}"
    if repetition.nondeterminism:
        yield f"  {repetition.nondeterminism}"
    for line in repetition.environment_changes:
        yield f"  {line}"
