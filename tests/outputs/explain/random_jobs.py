"""Random jobs that overload a small cluster."""

from __future__ import annotations

import json
import random
from collections.abc import Collection
from pathlib import Path
from typing import Any

MACHINES = 16
PLATFORM = f"{MACHINES}x1"


def random_jobs(count: int, seed: int, *, jitter: bool = True) -> list[dict[str, Any]]:
    """Return jobs whose walltimes are one to five times their run times; with `jitter`, hardly any times are equal."""
    rng = random.Random(seed)
    jobs, submit = [], 0.0
    for number in range(1, count + 1):
        submit += rng.choice([0, 1, 5, 20, 60, 200]) + (rng.random() if jitter else 0)
        run = rng.choice([30, 100, 400, 1000]) + (round(rng.random(), 3) if jitter else 0)
        jobs.append(
            {
                "id": str(number),
                "subtime": round(submit, 3),
                "res": rng.choice([1, 1, 2, 4, 4, 8, 12]),
                "profile": f"p{run}",
                "run": run,
                "walltime": round(run * rng.choice([1, 1, 2, 5]) + 1, 3),
                "priority": rng.choice([0, 0, 10]),
            }
        )
    return jobs


def write_workload(path: Path, jobs: list[dict[str, Any]], without: Collection[str] = ()) -> Path:
    """Write a Batsim workload of these jobs, except those with the ids `without`."""
    kept = [job for job in jobs if job["id"] not in without]
    profiles = {job["profile"]: {"type": "delay", "delay": job["run"]} for job in kept}
    content = {"nb_res": MACHINES, "jobs": kept, "profiles": profiles}
    path.write_text(json.dumps(content))
    return path
