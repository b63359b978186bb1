"""The causes in explanations are true: checked from the journal alone, and by removing who is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.outputs.explain.journal_check import Occupancy, check
from tests.outputs.explain.random_jobs import MACHINES, PLATFORM, random_jobs, write_workload

import batkube
from batkube.outputs.explain.explanation import Explainer

POLICIES = ("fcfs", "easy", "conservative", "priority", "sjf", "first-fit")
COUNT = 200


def run(folder: Path, jobs: list[dict[str, Any]], policy: str, **options: Any) -> batkube.Run:  # noqa: ANN401
    workload = write_workload(folder / "w.json", jobs)
    return batkube.run(
        workload=workload, platform=PLATFORM, scheduler=f"policy:{policy}", out=folder / policy, **options
    )


def explanations(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the explanation of every job, as `--json` prints it."""
    explainer = Explainer(folder)
    return {job.key: msgspec.to_builtins(explainer.explain(job.key)) for job in explainer.playback.jobs}


@pytest.mark.parametrize(
    ("policy", "jitter"), [*((policy, False) for policy in POLICIES), ("easy", True), ("priority", True)]
)
def test_the_causes_of_200_random_jobs_are_true(policy: str, jitter: bool, tmp_path: Path) -> None:
    """With `jitter` no two jobs end at one instant; without, many do."""
    result = run(tmp_path, random_jobs(COUNT, seed=3, jitter=jitter), policy, explain=True)
    occupancy = Occupancy(result.path / "journal.jsonl")
    told = explanations(result.path)

    errors = [error for explanation in told.values() for error in check(occupancy, explanation, MACHINES)]
    assert errors == []
    assert len(told) == COUNT
    periods = [period for one in told.values() for execution in one["executions"] for period in execution["periods"]]
    assert len(periods) > COUNT / 2


@pytest.mark.parametrize("policy", POLICIES)
def test_the_journal_is_the_same_with_and_without_reasons(policy: str, tmp_path: Path) -> None:
    """Of a run with policies; for a real scheduler see simulation/test_real_scheduler_explained.py."""
    jobs = random_jobs(COUNT, seed=4)
    (tmp_path / "plain").mkdir()
    explained, plain = run(tmp_path, jobs, policy, explain=True), run(tmp_path / "plain", jobs, policy)

    assert (explained.path / "journal.jsonl").read_bytes() == (plain.path / "journal.jsonl").read_bytes()
    assert not (plain.path / "reasons.jsonl").exists()
    assert (explained.path / "reasons.jsonl").exists()


@pytest.mark.parametrize("policy", ["fcfs", "sjf", "priority"])
def test_the_first_of_the_queue_is_derived_as_the_policy_recorded_it(policy: str, tmp_path: Path) -> None:
    result = run(tmp_path, random_jobs(COUNT, seed=5), policy, explain=True)
    entries = [json.loads(line) for line in (result.path / "reasons.jsonl").read_text().splitlines()]
    # Of several at one instant, the last: the others were about intermediate states, between decisions.
    heads = list({entry["t"]: entry for entry in entries if entry.get("rule") == "order"}.values())
    told = explanations(result.path)

    assert len(heads) > 20
    for entry in heads:
        for execution in told[entry["job"]]["executions"]:
            for period in execution["periods"]:
                if period["begin"] <= entry["t"] // 1000 * 1000 < period["end"]:
                    assert period["cause"] == "resources", (entry, period)


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_recorded_reservations_name_jobs_that_hold_the_machines(policy: str, tmp_path: Path) -> None:
    result = run(tmp_path, random_jobs(COUNT, seed=6), policy, explain=True)
    occupancy = Occupancy(result.path / "journal.jsonl")
    entries = [json.loads(line) for line in (result.path / "reasons.jsonl").read_text().splitlines()]
    reservations = [entry for entry in entries if entry.get("rule") == "reservation"]
    backfilled = [entry for entry in entries if entry.get("rule") == "backfilling"]

    assert len(reservations) > 20
    for entry in reservations:
        for other in entry["after"]:
            held, waits = occupancy.machines_of(other, entry["t"]), occupancy.is_waiting(other, entry["t"])
            assert held or (waits and policy == "conservative"), (entry, other)
    for entry in backfilled:
        assert (entry["end"] <= entry["head_start"]) is entry["is_short"]
        assert occupancy.is_waiting(entry["head"], entry["t"])
    assert policy != "easy" or len(backfilled) > 20


def starts_without(folder: Path, policy: str, jobs: list[dict[str, Any]], name: str, blockers: list[str]) -> bool:
    """Return whether a job starts earlier if those who are named are not in the workload."""
    base, reduced = folder / policy, folder / f"without-{name}"
    reduced.mkdir()
    workload = write_workload(reduced / "w.json", jobs, {blocker.partition("!")[2] for blocker in blockers})
    result = batkube.run(
        workload=workload, platform=PLATFORM, scheduler=f"policy:{policy}", out=reduced / "out", outputs="journal"
    )
    starts = [
        max(end for _, end in Occupancy(path / "journal.jsonl").waits[f"w0!{name}"]) for path in (base, result.path)
    ]
    return starts[1] < starts[0]


@pytest.mark.parametrize(("policy", "least"), [("fcfs", 1.0), ("easy", 0.75), ("conservative", 0.9), ("priority", 0.9)])
def test_without_those_who_released_its_machines_last_a_job_starts_earlier(
    policy: str, least: float, tmp_path: Path
) -> None:
    """FCFS is monotone: with fewer jobs, none starts later. The others are not: another job may fill the gap."""
    jobs = random_jobs(80, seed=7)
    run(tmp_path, jobs, policy)
    waiting = {
        name: execution["released_by"]
        for name, explanation in explanations(tmp_path / policy).items()
        for execution in explanation["executions"][-1:]
        if execution["released_by"]
    }
    sample = dict(sorted(waiting.items())[::3])

    assert len(sample) >= 15
    outcomes = [
        starts_without(tmp_path, policy, jobs, name.partition("!")[2], blockers) for name, blockers in sample.items()
    ]
    assert sum(outcomes) / len(outcomes) >= least
