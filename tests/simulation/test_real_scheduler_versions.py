"""Other versions of kube-scheduler, by their name in the catalogue."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

import batkube
from conftest import Simulate
from opt_in import slow

SECOND = 10**9
OLDEST = "1.19.0"
OLD_SCHEDULER = f"kube-scheduler@{OLDEST}"
ONE_MORE = slow("builds one more version of kube-scheduler")
MORE_VERSIONS = (
    *("1.20.15", "1.21.14", "1.22.17", "1.23.17", "1.24.17", "1.25.16", "1.26.15", "1.27.16", "1.28.15"),
    *("1.30.14", "1.31.4", "1.32.5", "1.33.13", "1.35.4", "1.36.3"),
)
VERSIONS = (
    *(OLDEST, "1.29.6", "1.37.1"),
    *(pytest.param(version, marks=ONE_MORE) for version in MORE_VERSIONS),
)
PROFILES = {str(length): {"type": "delay", "delay": length} for length in (7, 20)}
JOBS = [
    {"id": str(number), "subtime": number % 3, "res": 1, "profile": ("7", "20")[number % 2], "cpu": "1"}
    for number in range(12)
]


def _attempts(run: batkube.Run, pod: str) -> list[int]:
    """Return the instants of failed attempts to schedule a pod, in nanoseconds."""
    entries = map(json.loads, (run.path / "journal.jsonl").read_text().splitlines())
    return [entry["t"] for entry in entries if entry["event"] == "attempt" and entry["pod"] == pod]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_runs_by_its_name_and_is_repeatable(
    simulate: Simulate, built_program: Callable[[str], str], tmp_path: Path, version: str
) -> None:
    runs = [
        simulate(
            JOBS, PROFILES, platform="2x2", scheduler=built_program(f"kube-scheduler@{version}"), out=tmp_path / name
        )
        for name in "ab"
    ]
    assert runs[0].manifest["digest"] == runs[1].manifest["digest"]
    assert [program["version"] for program in runs[0].manifest["programs"]] == [f"v{version}"]
    assert set(runs[0].jobs["final_state"]) == {"COMPLETED_SUCCESSFULLY"}
    waited = runs[0].pods[runs[0].pods["attempts"] > 1]
    assert len(waited) > 0
    assert all("Insufficient cpu" in reason for reason in waited["last_reason"])
    assert not json.loads((runs[0].path / "fidelity.json").read_text())


def test_kubernetes_1_37_binds_its_own_gangs_whole(
    simulate: Simulate, built_program: Callable[[str], str], tmp_path: Path
) -> None:
    """Eight pods wait for all eight places, while smaller gangs that came later start in the places that are left."""
    sizes = {"six": 6, "all": 8, "two": 2, "four": 4}
    jobs: list[dict[str, object]] = [
        {"id": name, "subtime": number, "res": size, "profile": "20", "cpu": "1"}
        for number, (name, size) in enumerate(sizes.items())
    ]
    scheduler = built_program("kube-scheduler-gangs@1.37.1")
    runs = [simulate(jobs, PROFILES, platform="4x2", scheduler=scheduler, out=tmp_path / name) for name in "ab"]
    starts = runs[0].pods.groupby("job_id")["started"].agg(["min", "max", "count"])

    assert runs[0].manifest["digest"] == runs[1].manifest["digest"]
    assert (starts["min"] == starts["max"]).all()
    assert dict(starts["count"]) == sizes
    assert starts["min"]["six"] < starts["min"]["two"] < starts["min"]["four"] < starts["min"]["all"]
    assert not json.loads((runs[0].path / "fidelity.json").read_text())


@pytest.mark.parametrize(("version", "first_gap"), [(OLDEST, 0), ("1.29.6", 1)])
def test_older_versions_do_not_pop_pods_from_their_back_off(
    simulate: Simulate, built_program: Callable[[str], str], version: str, first_gap: int
) -> None:
    """Every end of a pod moves all unschedulable pods to the back-off queue: 1, 2, 4, 8, 10, 10 s.

    The queue is flushed at 0.1 s of every second, when each back-off is complete. The oldest version retries at once
    when it receives the condition that it wrote itself (see the next test).
    """
    jobs: list[dict[str, object]] = [
        {"id": "hold", "subtime": 0, "res": 1, "profile": "20", "cpu": "1"},
        {"id": "big", "subtime": 0.1, "res": 1, "profile": "7", "cpu": "2"},
    ]
    jobs += [
        {"id": f"s{number}", "subtime": 0.3 + number / 2, "res": 1, "profile": "brief", "cpu": "1"}
        for number in range(60)
    ]
    profiles = {**PROFILES, "20": {"type": "delay", "delay": 40}, "brief": {"type": "delay", "delay": 0.25}}
    run = simulate(jobs, profiles, platform="1x2", scheduler=built_program(f"kube-scheduler@{version}"))
    gaps = [(later - earlier) / SECOND for earlier, later in pairwise(_attempts(run, "w0-big"))]
    assert gaps == [first_gap, 2, 4, 8, 10, 10]


def test_kube_scheduler_1_19_retries_after_one_minute(simulate: Simulate, built_program: Callable[[str], str]) -> None:
    """Every 30 s it moves pods that have waited for more than one minute; later versions wait for five.

    It retries a pod at once when it receives its own condition: 1.19 treats a managedFields update as a pod update.
    """
    jobs = [{"id": name, "subtime": 0, "res": 1, "profile": "long", "cpu": "1"} for name in ("first", "second")]
    run = simulate(
        jobs, {"long": {"type": "delay", "delay": 260}}, platform="1x1", scheduler=built_program(OLD_SCHEDULER)
    )
    tries = _attempts(run, "w0-second") or _attempts(run, "w0-first")
    assert [at / SECOND for at in tries] == [0, 0, 60.1, 150.1, 240.1]


def test_two_versions_share_one_clock_and_one_cluster(simulate: Simulate, built_program: Callable[[str], str]) -> None:
    """Each has the API of its version; every node has capacity for the pods of both."""
    jobs = [{**job, "scheduler": "old"} if number % 2 else job for number, job in enumerate(JOBS)]
    schedulers = [built_program("kube-scheduler@1.34.4"), f"old={built_program(OLD_SCHEDULER)}"]
    run = simulate(jobs, PROFILES, platform="4x12", scheduler=schedulers)
    assert set(run.jobs["final_state"]) == {"COMPLETED_SUCCESSFULLY"}
    assert [program["version"] for program in run.manifest["programs"]] == ["v1.34.4", "v1.19.0"]
    for number, name in enumerate(("log.txt", "old/log.txt")):
        log = (run.path / "scheduler" / name).read_text()
        assert log.count('"Successfully bound pod to node"') == 6, number
