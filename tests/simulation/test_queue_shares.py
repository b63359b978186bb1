"""Queues share a cluster by weights and quotas, as documented by Volcano, kube-batch and Kueue.

Running pods per queue at an instant are counted from pods.csv; every pod has one cpu.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from tests import opt_in

import batkube
from batkube.schedulers.named_programs import program_start

SIXTEEN = "8x2,8Gi"
VOLCANO = ("volcano@1.10.0", "volcano-controller-manager@1.10.0")
KUEUE = ("kueue@0.10.0", "kube-scheduler@1.34.4")
#: Volcano's default actions, and `reclaim`, for queues that have more than their share.
RECLAIMING = {
    "actions": "enqueue, allocate, reclaim, backfill",
    "tiers": [
        {"plugins": [{"name": "priority"}, {"name": "gang"}, {"name": "conformance"}]},
        {"plugins": [{"name": name} for name in ("drf", "predicates", "proportion", "nodeorder")]},
    ],
}
#: The configuration in which jobs preempt others of their queue by priority. By default Volcano protects every gang
#: that has no more pods than its minimum (pkg/scheduler/plugins/gang, preemptableFn), so nothing would be preempted;
#: its installer disables that.
PREEMPTING = {
    "actions": "enqueue, allocate, preempt, backfill",
    "tiers": [
        {"plugins": [{"name": "priority"}, {"name": "gang", "enablePreemptable": False}, {"name": "conformance"}]},
        {
            "plugins": [
                {"name": "drf", "enablePreemptable": False},
                *({"name": name} for name in ("predicates", "proportion", "nodeorder")),
            ]
        },
    ],
}


def run(
    folder: Path,
    scheduler: str,
    jobs: list[dict[str, Any]],
    objects: list[dict[str, Any]],
    *,
    asks: dict[str, Any] | None = None,
    **more: object,
) -> pd.DataFrame:
    """Run jobs of one pod and 10 minutes with the given queues, for 7 minutes; return pods.csv."""
    (folder / "queues.yaml").write_text(yaml.safe_dump_all(objects))
    profiles = {"work": {"type": "delay", "delay": 600, **(asks or {"cpu": 1})}}
    (folder / "jobs.json").write_text(json.dumps({"nb_res": 1, "jobs": jobs, "profiles": profiles}))
    return batkube.run(
        workload=[folder / "queues.yaml", folder / "jobs.json"],
        platform=SIXTEEN,
        scheduler=scheduler,
        until="7m",
        out=folder / "out",
        **more,
    ).pods


def jobs_of(queue: str, count: int, at: int, **more: object) -> list[dict[str, Any]]:
    """Return `count` jobs of a queue; their names begin with its name."""
    return [
        {"id": f"{queue}{number}", "subtime": at, "res": 1, "profile": "work", "queue": queue, **more}
        for number in range(count)
    ]


def running_at(pods: pd.DataFrame, second: float) -> dict[str, int]:
    """Return how many pods of each queue run at an instant, by the prefix of their jobs' names."""
    alive = pods[(pods["started"] <= second) & ~(pods["finished"] <= second)]
    return alive.groupby(alive["job_id"].str.rstrip("0123456789")).size().to_dict()


def queue(name: str, weight: int, version: str = "scheduling.volcano.sh/v1beta1") -> dict[str, Any]:
    return {"apiVersion": version, "kind": "Queue", "metadata": {"name": name}, "spec": {"weight": weight}}


def written(folder: Path, configuration: dict[str, Any]) -> Path:
    path = folder / "configuration.yaml"
    path.write_text(yaml.safe_dump(configuration))
    return path


@pytest.mark.parametrize("programs", [VOLCANO, ("kube-batch@0.5.0",)])
def test_a_full_cluster_is_shared_by_the_weights_of_queues(programs: tuple[str, ...], tmp_path: Path) -> None:
    """Memory is in proportion: kube-batch's plugin proportion compares shares of all resources."""
    opt_in.require_built(*programs)
    version = program_start(programs[0]).pod_group
    jobs = [*jobs_of("light", 16, at=10), *jobs_of("heavy", 16, at=10)]
    queues = [queue("light", 1, version), queue("heavy", 3, version)]

    pods = run(tmp_path, programs[0], jobs, queues, asks={"cpu": 1, "memory": "4Gi"})

    assert running_at(pods, 60) == {"light": 4, "heavy": 12}


def test_volcano_reclaims_resources_beyond_the_share_of_a_queue(tmp_path: Path) -> None:
    opt_in.require_built(*VOLCANO)
    jobs = [*jobs_of("light", 16, at=10), *jobs_of("heavy", 16, at=100)]

    pods = run(
        tmp_path,
        VOLCANO[0],
        jobs,
        [queue("light", 1), queue("heavy", 3)],
        scheduler_config=written(tmp_path, RECLAIMING),
    )

    assert running_at(pods, 90) == {"light": 16}, "nobody else needs it"
    assert running_at(pods, 300) == {"light": 4, "heavy": 12}


def test_volcano_preempts_jobs_of_lower_priority_in_the_same_queue(tmp_path: Path) -> None:
    opt_in.require_built(*VOLCANO)
    jobs = [*jobs_of("low", 16, at=10), *jobs_of("high", 8, at=100, priority=1000)]

    pods = run(
        tmp_path,
        VOLCANO[0],
        [{**job, "queue": "shared"} for job in jobs],
        [queue("shared", 1)],
        scheduler_config=written(tmp_path, PREEMPTING),
    )

    assert running_at(pods, 90) == {"low": 16}
    assert running_at(pods, 200) == {"low": 8, "high": 8}


def cluster_queue(name: str, cpus: int, limit: int | None = None) -> dict[str, Any]:
    """Return a ClusterQueue that may borrow from its cohort and reclaims its own quota."""
    resource = {"name": "cpu", "nominalQuota": str(cpus), **({} if limit is None else {"borrowingLimit": str(limit)})}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "ClusterQueue",
        "metadata": {"name": name},
        "spec": {
            "cohort": "everybody",
            "namespaceSelector": {},
            "preemption": {"reclaimWithinCohort": "Any"},
            "resourceGroups": [
                {"coveredResources": ["cpu"], "flavors": [{"name": "default", "resources": [resource]}]}
            ],
        },
    }


def test_kueue_queues_borrow_unused_quota_of_their_cohort_until_it_is_reclaimed(tmp_path: Path) -> None:
    opt_in.require_built(*KUEUE)
    jobs = [*jobs_of("eager", 16, at=10), *jobs_of("late", 16, at=100)]

    pods = run(tmp_path, KUEUE[0], jobs, [cluster_queue("eager", 8), cluster_queue("late", 8)])

    assert running_at(pods, 90) == {"eager": 16}
    assert running_at(pods, 300) == {"eager": 8, "late": 8}


def test_kueue_queues_borrow_no_more_than_their_limit(tmp_path: Path) -> None:
    opt_in.require_built(*KUEUE)

    pods = run(
        tmp_path, KUEUE[0], jobs_of("eager", 16, at=10), [cluster_queue("eager", 8, limit=2), cluster_queue("late", 8)]
    )

    assert running_at(pods, 300) == {"eager": 10}
