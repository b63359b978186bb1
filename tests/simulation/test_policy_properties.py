"""Properties of every policy on every workload, checked from the output files alone."""

from __future__ import annotations

import csv
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import batkube
from batkube.policies.registry.catalogue import policy_names

POLICIES = [name for name, _ in policy_names()]
CAPACITY_CPU = Decimal(4)
MACHINES = 5

jobs = st.lists(
    st.fixed_dictionaries(
        {
            "subtime": st.integers(0, 60),
            "res": st.integers(1, MACHINES),
            "delay": st.integers(0, 40),
            "walltime": st.none() | st.integers(1, 60),
            "priority": st.integers(0, 3),
            "cpu": st.sampled_from(["0.5", "1", "1.5", "3", "4"]),
        }
    ),
    min_size=1,
    max_size=25,
)

#: Once, a planning policy put both on one machine, because neither takes any time.
TWO_OF_NO_LENGTH = [{"subtime": 0, "res": 1, "delay": 0, "walltime": None, "priority": 0, "cpu": "4"} for _ in range(2)]


def read(path: Path) -> Iterator[dict[str, str]]:
    with path.open(newline="") as file:
        yield from csv.DictReader(file)


def run(folder: Path, plan: list[dict[str, object]], policy: str, resources: str) -> Path:
    entries, profiles = [], {}
    for number, job in enumerate(plan):
        name = str(number)
        entry = {"id": name, "subtime": job["subtime"], "res": job["res"], "profile": name, "priority": job["priority"]}
        entries.append(entry | ({} if job["walltime"] is None else {"walltime": job["walltime"]}))
        profiles[name] = {"type": "delay", "delay": job["delay"], "cpu": job["cpu"]}
    workload = folder / "w.json"
    workload.write_text(json.dumps({"nb_res": MACHINES, "jobs": entries, "profiles": profiles}))
    platform = f"{MACHINES}x{CAPACITY_CPU}"
    batkube.run(
        workload=workload, platform=platform, scheduler=f"policy:{policy}", resources=resources, out=folder / "out"
    )
    return folder / "out"


def peak_use(out: Path, plan: list[dict[str, object]], whole_machines: bool) -> dict[str, Decimal]:
    """Return the peak usage of each node, from the times in pods.csv; ends come before starts."""
    steps: dict[str, list[tuple[Decimal, int, Decimal]]] = defaultdict(list)
    for pod in read(out / "pods.csv"):
        share = Decimal(1) if whole_machines else Decimal(str(plan[int(pod["job_id"])]["cpu"]))
        begin, end = Decimal(pod["scheduled"]), Decimal(pod["finished"])
        if begin < end:
            steps[pod["node"]] += [(begin, 1, share), (end, 0, -share)]
    peaks = {}
    for node, changes in steps.items():
        held = peak = Decimal(0)
        for _, _, share in sorted(changes):
            held += share
            peak = max(peak, held)
        peaks[node] = peak
    return peaks


@pytest.mark.parametrize("resources", ["machines", "requests"])
@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=15, deadline=None)
@given(plan=jobs)
@example(plan=TWO_OF_NO_LENGTH)
def test_no_policy_over_allocates_starves_a_job_or_starts_it_early(
    policy: str, resources: str, plan: list[dict[str, object]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        out = run(Path(folder), plan, policy, resources)
        rows = {row["job_id"]: row for row in read(out / "jobs.csv")}
        peaks = peak_use(out, plan, resources == "machines")
        notes = json.loads((out / "fidelity.json").read_text())

    limit = Decimal(1) if resources == "machines" else CAPACITY_CPU
    assert all(peak <= limit for peak in peaks.values())
    assert not [note for note in notes if note["severity"] == "violation"]
    assert len(rows) == len(plan), "every job that fits an empty cluster has an outcome"
    for number, job in enumerate(plan):
        row = rows[str(number)]
        walltime = job["walltime"]
        length = job["delay"] if walltime is None else min(job["delay"], walltime)  # type: ignore[type-var]
        assert float(row["starting_time"]) >= float(row["submission_time"]) == job["subtime"]
        assert float(row["execution_time"]) == length
        assert row["final_state"] in ("COMPLETED_SUCCESSFULLY", "COMPLETED_WALLTIME_REACHED")


@settings(max_examples=30, deadline=None)
@given(plan=jobs)
def test_fcfs_starts_jobs_in_the_order_of_their_submission(plan: list[dict[str, object]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rows = list(read(run(Path(folder), plan, "fcfs", "machines") / "jobs.csv"))

    rows.sort(key=lambda row: (float(row["submission_time"]), row["job_id"]))
    starts = [float(row["starting_time"]) for row in rows]
    assert starts == sorted(starts)


@settings(max_examples=30, deadline=None)
@given(plan=jobs)
def test_backfilling_never_delays_the_first_waiting_job(plan: list[dict[str, object]]) -> None:
    """EASY's guarantee: with exact estimates, the head of the queue starts no later than under fcfs."""
    for job in plan:
        job["walltime"] = None
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        fcfs = {row["job_id"]: row for row in read(run(Path(one), plan, "fcfs", "machines") / "jobs.csv")}
        easy = {row["job_id"]: row for row in read(run(Path(two), plan, "easy", "machines") / "jobs.csv")}

    order = sorted(fcfs, key=lambda name: (float(fcfs[name]["submission_time"]), name))
    waiting = [name for name in order if float(fcfs[name]["waiting_time"]) > 0]
    if waiting:
        first = waiting[0]
        assert float(easy[first]["starting_time"]) <= float(fcfs[first]["starting_time"])
