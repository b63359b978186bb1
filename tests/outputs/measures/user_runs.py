"""Runs of the jobs of three users, short enough to be computed by hand."""

from __future__ import annotations

from pathlib import Path

import batkube
from batkube.outputs.results import Results

#: On one machine under fcfs: job 1 of ann runs from 0 to 100, job 2 of bob waits from 10 and runs to 200, job 3 of ann
#: waits from 20 and runs to 300. cy's job 4 runs alone from 400 to 500.
ROWS = ((1, 0, "1"), (2, 10, "2"), (3, 20, "1"), (4, 400, "3"))


def simulated(folder: Path, name: str, users: str = "123") -> Results:
    """Simulate the jobs of these users into the folder `name`."""
    trace = folder / f"{name}.swf"
    lines = [f"{n} {at} -1 100 1 -1 -1 1 900 -1 1 {user} -1 -1 1 1 -1 -1\n" for n, at, user in ROWS if user in users]
    trace.write_text("; MaxProcs: 1\n" + "".join(lines))
    batkube.run(workload=trace, platform="1x1", scheduler="policy:fcfs", out=folder / name)
    return Results(folder / name)
