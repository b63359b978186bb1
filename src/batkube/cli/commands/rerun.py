"""`batkube rerun`: a run again, from its folder, wherever that is now."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from batkube.cli.commands.run import build_scheduler
from batkube.cli.process.exit_codes import FAILED
from batkube.kernel.errors import InputError
from batkube.simulation.progress import progress_display
from batkube.simulation.rerun import RerunResult
from batkube.simulation.rerun import rerun as repeat


def rerun(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The output folder of `batkube run`.")],
    out: Annotated[Path | None, typer.Option(metavar="NEW", help="Keep the outputs of the new run here.")] = None,
    inputs: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH", help="Where inputs may be: a file, or a folder and all below it; may be repeated."
        ),
    ] = None,
    outputs: Annotated[
        str | None, typer.Option(metavar="FILES", help="Which files to write, as of `run`; unless said, the same.")
    ] = None,
    pack: Annotated[bool, typer.Option("--pack", help="Put the inputs into NEW.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace NEW if it is the output of an earlier run.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but what differs.")] = False,
) -> None:
    """Run a run again, and say what differs."""
    if out is None and (pack or force):
        problem = "means nothing without --out: nothing is kept"
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
        )
    if not (quiet and repetition.is_identical):
        for line in _report_lines(repetition):
            typer.echo(line)
    if not repetition.is_identical:
        raise typer.Exit(FAILED)


def _report_lines(repetition: RerunResult) -> Iterator[str]:
    """Yield what to say: first whether it is the same, then what is not, then what may be why."""
    before, now = repetition.digests
    if repetition.is_identical:
        yield f"the same: digest {now}, and to the byte {', '.join(repetition.identical_files)}"
    elif before != now:
        yield f"differs: the digest was {before}, and is {now}"
    else:
        yield f"differs, though the digest is the same: {now}"
    if repetition.failures[0] != repetition.failures[1]:
        yield "  it {}, and now it {}".format(*("failed" if one else "completed" for one in repetition.failures))
    for difference in repetition.differences:
        where = f", first in line {difference.line}" if difference.line else ""
        how = "is not what the run wrote: it was changed since" if difference.is_altered else "differs"
        yield f"  {difference.name} {how}{where}"
        if difference.line:
            yield f"    was: {difference.before}"
            yield f"    is:  {difference.now}"
    if not repetition.is_identical and repetition.identical_files:
        yield f"  as they were: {', '.join(repetition.identical_files)}"
    if repetition.nondeterminism:
        yield f"  {repetition.nondeterminism}"
    for line in repetition.environment_changes:
        yield f"  {line}"
