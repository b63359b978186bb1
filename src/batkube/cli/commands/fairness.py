"""`batkube fairness`: measures of fairness between the users of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from batkube.kernel.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

#: The users with most jobs are printed; --csv writes all.
_MAX_USERS = 20


def fairness(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="A run's output folder.", show_default=False)],
    solo: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="A run of the jobs of one user alone; repeat for several users."),
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write all users to this file, unrounded.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
) -> None:
    """Measure fairness between the users of a run.

    \b
    batkube fairness easy
    batkube fairness easy --solo easy-ann --solo easy-bob --csv users.csv
    """
    from batkube.outputs.files.derived_files import write_derived_file
    from batkube.outputs.measures.fairness import users_frame
    from batkube.outputs.results import Results

    if csv is not None and csv.exists() and not force:
        remedy = "choose another --csv, or add --force to replace it"
        raise InputError(csv, problem="already exists", remedy=remedy)
    users = users_frame(Results(run), [Results(folder) for folder in solo or ()])
    if len(users) < 2:
        problem = f"has finished jobs of {len(users)} users; fairness needs at least two"
        raise InputError(run, problem=problem, remedy="use a workload with users, such as an SWF trace")
    if csv is not None:
        write_derived_file(csv, users.to_csv(lineterminator="\n").encode())
    _print_tables(users)


def _print_tables(users: pd.DataFrame) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from batkube.outputs.measures.fairness import MEASURES, indices_of
    from batkube.text.console import EscapingConsole

    console = EscapingConsole(width=160, markup=False, highlight=False)
    indices = Table("over users", box=SIMPLE_HEAD, pad_edge=False)
    for title in ("users", "Jain", "Gini", "max / min"):
        indices.add_column(title, justify="right")
    for index in indices_of(users):
        spread = "–" if index.spread is None else f"{index.spread:,.3g}"
        indices.add_row(MEASURES[index.measure], f"{index.users:,}", f"{index.jain:.4f}", f"{index.gini:.4f}", spread)
    console.print(indices)
    known = [measure for measure in MEASURES if users[measure].notna().any()]
    table = Table("user", box=SIMPLE_HEAD, pad_edge=False)
    for title in ("jobs", *(MEASURES[measure] for measure in known)):
        table.add_column(title, justify="right")
    largest = users.sort_values("jobs", ascending=False, kind="stable").head(_MAX_USERS)
    for name, row in largest.iterrows():
        numbers = ["–" if row[measure] != row[measure] else f"{row[measure]:,.4g}" for measure in known]
        table.add_row(str(name) or "(no user)", f"{row['jobs']:,.0f}", *numbers)
    console.print(table)
    if len(users) > len(largest):
        typer.echo(f"{len(users) - len(largest):,} users with fewer jobs are left out; --csv writes all")
