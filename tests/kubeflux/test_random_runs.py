"""Random runs with other schedulers, failing nodes, deletions, lost watches and restarts: caches are always correct.

In each run, a KubeFlux for each sync mode shares the cluster with a policy. None knows the others, and all are
interrupted at random (`interrupted_scheduler.py`).
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from tests.opt_in import IS_ENABLED

import batkube

MODES = ("deltas", "rebuild", "own")
#: A hundred seeds with BATKUBE_SLOW_TESTS.
SEEDS = range(100 if IS_ENABLED else 1)
PROGRAM = Path(__file__).with_name("interrupted_scheduler.py")
JOBS = 24


def a_workload(rng: random.Random) -> dict[str, object]:
    profiles = {f"p{number}": {"type": "delay", "delay": rng.randint(5, 250)} for number in range(JOBS)}
    jobs = [
        {
            "id": str(number),
            "subtime": rng.randint(0, 500),
            "res": 1,
            "profile": f"p{number}",
            "cpu": rng.choice(["500m", 1, 2, "2500m"]),
            **({"walltime": rng.randint(5, 200)} if rng.random() < 0.3 else {}),
        }
        for number in range(JOBS)
    ]
    return {"nb_res": 4, "jobs": jobs, "profiles": profiles}


def some_events(rng: random.Random) -> list[dict[str, object]]:
    """Return failures, maintenance, additions, taints and new zones of nodes, and deletions of pods."""
    deletions = rng.sample(range(JOBS), 5)
    return [
        {"between": "exponential:300", "fail": "0-2", "for": "uniform:20,120"},
        {"at": f"{rng.randint(50, 300)}s", "drain": "node-3", "for": f"{rng.randint(30, 200)}s"},
        {"at": f"{rng.randint(50, 300)}s", "add": "1x4,16Gi", "names": "more", "for": f"{rng.randint(60, 400)}s"},
        {"at": "510s", "taint": "node-3", "with": "spot=true:NoSchedule", "for": f"{rng.randint(30, 200)}s"},
        {"at": "250s", "label": "node-3", "with": {"topology.kubernetes.io/zone": "b"}},
        *({"at": f"{rng.uniform(50, 600):.3f}s", "delete": f"Pod/w0-{number}"} for number in sorted(deletions)),
    ]


def interrupted_kubeflux(mode: str, seed: int) -> str:
    return f"python:{PROGRAM} {{kubeconfig}} {{scheduler-name}} {mode} {{folder}}/audit.jsonl {seed}"


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("on_failure", ["fail", "resubmit"])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_cache_is_correct_under_random_events_and_interruptions(seed: int, on_failure: str, tmp_path: Path) -> None:
    rng = random.Random(seed)
    workload, out = tmp_path / "jobs.json", tmp_path / "out"
    workload.write_text(json.dumps(a_workload(rng)), encoding="utf-8")

    run = batkube.run(
        workload=workload,
        platform="4x4,16Gi",
        scheduler=[
            "policy-program --policy=first-fit",
            *(f"{mode}={interrupted_kubeflux(mode, 3 * seed + number)}" for number, mode in enumerate(MODES)),
        ],
        shares=dict.fromkeys(MODES, "25%"),
        events=some_events(rng),
        on_failure=on_failure,
        seed=seed,
        audit="30s",
        out=out,
    )

    head, *lines = lines_of(out / "audit.jsonl")
    beliefs = [line for line in lines if line["kind"] != "left waiting"]
    scheduler_of = dict(zip(run.jobs["job_id"].astype(str), run.jobs["scheduler"], strict=True))
    assert head["count"] > 10
    assert head["unsettled"] == 0
    assert [line for line in beliefs if line["scheduler"] in ("deltas", "rebuild")] == []
    # The errors of `own` are about other schedulers' pods and the offers of nodes only.
    about_pods = [line for line in beliefs if line["scheduler"] == "own" and line["kind"] != "offer"]
    assert [line for line in about_pods if scheduler_of[_job_of(line["pod"])] == "own"] == []
    for mode in MODES:
        words = (out / "scheduler" / mode / "audit.interruptions").read_text(encoding="utf-8").split()
        assert {"cut", "expire", "restart"} <= set(words)


def _job_of(pod: str) -> str:
    """Return the job of a pod, which may be a retry."""
    return pod.removeprefix("default/w0-").partition("-")[0]
