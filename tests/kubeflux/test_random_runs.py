"""Random runs with another scheduler, failing nodes and pods that are deleted: the picture is true at every look."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from tests.opt_in import WANTED

import batkube

#: A hundred of them where slow tests are wanted.
SEEDS = range(100 if WANTED else 1)


def a_workload(seed: int) -> dict[str, object]:
    rng = random.Random(seed)
    profiles = {f"p{number}": {"type": "delay", "delay": rng.randint(5, 400)} for number in range(30)}
    jobs = [
        {
            "id": str(number),
            "subtime": rng.randint(0, 900),
            "res": 1,
            "profile": f"p{number}",
            "cpu": rng.choice(["500m", 1, 2, "2500m"]),
            **({"walltime": rng.randint(5, 300)} if rng.random() < 0.3 else {}),
        }
        for number in range(30)
    ]
    return {"nb_res": 4, "jobs": jobs, "profiles": profiles}


@pytest.mark.parametrize("sync", ["rebuild", "deltas"])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_picture_is_true_whatever_happens(seed: int, sync: str, tmp_path: Path) -> None:
    workload, out = tmp_path / "jobs.json", tmp_path / "out"
    workload.write_text(json.dumps(a_workload(seed)), encoding="utf-8")

    batkube.run(
        workload=workload,
        platform="4x4,16Gi",
        scheduler=["kubeflux", "others=policy-program --policy=first-fit"],
        scheduler_args={"sync": sync},
        shares={"others": "40%"},
        events=[
            {"between": "exponential:300", "fail": "0-2", "for": "uniform:20,120"},
            {"at": "5m", "drain": "node-3", "for": "2m"},
            {"at": "6m", "add": "1x4,16Gi", "names": "more"},
        ],
        on_failure="resubmit",
        seed=seed,
        audit="30s",
        out=out,
    )

    head, *lines = [json.loads(line) for line in (out / "audit.jsonl").read_text().splitlines()]
    assert head["count"] > 10
    assert [line for line in lines if line["kind"] != "left waiting"] == []
