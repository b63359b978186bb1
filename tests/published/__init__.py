"""Published inputs and results, as figures: the references for the comparisons in the README.

Everything here is generated, or is a table of numbers in our own format, so tests need no other files.
Where the published files are available, tests compare the figures with them.

- `burst`, `spaced`, `kit`: the experiments of 2020, on 16 machines and on a node of 6 cores.
- `kit.csv`: the 39 jobs of the KIT trace in them, with their times in seconds and their share of the 6 cores.
- `backfilling.csv`: small instances for a machine of 100 processors, with the instant at which each job has to end.
- `medium_late.csv`: 801 jobs on 32 machines, with when and where Batsim and batsched's EASY backfilling started each.
- `gangs.csv`: 30 jobs of 1 to 12 pods that were submitted to gang schedulers on a control plane 1.34.4 with KWOK's
  nodes.
- `k3s_latencies.yaml`: the result of `batkube calibrate` for the ten published runs of burst on k3s.
- `kwok_latencies.yaml`: the time to start and end pods of 17 s on a control plane 1.34.4 with KWOK's nodes.
"""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent

SIXTEEN = "16x1,4Gi"
"""The platform of burst and spaced."""
SIX_CORES = "1x6"
"""The platform of the KIT trace."""

K3S_LATENCIES = HERE / "k3s_latencies.yaml"
KWOK_LATENCIES = HERE / "kwok_latencies.yaml"


class Figures(NamedTuple):
    """The results of a run."""

    makespan_s: float
    mean_wait_s: float


K3S = {"burst": Figures(2467.183, 1076.730), "spaced": Figures(2468.282, 145.987)}
"""Means over ten runs of each on a real k3s cluster."""

CONTROL_PLANE = {"burst": Figures(2216.264, 983.007), "spaced": Figures(2280.892, 58.076)}
"""One run of each on a real control plane 1.34.4 with KWOK's nodes, in real time."""

EIGHT_OF_TWO = "8x2,8Gi"
"""The platform of the gangs."""


class Ranges(NamedTuple):
    """The results of two or three equal runs, from the smallest to the largest."""

    makespan_s: tuple[float, float]
    mean_wait_s: tuple[float, float]


GANGS = {
    ("mixed", "volcano"): Ranges((172.130, 181.932), (27.905, 29.774)),
    ("mixed", "kube-batch"): Ranges((192.697, 194.743), (46.137, 47.381)),
    ("mixed", "coscheduling"): Ranges((203.956, 212.324), (52.735, 56.354)),
    ("mixed", "kueue"): Ranges((176.128, 177.594), (30.313, 30.427)),
    ("four", "volcano"): Ranges((43.546, 46.281), (17.042, 19.416)),
    ("four", "kube-batch"): Ranges((42.111, 43.304), (16.632, 17.568)),
    ("four", "coscheduling"): Ranges((52.366, 53.589), (24.646, 25.840)),
    ("four", "kueue"): Ranges((44.171, 44.260), (17.262, 17.358)),
}
"""Gang schedulers in real time on a control plane 1.34.4 with KWOK's nodes; waits end when the last pod runs."""


def mixed_gangs(folder: Path) -> Path:
    """Write the workload of 30 gangs that arrive one by one; return its path."""
    rows = table("gangs.csv")
    jobs = [
        {"id": row["gang"], "subtime": float(row["submit"]), "res": int(row["size"]), "profile": row["run"]}
        for row in rows
    ]
    return _written(folder / "mixed.json", jobs, {row["run"]: {**_delay(float(row["run"])), "cpu": 1} for row in rows})


def four_gangs(folder: Path) -> Path:
    """Write the workload of four gangs of ten that arrive at once, where there is room for one and a half."""
    jobs = [{"id": f"g0{number}", "subtime": 0, "res": 10, "profile": "ten"} for number in range(4)]
    return _written(folder / "four.json", jobs, {"ten": {**_delay(10), "cpu": 1}})


def four_interleaved_gangs(folder: Path) -> Path:
    """Write the pods of the four gangs as recorded: one every 16 ms, gangs in turn; for coscheduling."""
    groups = [
        {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "PodGroup",
            "metadata": {"name": f"g0{gang}"},
            "spec": {"minMember": 10},
        }
        for gang in range(4)
    ]
    container = {"name": "main", "image": "work", "resources": {"requests": {"cpu": "1"}}}
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"g0{number % 4}-{number // 4}",
                "labels": {"scheduling.x-k8s.io/pod-group": f"g0{number % 4}"},
                "annotations": {"batkube.io/submit": f"{30 + 16 * number}ms", "batkube.io/duration": "10s"},
            },
            "spec": {"restartPolicy": "Never", "containers": [container]},
        }
        for number in range(40)
    ]
    path = folder / "four.yaml"
    path.write_text("\n---\n".join(map(json.dumps, [*groups, *pods])))
    return path


GANG_WORKLOADS = {"mixed": mixed_gangs, "four": four_gangs}


def burst(folder: Path) -> Path:
    """Write the workload of 200 jobs of 170 s that all arrive at once; return its path."""
    return _of_equal_jobs(folder / "burst.json", interval_s=0)


def spaced(folder: Path) -> Path:
    """Write the workload of 200 jobs of 170 s, one every 10 s; return its path."""
    return _of_equal_jobs(folder / "spaced.json", interval_s=10)


def kit(folder: Path) -> Path:
    """Write the workload of the 39 jobs of the KIT trace; return its path."""
    rows = table("kit.csv")
    jobs = [{"id": row["job"], "subtime": int(row["submit"]), "res": 1, "profile": row["job"]} for row in rows]
    delays = {
        row["job"]: {"type": "delay", "delay": int(row["run"]), "cpu": float(row["cpu"]), "scheduler": "default"}
        for row in rows
    }
    return _written(folder / "kit.json", jobs, delays)


WORKLOADS = {"burst": burst, "spaced": spaced, "kit": kit}


def medium_late(folder: Path) -> Path:
    """Write the workload of the 801 jobs; return its path."""
    rows = table("medium_late.csv")
    jobs = [
        {
            "id": row["job"],
            "subtime": float(row["submit"]),
            "walltime": float(row["walltime"]),
            "res": int(row["size"]),
            "profile": row["run"],
        }
        for row in rows
    ]
    return _written(folder / "medium_late.json", jobs, {row["run"]: _delay(float(row["run"])) for row in rows})


def backfilling(family: str) -> dict[str, list[dict[str, str]]]:
    """Return the instances of a family, each a list of its jobs."""
    rows = [row for row in table("backfilling.csv") if row["instance"].startswith(f"{family}.")]
    return {name: list(jobs) for name, jobs in itertools.groupby(rows, key=lambda row: row["instance"])}


def table(name: str) -> list[dict[str, str]]:
    """Return the rows of a table of this folder."""
    with (HERE / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _of_equal_jobs(path: Path, interval_s: int) -> Path:
    jobs = [
        {"id": str(number + 1), "subtime": number * interval_s, "walltime": 1000, "res": 1, "profile": "delay"}
        for number in range(200)
    ]
    return _written(path, jobs, {"delay": {**_delay(170), "cpu": "1", "scheduler": "default"}})


def _delay(seconds: float) -> dict[str, Any]:
    return {"type": "delay", "delay": seconds}


def _written(path: Path, jobs: Iterable[Mapping[str, Any]], profiles: Mapping[str, Any]) -> Path:
    path.write_text(json.dumps({"nb_res": 1, "jobs": list(jobs), "profiles": profiles}))
    return path
