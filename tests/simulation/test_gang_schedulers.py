"""Real gang schedulers of the catalogue, started with their companions.

Gangs are as on a cluster: a PodGroup, and pods that name it. Runs are checked from their output files alone.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from tests import opt_in

import batkube
from batkube.kernel.errors import RunFailed
from batkube.schedulers.named_programs import program_start

#: Each with the programs that are built for it.
SCHEDULERS = {
    "volcano@1.10.0": ("volcano@1.10.0", "volcano-controller-manager@1.10.0"),
    "kube-batch@0.5.0": ("kube-batch@0.5.0",),
    "scheduler-plugins@0.30.6": ("scheduler-plugins@0.30.6",),
    "kueue@0.10.0": ("kueue@0.10.0", "kube-scheduler@1.34.4"),
    "volcano@1.14.1": ("volcano@1.14.1", "volcano-controller-manager@1.14.1"),
    "kueue@0.19.0": ("kueue@0.19.0", "kube-scheduler@1.34.4"),
}
FILES = ("jobs.csv", "pods.csv", "schedule.csv", "machine_states.csv", "journal.jsonl", "fidelity.json")


@pytest.fixture(params=list(SCHEDULERS))
def scheduler(request: pytest.FixtureRequest) -> str:
    """Each scheduler in turn, if it is built."""
    name: str = request.param
    opt_in.require_built(*SCHEDULERS[name])
    return name


def gang(scheduler: str, name: str, size: int, *, seconds: int, submit: int = 0) -> list[dict[str, Any]]:
    """Return a gang of pods of one cpu each: a PodGroup and its pods, or for Kueue a suspended Job."""
    start = program_start(scheduler)
    if start.submit_as == "kueue-job":
        return [job(name, size, seconds=seconds, submit=submit)]
    at = {"batkube.io/submit": f"{submit}s"}
    named = {start.pod_group_key or start.pod_group_label: name}
    group: dict[str, Any] = {
        "apiVersion": start.pod_group,
        "kind": "PodGroup",
        "metadata": {"name": name, "annotations": at},
        "spec": {"minMember": size},
    }
    container = {"name": "main", "image": "work", "resources": {"requests": {"cpu": "1"}}}
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{name}-{rank}",
                "labels": named,
                "annotations": {**at, **named, "batkube.io/duration": f"{seconds}s"},
            },
            "spec": {
                "schedulerName": start.scheduler_name,
                "restartPolicy": "Never",
                "containers": [container],
            },
        }
        for rank in range(size)
    ]
    return [group, *pods]


def job(name: str, size: int, *, seconds: int, submit: int) -> dict[str, Any]:
    """Return a Job of that many parallel pods, as Kueue's webhook leaves it."""
    container = {"name": "main", "image": "work", "resources": {"requests": {"cpu": "1"}}}
    template = {
        "metadata": {"annotations": {"batkube.io/duration": f"{seconds}s"}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "labels": {"kueue.x-k8s.io/queue-name": "default"},
            "annotations": {"batkube.io/submit": f"{submit}s"},
        },
        "spec": {
            "suspend": True,
            "parallelism": size,
            "completions": size,
            "completionMode": "Indexed",
            "template": template,
        },
    }


def run(scheduler: str, gangs: list[list[dict[str, Any]]], platform: str, until: str, folder: Path) -> batkube.Run:
    """Run gangs. Gangs that could not start are included."""
    workload = folder / "gangs.yaml"
    workload.write_text(yaml.safe_dump_all([manifest for one in gangs for manifest in one]))
    return batkube.run(
        workload=workload, platform=platform, scheduler=scheduler, until=until, out=folder / "out", force=True
    )


def bound_members(pods: pd.DataFrame) -> dict[str, int]:
    """Return how many pods of each gang were bound at any time."""
    counts: dict[str, int] = defaultdict(int)
    for pod, is_bound in zip(pods["pod"], pods["scheduled"].notna(), strict=True):
        counts[pod.partition("-")[0]] += is_bound
    return dict(counts)


def test_no_gang_is_bound_in_part(scheduler: str, tmp_path: Path) -> None:
    gangs = [gang(scheduler, "six", 6, seconds=20), gang(scheduler, "twenty", 20, seconds=20, submit=5)]

    pods = run(scheduler, gangs, "4x2,8Gi", "30s", tmp_path).pods

    assert bound_members(pods) in ({"six": 6, "twenty": 0}, {"six": 6})  # Kueue prevents the creation of pods before
    six = pods[pods["pod"].str.startswith("six-")]
    assert set(six["phase"]) == {"Succeeded"}
    assert six["scheduled"].max() < 3


def test_a_queue_of_gangs_completes_without_over_allocation_and_two_runs_are_identical(
    scheduler: str, tmp_path: Path
) -> None:
    sizes = {"a": (6, 10, 0), "b": (5, 20, 1), "c": (8, 10, 2), "d": (3, 15, 2), "e": (7, 10, 8), "f": (2, 5, 9)}
    gangs = [
        gang(scheduler, name, size, seconds=seconds, submit=submit) for name, (size, seconds, submit) in sizes.items()
    ]

    pods, files = run(scheduler, gangs, "4x2,8Gi", "90s", tmp_path).pods, files_of(tmp_path)
    run(scheduler, gangs, "4x2,8Gi", "90s", tmp_path)

    assert set(pods["phase"]) == {"Succeeded"}
    assert bound_members(pods) == {name: size for name, (size, _, _) in sizes.items()}
    assert most_at_once(pods) <= 2
    assert files_of(tmp_path) == files


def files_of(folder: Path) -> dict[str, bytes]:
    """Return the output files that a second run must reproduce to the byte."""
    return {name: (folder / "out" / name).read_bytes() for name in FILES}


def most_at_once(pods: pd.DataFrame) -> int:
    """Return the highest number of pods that were on one node at the same time."""
    most = 0
    for _, here in pods.groupby("node"):
        steps = [(time, 1) for time in here["started"]] + [(time, -1) for time in here["finished"]]
        present = 0
        for _, step in sorted(steps):
            present += step
            most = max(most, present)
    return most


def test_the_end_of_a_companion_ends_the_run(tmp_path: Path) -> None:
    opt_in.require_built(*SCHEDULERS["volcano@1.10.0"])
    wrong = tmp_path / "config" / "batkube" / "schedulers.yaml"
    wrong.parent.mkdir(parents=True)
    ours = yaml.safe_load((Path(batkube.__file__).parent / "schedulers" / "catalogue.yaml").read_text())
    entry = {**ours["volcano"], "companions": ["volcano-controller-manager@{version} --no-such-flag"]}
    wrong.write_text(yaml.safe_dump({"volcano": entry}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
        with pytest.raises(RunFailed) as told:
            run("volcano@1.10.0", [gang("volcano", "one", 1, seconds=5)], "1x1", "30s", tmp_path)

    assert "volcano-controller-manager@1.10.0 ended with exit code" in str(told.value)
    assert "unknown flag: --no-such-flag" in str(told.value)


def test_a_queue_that_deadlocked_under_coscheduling_completes(tmp_path: Path) -> None:
    """40 pods of one cpu, in gangs of five, on 16 cpus."""
    opt_in.require_built("scheduler-plugins@0.30.6")
    gangs = [gang("scheduler-plugins", f"g{number}", 5, seconds=20) for number in range(8)]

    pods = run("scheduler-plugins@0.30.6", gangs, "8x2,8Gi", "10m", tmp_path).pods

    assert set(pods["phase"]) == {"Succeeded"}
    assert bound_members(pods) == {f"g{number}": 5 for number in range(8)}
    assert most_at_once(pods) <= 2
