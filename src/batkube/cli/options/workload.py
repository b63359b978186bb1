"""Options of `batkube workload`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from batkube.workloads.reader import FORMATS
from batkube.workloads.writer import WRITABLE_FORMATS

Input = Annotated[Path, typer.Argument(help="A workload of any format; may be gzipped; - for stdin.")]
Output = Annotated[Path, typer.Option("--output", "-o", help="The file to write; its extension determines the format.")]
InputFormat = Annotated[
    str | None, typer.Option("--format", help=f"The format of INPUT, if it is not detected: {', '.join(FORMATS)}.")
]
OutputFormat = Annotated[
    str | None,
    typer.Option(
        "--output-format", help=f"The format of the output, if its extension has none: {', '.join(WRITABLE_FORMATS)}."
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")]
Machines = Annotated[int | None, typer.Option(min=1, help="Processors of the trace's machine, if INPUT lacks them.")]
Utilisation = Annotated[
    float | None, typer.Option(help="Keep the jobs submitted in a period of this mean utilisation (0 to 1).")
]
Variation = Annotated[float | None, typer.Option(min=0, help="The tolerance of the utilisation; 0.01 by default.")]
Pick = Annotated[int | None, typer.Option(min=1, help="Which of the matching periods to use; 1 by default.")]
Begin = Annotated[
    str | None, typer.Option("--from", help="Keep the jobs submitted at this time of the trace or later.")
]
Compress = Annotated[str | None, typer.Option(help="Divide submission times, run times and walltimes by this.")]
RaiseWalltime = Annotated[
    bool, typer.Option("--raise-walltime", help="Raise each walltime that is not above the run time.")
]

CoresPerMachine = Annotated[
    int | None, typer.Option(min=1, help="Convert sizes from processors to machines of N processors (rounded up).")
]
CpuNorm = Annotated[
    str | None,
    typer.Option(
        help="Convert each job to one pod with a CPU request proportional to its size; the largest gets this."
    ),
]
WalltimeFromRunTime = Annotated[str | None, typer.Option(help="Set each walltime to this many times the run time.")]
WalltimeFill = Annotated[
    str | None,
    typer.Option(
        help="Set the walltimes of jobs that have none: factor:1.5, noisy:2, a distribution in seconds, tsafrir[:MAX]."
    ),
]
MinSize = Annotated[int | None, typer.Option(min=1, help="Keep the jobs of at least this size.")]
MaxSize = Annotated[int | None, typer.Option(min=1, help="Keep the jobs of at most this size.")]
QueueName = Annotated[
    list[str] | None, typer.Option(help="Keep the jobs of this queue (number or name); may be repeated.")
]
PartitionName = Annotated[
    list[str] | None, typer.Option(help="Keep the jobs of this partition (number or name); may be repeated.")
]
ClipSize = Annotated[int | None, typer.Option(min=1, help="Reduce larger sizes to this.")]
Status = Annotated[
    list[str] | None,
    typer.Option(help="For SWF: keep the jobs of this status (1 completed, 0 failed, 5 cancelled); may be repeated."),
]
For = Annotated[str | None, typer.Option("--for", help="With --cannot-run: the platform on which jobs will run.")]
CannotRun = Annotated[
    str | None,
    typer.Option(help="For jobs that cannot run there: drop them, or replace their profile by a delay: 10m, walltime."),
]
