"""Options of `batkube workload`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from batkube.workloads.reader import FORMATS
from batkube.workloads.writer import WRITABLE_FORMATS

Input = Annotated[Path, typer.Argument(help="A workload of any format; may be gzipped; - for stdin.")]
Output = Annotated[Path, typer.Option("--output", "-o", help="File to write; its extension tells the format.")]
InputFormat = Annotated[
    str | None, typer.Option("--format", help=f"Format of INPUT if its name does not tell: {', '.join(FORMATS)}.")
]
OutputFormat = Annotated[
    str | None,
    typer.Option(
        "--output-format", help=f"Format of the output if its name does not tell: {', '.join(WRITABLE_FORMATS)}."
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")]
Machines = Annotated[int | None, typer.Option(min=1, help="Processors of the trace's machine, if INPUT does not say.")]
Utilisation = Annotated[
    float | None, typer.Option(help="Keep the jobs submitted in a period of this mean utilisation (0 to 1).")
]
Variation = Annotated[float | None, typer.Option(min=0, help="How far its utilisation may be off (0.01 if not given).")]
Pick = Annotated[int | None, typer.Option(min=1, help="Which period found: 2 for the second (1 if not given).")]
Begin = Annotated[
    str | None, typer.Option("--from", help="Keep the jobs submitted at this time of the trace or later.")
]
Compress = Annotated[
    str | None, typer.Option(help="Let arrivals, run times and walltimes pass this many times as fast.")
]
RaiseWalltime = Annotated[
    bool, typer.Option("--raise-walltime", help="Raise each walltime that is not above the run time above it.")
]

CoresPerMachine = Annotated[
    int | None, typer.Option(min=1, help="Count machines of N processors instead of processors (rounded up).")
]
CpuNorm = Annotated[
    str | None,
    typer.Option(help="Make each job one pod with its share of this cpu; the largest job gets all of it."),
]
WalltimeFromRunTime = Annotated[str | None, typer.Option(help="Set each walltime to this many times the run time.")]
MinSize = Annotated[int | None, typer.Option(min=1, help="Keep the jobs of this size or a larger one.")]
MaxSize = Annotated[int | None, typer.Option(min=1, help="Keep the jobs of this size or a smaller one.")]
ClipSize = Annotated[int | None, typer.Option(min=1, help="Let no job be larger than this.")]
Status = Annotated[
    list[str] | None,
    typer.Option(
        help="Of an SWF trace: keep the jobs that ended so (1 completed, 0 failed, 5 cancelled); may be repeated."
    ),
]
For = Annotated[str | None, typer.Option("--for", help="With --cannot-run: the platform that jobs are to run on.")]
CannotRun = Annotated[
    str | None,
    typer.Option(help="What becomes of jobs that cannot run there: drop; or what they take instead: 10m, walltime."),
]
