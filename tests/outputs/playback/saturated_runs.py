"""Short runs in which the machines are busy nearly all the time."""

from __future__ import annotations

import json
from pathlib import Path

import batkube

#: Failures, drains and nodes that join and leave.
EVENTS = [
    {"at": 200, "fail": "node-3", "for": "5m"},
    {"at": 400, "drain": ["node-1", "node-2"], "for": "4m"},
    {"at": 600, "add": "2x4,8Gi", "names": "spot", "for": "6m"},
]


def a_run(folder: Path, policy: str = "easy", **options: object) -> Path:
    """Run jobs of one to three pods, which keep 8 machines busy for half an hour."""
    jobs = [
        {"id": str(number), "subtime": 20 * number, "res": 1 + number % 3, "profile": f"d{number % 5}",
         "cpu": 1 + number % 2 / 2, "memory": 2**30 * (1 + number % 4), "priority": number % 7}
        for number in range(60)
    ]  # fmt: skip
    profiles = {f"d{number}": {"type": "delay", "delay": 30 + 40 * number} for number in range(5)}
    workload = folder.with_suffix(".json")
    workload.write_text(json.dumps({"nb_res": 8, "jobs": jobs, "profiles": profiles}))
    settings = {"workload": workload, "platform": "8x4,16Gi", "resources": "machines", **options}
    batkube.run(scheduler=f"policy:{policy}", out=folder, **settings)  # type: ignore[arg-type]
    return folder
