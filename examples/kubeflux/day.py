"""Simulate a day of mixed load, half of it for KubeFlux and half for kube-scheduler, with each value of `sync`.

python examples/kubeflux/day.py [HOURS]
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import batkube

NODES, CORES = 8, 8
MEAN_S, LOAD = 2400.0, 0.8
COLUMNS = ("sync", "rejected", "phantom core h", "unseen core h", "mean wait s", "longest wait s", "utilisation %")


def workload(hours: float) -> dict[str, object]:
    """Return a workload of jobs of one pod, with a load of 80 %."""
    rng = random.Random(1)
    jobs, profiles, now_s = [], {}, 0.0
    gap_s = MEAN_S * 2.5 / (LOAD * NODES * CORES)
    while (now_s := now_s + rng.expovariate(1 / gap_s)) < hours * 3600:
        number = len(jobs)
        profiles[f"p{number}"] = {"type": "delay", "delay": round(rng.expovariate(1 / MEAN_S)) + 1}
        cpu = rng.choice([1, 2, 3, 4])
        jobs.append({"id": str(number), "subtime": round(now_s, 3), "res": 1, "profile": f"p{number}", "cpu": cpu})
    return {"nb_res": NODES, "jobs": jobs, "profiles": profiles}


def core_hours(lines: list[dict[str, Any]], kind: str, end: int) -> float:
    """Return the core hours of a kind of difference between KubeFlux's graph and the cluster."""
    ends = {(line["pod"], line["since"]): line["at"] for line in lines if line["kind"] == kind and "since" in line}
    begins = [line for line in lines if line["kind"] == kind and line["is"] == "new"]
    total = sum(
        line["amounts"].get("cpu", 0) * max(ends.get((line["pod"], line["at"]), end) - line["at"], 0) for line in begins
    )
    return total / 1000 / 3600e9


def measured(sync: str, jobs: Path, out: Path) -> str:
    """Simulate the workload with a value of `sync`; return the row of the table."""
    run = batkube.run(
        workload=jobs,
        platform=f"{NODES}x{CORES},64Gi",
        scheduler=["kubeflux", "others=kube-scheduler@1.34.4"],
        shares={"others": "50%"},
        scheduler_args={"sync": sync},
        audit="10m",
        out=out,
    )
    lines = [json.loads(line) for line in (out / "audit.jsonl").read_text().splitlines()][1:]
    end = round(float(run.jobs["finish_time"].max()) * 1e9)
    waits = run.jobs["waiting_time"]
    cpu = {job["id"]: job["cpu"] for job in json.loads(jobs.read_text())["jobs"]}
    used = sum(cpu[str(row.job_id)] * row.execution_time for row in run.jobs.itertuples() if row.execution_time > 0)
    rejected = int((run.pods["last_reason"].astype(str) == "OutOfcpu").sum())
    wrong = [core_hours(lines, kind, end) for kind in ("phantom", "blind spot")]
    cells = [sync, str(rejected), *(f"{amount:.1f}" for amount in wrong)]
    cells += [f"{waits.mean():.1f}", f"{waits.max():.0f}", f"{100 * used / (NODES * CORES * end / 1e9):.1f}"]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    hours = float(sys.argv[1]) if len(sys.argv) > 1 else 24.0
    print(f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|", sep="\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        jobs = Path(folder) / "jobs.json"
        jobs.write_text(json.dumps(workload(hours)), encoding="utf-8")
        for sync in ("none", "own", "rebuild", "deltas"):
            print(measured(sync, jobs, Path(folder) / sync), flush=True)


if __name__ == "__main__":
    main()
