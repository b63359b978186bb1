"""evalys, a library for analysing Batsim's outputs, reads jobs.csv."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Simulate

SCRIPT = """\
import json, sys
from evalys.jobset import JobSet
jobs = JobSet.from_csv(sys.argv[1])
print(json.dumps({
    "ids": list(jobs.df.jobID),
    "starts": list(jobs.df.starting_time),
    "sizes": [int(size) for size in jobs.df.proc_alloc],
    "machines": jobs.MaxProcs,
    "mean_wait": float(jobs.df.waiting_time.mean()),
    "busy_at_5": float(jobs.utilisation.load.asof(5)),
}))
"""


def test_evalys_reads_our_jobs_csv_unchanged(simulate: Simulate, tmp_path: Path) -> None:
    """In a separate process, because evalys causes warnings."""
    profiles = {"d": {"type": "delay", "delay": 10}}
    jobs = [{"id": str(number), "subtime": number, "res": 2, "profile": "d"} for number in range(4)]
    run = simulate(jobs, profiles, scheduler="policy:fcfs")

    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "out" / "jobs.csv")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)

    if "No module named 'evalys'" in result.stderr:
        pytest.skip("evalys is not installed")
    assert result.returncode == 0, result.stderr
    values = json.loads(result.stdout.splitlines()[-1])
    assert values["ids"] == list(run.jobs["job_id"])
    assert values["starts"] == [0, 1, 10, 11]
    assert values["sizes"] == [2, 2, 2, 2]
    assert values["machines"] == 4
    assert values["mean_wait"] == run.jobs["waiting_time"].mean()
    assert values["busy_at_5"] == 4
