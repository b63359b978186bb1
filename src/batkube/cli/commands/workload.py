"""`batkube workload`: summarise, convert, generate and resample workloads."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from batkube.cli.options.recorded_options import step_of
from batkube.cli.options.workload import (
    Begin,
    CannotRun,
    ClipSize,
    Compress,
    CoresPerMachine,
    CpuNorm,
    For,
    Force,
    Input,
    InputFormat,
    Machines,
    MaxSize,
    MinSize,
    Output,
    OutputFormat,
    PartitionName,
    Pick,
    QueueName,
    RaiseWalltime,
    Status,
    Utilisation,
    Variation,
    WalltimeFill,
    WalltimeFromRunTime,
)
from batkube.kernel.errors import InputError
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import Instant, human_duration
from batkube.kernel.quantities import CPU
from batkube.text.console import EscapingConsole
from batkube.text.terminal import visible
from batkube.workloads.history import Step
from batkube.workloads.model import Workload
from batkube.workloads.reader import format_of_name, read_workload
from batkube.workloads.summary import SPREAD_COLUMNS, Summary, spread_rows, summarise, summary_rows
from batkube.workloads.synthetic import option_values
from batkube.workloads.synthetic.recipes import GENERATE, KEYS_OF_GENERATOR, RESAMPLE, RecipeSource, parse_recipe
from batkube.workloads.transformations import conversions, selection
from batkube.workloads.transformations.changes import changes_between
from batkube.workloads.transformations.utilisation import (
    find_period,
    has_recorded_waits,
    offered_intervals,
    recorded_intervals,
)
from batkube.workloads.transformations.walltime_fill import fill_walltimes
from batkube.workloads.writer import write_workload

app = typer.Typer(
    name="workload",
    help="Summarise, convert and generate workloads.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

_PIPED_WIDTH = 160
_EXACT_WALLTIMES = (
    "warning: --walltime-from-runtime: a job whose run time equals its walltime is killed; "
    "use 1.001 for almost exact estimates"
)


_NO_RECORDED_WAITS = FidelityNote(
    "workload", "all wait times are -1, so its recorded starts are unknown and cannot be compared with a run's"
)


@app.command()
def show(
    input: Input,
    format: InputFormat = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, with times in nanoseconds.")] = False,
) -> None:
    """Print a summary of a workload."""
    workload = read_workload(input, format=format)
    summary = summarise(workload)
    if json:
        numbers = {**dataclasses.asdict(summary), "offered_load": summary.offered_load}
        typer.echo(msgspec.json.encode({**numbers, "history": workload.header.history}).decode())
        return
    _print_summary(f"Workload {input}", summary)
    for number, step in enumerate(workload.header.history, 1):
        typer.echo(visible(f"step {number}: {step}"))
    waits = () if not _is_swf(input, format) or has_recorded_waits(input) else ((_NO_RECORDED_WAITS, 1),)
    _print_notes((*workload.notes, *waits), about=input)


@app.command()
def convert(
    context: typer.Context,
    input: Input,
    output: Output,
    format: InputFormat = None,
    output_format: OutputFormat = None,
    force: Force = False,
    status: Status = None,
    machines: Machines = None,
    utilisation: Utilisation = None,
    period: Annotated[str | None, typer.Option(help="The length of that period; 10h by default.")] = None,
    variation: Variation = None,
    pick: Pick = None,
    begin: Begin = None,
    end: Annotated[str | None, typer.Option("--to", help="Keep the jobs submitted before this time.")] = None,
    min_size: MinSize = None,
    max_size: MaxSize = None,
    user: Annotated[list[str] | None, typer.Option(help="Keep the jobs of this user; may be repeated.")] = None,
    queue: QueueName = None,
    partition: PartitionName = None,
    drop_zero: Annotated[bool, typer.Option("--drop-zero", help="Remove jobs with run time 0.")] = False,
    first: Annotated[int | None, typer.Option(min=1, help="Keep the first N of the remaining jobs.")] = None,
    shift: Annotated[bool, typer.Option("--shift", help="Shift submissions so that the first is at 0.")] = False,
    rate: Annotated[str | None, typer.Option(help="Multiply the arrival rate by this.")] = None,
    compress: Compress = None,
    trim: Annotated[str | None, typer.Option(help="Reduce longer run times to this.")] = None,
    clip_size: ClipSize = None,
    cores_per_machine: CoresPerMachine = None,
    cpu_norm: CpuNorm = None,
    cpu_max: Annotated[str | None, typer.Option(help="With --cpu-norm: the maximum CPU request of a pod.")] = None,
    platform: For = None,
    cannot_run: CannotRun = None,
    no_walltime: Annotated[bool, typer.Option("--no-walltime", help="Remove all walltimes.")] = False,
    walltime_factor: Annotated[str | None, typer.Option(help="Multiply walltimes by this.")] = None,
    walltime_from_runtime: WalltimeFromRunTime = None,
    walltime_fill: WalltimeFill = None,
    seed: Annotated[int | None, typer.Option(help="With --walltime-fill: the seed of the model; default 0.")] = None,
    raise_walltime: RaiseWalltime = False,
    scheduler: Annotated[str | None, typer.Option(help="Set the scheduler of every job.")] = None,
) -> None:
    """Convert a workload, and change it. Changes are applied in the order of the options in this help."""
    workload = source = read_workload(input, format=format, statuses=status or ())
    if machines is not None:
        workload = dataclasses.replace(workload, size_machines=machines)
    workload = _utilisation_window(workload, input, format, utilisation, period, variation, pick)
    workload = _window(workload, begin, end)
    workload = selection.filter_jobs(
        workload, sizes=(min_size, max_size), users=user or (), queues=queue or (), partitions=partition or ()
    )
    if drop_zero:
        workload = selection.drop_zero_run_times(workload)
    if first is not None:
        workload = selection.first_jobs(workload, first)
    if shift:
        workload = conversions.shift_to_zero(workload)
    workload = _rescale_times(workload, rate, compress, trim)
    if clip_size is not None:
        workload = conversions.clip_sizes(workload, clip_size)
    workload = _resize_jobs(workload, cores_per_machine, cpu_norm, cpu_max)
    workload = _handle_unrunnable(workload, platform, cannot_run)
    workload = _set_walltimes(workload, no_walltime, walltime_factor, walltime_from_runtime)
    workload = _complete_walltimes(workload, walltime_fill, seed, raises=raise_walltime)
    if scheduler is not None:
        workload = conversions.with_scheduler(workload, scheduler)
    step = step_of(context, len(workload.jobs), changes_between(source, workload))
    _write_and_report(selection.recount_overruns(workload), step, output, output_format, force)


@app.command()
def generate(
    context: typer.Context,
    kind: Annotated[str, typer.Argument(metavar="|".join(KEYS_OF_GENERATOR), help="The generator.")],
    output: Output,
    jobs: Annotated[int, typer.Option(min=1, help="The number of jobs.")] = 200,
    seed: Annotated[int, typer.Option(help="The seed of the random numbers.")] = 0,
    output_format: OutputFormat = None,
    force: Force = False,
    interval: Annotated[
        str | None, typer.Option(help="spaced: time between jobs (default 10 s); poisson: mean time between jobs.")
    ] = None,
    rate: Annotated[float | None, typer.Option(help="poisson: jobs per second, instead of --interval.")] = None,
    run_time: Annotated[
        str | None, typer.Option(help="Run time in seconds: a number or a distribution (default 170).")
    ] = None,
    size: Annotated[
        str | None, typer.Option(help="Pods (or machines) per job: a number or a distribution (default 1).")
    ] = None,
    cpu: Annotated[str | None, typer.Option(help="Cores requested per pod: a number or a distribution.")] = None,
    memory: Annotated[str | None, typer.Option(help="Memory requested per pod: a quantity such as 4Gi.")] = None,
    walltime: Annotated[str | None, typer.Option(help="Walltime in seconds: a number or a distribution.")] = None,
    machines: Annotated[
        int | None, typer.Option(min=2, help="lublin: processors of the machine (default 128).")
    ] = None,
    by_type: Annotated[
        bool, typer.Option("--by-type", help="lublin: mix the model's batch and interactive jobs.")
    ] = False,
) -> None:
    """Generate a workload. Distributions are written constant:170, uniform:10,20, exponential:60, choice:1,2,4 …"""
    words = {
        GENERATE: kind,
        "jobs": jobs,
        "interval": interval,
        "rate": rate,
        "run-time": run_time,
        "size": size,
        "cpu": cpu,
        "memory": memory,
        "walltime": walltime,
        "machines": machines,
        "by-type": by_type or None,
    }
    workload = parse_recipe(words, RecipeSource()).make(seed)
    _write_and_report(workload, step_of(context, len(workload.jobs), {}), output, output_format, force)


@app.command()
def resample(
    context: typer.Context,
    input: Input,
    output: Output,
    window: Annotated[
        str | None, typer.Option(help="Draw a part of the trace of this length: 7d, or 2000jobs.")
    ] = None,
    overlap: Annotated[
        bool, typer.Option("--overlap/--no-overlap", help="Whether windows of different seeds may overlap.")
    ] = True,
    blocks: Annotated[
        str | None, typer.Option(help="Draw blocks of this length (1d, 7d) with replacement, and concatenate them.")
    ] = None,
    length: Annotated[str | None, typer.Option(help="With --blocks: the total length.")] = None,
    rate: Annotated[str | None, typer.Option(help="Multiply the arrival rate by this.")] = None,
    machines: Machines = None,
    seed: Annotated[int, typer.Option(help="The seed of the random numbers.")] = 0,
    output_format: OutputFormat = None,
    force: Force = False,
) -> None:
    """Draw a workload from a trace: a window, or blocks.

    Each seed draws another workload, a replicate.
    """
    words = {
        RESAMPLE: str(input),
        "window": window,
        "overlap": None if overlap else False,
        "blocks": blocks,
        "length": length,
        "rate": rate,
        "machines": machines,
    }
    workload = parse_recipe(words, RecipeSource()).make(seed)
    _write_and_report(workload, step_of(context, len(workload.jobs), {}), output, output_format, force)


def _require_option(required: str, options: dict[str, object]) -> None:
    """Raise InputError for options that have no effect without the option `required`."""
    for option, value in options.items():
        if value is not None:
            raise InputError(option, problem=f"requires {required}", remedy=f"add {required}, or omit {option}")


def _print_summary(title: str, summary: Summary) -> None:
    """Print two tables; without a terminal, omit lines and wrapping, for grep and awk."""
    console = EscapingConsole(markup=False)
    if not console.is_terminal:
        console = EscapingConsole(width=_PIPED_WIDTH, markup=False)
    box = SIMPLE_HEAD if console.is_terminal else None
    values = Table(box=box, show_header=False, title=title if console.is_terminal else None, title_justify="left")
    for row_title, value in summary_rows(summary):
        values.add_row(row_title, value)
    spreads = Table("", box=box)
    for name in SPREAD_COLUMNS:
        spreads.add_column(name, justify="right")
    for row in spread_rows(summary):
        spreads.add_row(*row)
    console.print(values)
    console.print(spreads)


def _utilisation_window(
    workload: Workload,
    path: Path,
    format: str | None,
    target: float | None,
    period: str | None,
    variation: float | None,
    pick: int | None,
) -> Workload:
    if target is None:
        _require_option("--utilisation", {"--period": period, "--variation": variation, "--pick": pick})
        return workload
    target = option_values.utilisation_option("--utilisation", target)
    length = option_values.duration_option("--period", period or "10h")
    has_recorded_starts = _is_swf(path, format) and has_recorded_waits(path)
    intervals = recorded_intervals(path) if has_recorded_starts else offered_intervals(workload)
    match = find_period(workload, intervals, length, target, 0.01 if variation is None else variation, pick or 1)
    kind = "recorded" if has_recorded_starts else "offered (the file has no recorded starts)"
    period_text = f"period {human_duration(match.begin)} to {human_duration(match.end)} of the trace"
    typer.echo(f"{period_text}, mean utilisation {match.utilisation:.4f}, {kind}", err=True)
    return selection.window(workload, match.begin, match.end)


def _is_swf(path: Path, format: str | None) -> bool:
    return (format or format_of_name(path) or "swf") == "swf"


def _window(workload: Workload, begin: str | None, end: str | None) -> Workload:
    if begin is None and end is None:
        return workload
    since = option_values.duration_option("--from", begin or "0")
    until = None if end is None else option_values.duration_option("--to", end)
    if until is not None and until < since:
        raise InputError(
            "--from", problem=f"{begin} is later than --to {end}", remedy=f"swap them: --from {end} --to {begin}"
        )
    return selection.window(workload, Instant(since), None if until is None else Instant(until))


def _rescale_times(workload: Workload, rate: str | None, compress: str | None, trim: str | None) -> Workload:
    """Apply the options that change submission and run times."""
    if rate is not None:
        workload = conversions.scale_arrival_rate(workload, option_values.factor_option("--rate", rate))
    if compress is not None:
        workload = conversions.compress_time(workload, option_values.factor_option("--compress", compress))
    if trim is not None:
        workload = conversions.trim_run_times(workload, option_values.duration_option("--trim", trim))
    return workload


def _resize_jobs(workload: Workload, cores: int | None, cpu_norm: str | None, cpu_max: str | None) -> Workload:
    if cores is not None:
        workload = conversions.pack_machines(workload, cores)
    if cpu_norm is not None:
        maximum = None if cpu_max is None else option_values.quantity_option("--cpu-max", CPU, cpu_max)
        return conversions.normalise_cpu(workload, option_values.quantity_option("--cpu-norm", CPU, cpu_norm), maximum)
    _require_option("--cpu-norm", {"--cpu-max": cpu_max})
    return workload


def _set_walltimes(workload: Workload, none: bool, factor: str | None, from_run_time: str | None) -> Workload:
    if sum((none, factor is not None, from_run_time is not None)) > 1:
        raise InputError(
            "batkube workload convert",
            problem="--no-walltime, --walltime-factor and --walltime-from-runtime cannot be combined",
            remedy="use only one of them",
        )
    if none:
        return conversions.without_walltimes(workload)
    if factor is not None:
        return conversions.scale_walltimes(workload, option_values.factor_option("--walltime-factor", factor))
    if from_run_time is not None:
        times = option_values.factor_option("--walltime-from-runtime", from_run_time)
        result = conversions.walltimes_from_run_times(workload, times)
        if times <= 1:
            typer.echo(_EXACT_WALLTIMES, err=True)
        return result
    return workload


def _complete_walltimes(workload: Workload, fill: str | None, seed: int | None, *, raises: bool) -> Workload:
    if fill is not None:
        workload = fill_walltimes(workload, fill, seed or 0)
    else:
        _require_option("--walltime-fill", {"--seed": seed})
    return conversions.raise_walltimes(workload) if raises else workload


def _handle_unrunnable(workload: Workload, platform: str | None, action: str | None) -> Workload:
    if platform is None or action is None:
        _require_option("--for" if platform is None else "--cannot-run", {"--for": platform, "--cannot-run": action})
        return workload
    from batkube.simulation.preparation.runnable_jobs import keep_runnable

    return keep_runnable(workload, platform, action)


def _write_and_report(workload: Workload, step: Step, output: Path, format: str | None, force: bool) -> None:
    losses = write_workload(workload, output, format, force=force, step=step)
    typer.echo(f"wrote {len(workload.jobs)} jobs to {output}")
    _print_notes(workload.notes, about=workload.source)
    _print_notes(losses, about=output)


def _print_notes(notes: Iterable[tuple[FidelityNote, int]], about: str | Path) -> None:
    """Print notes on a file to standard error."""
    for note, count in notes:
        typer.echo(f"note: {about}: {note.message_with_count(count)}", err=True)
