"""`batkube compare`: compare several runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from batkube.cli.options.run_labels import Labels, labels_for
from batkube.kernel.errors import InputError
from batkube.text.console import EscapingConsole

if TYPE_CHECKING:
    from batkube.outputs.measures.comparisons.run_comparison import Comparison, JobDifferences


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="DIR DIR…", help="Output folders of runs, or jobs.csv files.", show_default=False),
    ],
    csv: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="Also write the metrics to this file, unrounded.")
    ] = None,
    latex: Annotated[
        Path | None, typer.Option("--latex", metavar="FILE", help="Also write the metrics to a LaTeX table.")
    ] = None,
    baseline: Annotated[
        int, typer.Option("--baseline", metavar="N", help="The number of the run to which others are compared.")
    ] = 1,
    warm_up: Annotated[
        str | None,
        typer.Option(metavar="TRIM", help="Exclude the beginning from means: 2d, 500jobs or 10% of the jobs."),
    ] = None,
    cool_down: Annotated[
        str | None, typer.Option(metavar="TRIM", help="Exclude the end from means: 2d, 500jobs or 10% of the jobs.")
    ] = None,
    journal: Annotated[
        bool, typer.Option("--journal", help="Show only the first lines in which the journals differ.")
    ] = False,
    label: Labels = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
) -> None:
    """Compare runs of one workload, metric by metric.

    The table has a column per run and a row per metric. A second table counts the jobs that differ.

    \b
    batkube compare out/fcfs out/easy out/conservative
    batkube compare out published_jobs.csv --csv table.csv
    batkube compare first again --journal
    """
    from batkube.outputs.files.derived_files import write_derived_file
    from batkube.outputs.measures.comparisons.run_comparison import compare_runs
    from batkube.outputs.report.comparison_table import comparison_latex
    from batkube.outputs.results import Results

    if len(runs) < 2:
        raise InputError("compare", problem="needs at least two runs", remedy="batkube compare DIR DIR …")
    if not 1 <= baseline <= len(runs):
        raise InputError("--baseline", problem=f"{baseline} is not between 1 and {len(runs)}, the number of runs")
    if journal:
        print_divergences(runs, baseline - 1)
        return
    for option, file in (("--csv", csv), ("--latex", latex)):
        if file is not None and file.exists() and not force:
            remedy = f"choose another {option}, or add --force to replace it"
            raise InputError(file, problem="already exists", remedy=remedy)
    named = zip(runs, labels_for(len(runs), label), strict=True)
    comparison = compare_runs(
        [Results(run, warm_up=warm_up, cool_down=cool_down, label=name) for run, name in named], baseline=baseline - 1
    )
    if csv is not None:
        write_derived_file(csv, comparison.csv().encode())
    if latex is not None:
        write_derived_file(latex, comparison_latex(comparison).encode())
    print_comparison(comparison, EscapingConsole(highlight=False))


def print_divergences(runs: list[Path], baseline: int) -> None:
    """Print, for each run, the first line at which its journal differs from that of the baseline."""
    from batkube.outputs.measures.comparisons.divergence import divergences

    base = runs[baseline]
    for run in runs[:baseline] + runs[baseline + 1 :]:
        differences = divergences(base, run)
        for divergence in differences:
            for line in divergence.describe((str(base), str(run))):
                typer.echo(line)
        if not differences:
            typer.echo(f"{base} and {run} are identical, line by line")


def print_comparison(comparison: Comparison, console: EscapingConsole) -> None:
    """Print a comparison, in colour only on a terminal. Wide tables are not cut; `less -S` shows them."""
    for warning in comparison.warnings:
        console.print(Text(f"warning: {warning}", style="yellow"), soft_wrap=True)
    _print_table(console, "Metrics", _metrics_table(comparison))
    for line in comparison.legend:
        console.print(Text(line), soft_wrap=True)
    _print_table(console, f"Jobs, against {comparison.labels[comparison.baseline]}", _jobs_table(comparison))


def _print_table(console: EscapingConsole, title: str, table: Table) -> None:
    table_width = Measurement.get(console, console.options.update(max_width=10_000), table).maximum
    console.width = max(table_width, console.width)
    console.print(Text(title, style="bold"))
    console.print(table)


def _metrics_table(comparison: Comparison) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("metric", no_wrap=True)
    table.add_column("unit", no_wrap=True)
    for run, label in enumerate(comparison.headings):
        table.add_column(Text(label), justify="right", no_wrap=True)
        if run != comparison.baseline:
            table.add_column("±%", justify="right", no_wrap=True)
    for number, row in enumerate(comparison.rows[0]):
        cells: list[str | Text] = [row.name, row.unit]
        for run, rows in enumerate(comparison.rows):
            cells.append(rows[number].text)
            if run != comparison.baseline:
                mark = comparison.mark_of(run, number)
                cells.append(mark or _change(comparison.change(run, number), row.better))
        table.add_row(*cells)
    return table


def _change(change: float | None, better: int) -> Text:
    if change is None:
        return Text("")
    if change == 0:
        return Text("=", style="dim")
    if abs(change) < 0.0005:
        return Text("±0.0", style="dim")
    improvement = change * better
    return Text(f"{change * 100:+.1f}", style="green" if improvement > 0 else "red" if improvement < 0 else "")


def _jobs_table(comparison: Comparison) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("", no_wrap=True)
    for difference in comparison.differences:
        table.add_column(Text(difference.label), justify="right", no_wrap=True)

    def add_row(name: str, cells: list[str]) -> None:
        table.add_row(name, *cells)

    runs = comparison.differences
    add_row("jobs in both", [f"{run.common:,}" for run in runs])
    add_row("start at another time", [f"{run.moved:,}" for run in runs])
    add_row("  by, on average", [f"{run.moved_s_mean:,.2f} s" if run.moved else "–" for run in runs])
    add_row("  by, at most", [_largest_shift(run) for run in runs])
    orders = [run.start_order for run in runs]
    add_row("rank correlation of starts", ["–" if order is None else f"{order:.3f}" for order in orders])
    add_row("on other machines", [f"{run.elsewhere:,}" for run in runs])
    add_row("other final state", [f"{run.ended_otherwise:,}" for run in runs])
    return table


def _largest_shift(difference: JobDifferences) -> str:
    if not difference.moved:
        return "–"
    return f"{difference.moved_s_max:+,.2f} s (job {difference.moved_most})"
