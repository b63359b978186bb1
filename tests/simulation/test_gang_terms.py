"""PodGroups with a minimum number of members or minimum resources, under real schedulers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests import opt_in
from tests.simulation.test_gang_schedulers import SCHEDULERS, most_at_once

import batkube

GROUPED = ["volcano@1.10.0", "kube-batch@0.5.0", "scheduler-plugins@0.30.6"]


def run(folder: Path, scheduler: str, *jobs: dict[str, Any]) -> batkube.Run:
    """Run jobs whose pods have one cpu on four nodes with two cpus each."""
    opt_in.require_built(*SCHEDULERS[scheduler])
    lengths = {job["profile"] for job in jobs}
    profiles = {length: {"type": "delay", "delay": int(length), "cpu": 1} for length in sorted(lengths)}
    workload = folder / "workload.json"
    workload.write_text(json.dumps({"nb_res": 8, "jobs": list(jobs), "profiles": profiles}))
    return batkube.run(workload=workload, platform="4x2,8Gi", scheduler=scheduler, out=folder / "out", force=True)


def job(name: str, submit: int, size: int, length: int, **more: object) -> dict[str, Any]:
    return {"id": name, "subtime": submit, "res": size, "profile": str(length), **more}


def bound(pods: pd.DataFrame, name: str) -> list[float]:
    """Return when the pods of a job were bound, in order."""
    return sorted(pods[pods["job_id"] == name]["scheduled"])


@pytest.mark.parametrize("scheduler", GROUPED)
def test_the_minimum_members_start_together_and_the_others_when_there_is_capacity(
    scheduler: str, tmp_path: Path
) -> None:
    first, second = job("first", 0, 4, 30), job("second", 5, 8, 10)

    whole = bound(run(tmp_path, scheduler, first, second).pods, "second")
    elastic = run(tmp_path, scheduler, first, {**second, "min_member": 4})

    assert min(whole) >= 30
    early, late = bound(elastic.pods, "second")[:4], bound(elastic.pods, "second")[4:]
    assert max(early) < 10
    assert min(late) >= 30
    started = elastic.jobs.set_index("job_id")["starting_time"]
    assert started["second"] == pytest.approx(max(late)), "the work begins with the last pod"
    assert most_at_once(elastic.pods) == 2


def test_volcano_enqueues_a_gang_when_its_minimum_resources_are_available(tmp_path: Path) -> None:
    """A gang without minimum resources is enqueued at once (pkg/scheduler/actions/enqueue)."""
    jobs = [job("first", 0, 8, 40), job("second", 5, 4, 10, min_resources=True), job("third", 5, 4, 10)]

    told = run(tmp_path, "volcano@1.10.0", *jobs).jobs.set_index("job_id")

    assert told["admitted_time"]["second"] > 40
    assert told["admitted_time"]["third"] < 10
    assert set(told["final_state"]) == {"COMPLETED_SUCCESSFULLY"}


@pytest.mark.parametrize("scheduler", GROUPED)
def test_gangs_with_minimum_resources_complete(scheduler: str, tmp_path: Path) -> None:
    jobs = [job(f"g{number}", number, 1 + number % 6, 8, min_resources=True) for number in range(12)]

    told = run(tmp_path, scheduler, *jobs)

    assert set(told.jobs["final_state"]) == {"COMPLETED_SUCCESSFULLY"}
    assert most_at_once(told.pods) == 2
    notes = [note for note in told.notes if "min_resources" in note["message"]]
    assert [note["count"] for note in notes] == ([12] if scheduler.startswith("kube-batch") else [])
