"""Compare the nodes of pods of KubeFlux and kube-scheduler, on a real control plane and in simulation.

A pod of kube-scheduler fits on one node only, because kube-scheduler selects at random among equal nodes. KubeFlux
prefers the same node, so it binds pods elsewhere only if its cache contains the pods of kube-scheduler. No pod has to
wait, and events are at least two seconds apart, because the order of simultaneous events on a real control plane is not
defined.
"""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from batkube.emulation.control_plane.plane import SCHEDULER, control_plane
from batkube.emulation.emulate import emulate
from batkube.emulation.settings import Emulation
from batkube.outputs.results import Results

BATKUBE = str(Path(sys.executable).with_name("batkube"))
PLATFORM = "3x4,16Gi + 1x16,64Gi"
OTHERS, NAME = "default-scheduler", "kubeflux"
#: Nodes with the highest numbers first; the last node is the large one.
OPTIONS = ("--sync", "deltas", "--match-policy", "hinode")
JOBS, STEP_S = 24, 6


@dataclass(frozen=True, slots=True)
class KubeFluxRun:
    """The nodes of the pods of both schedulers, in reality and in simulation, by the name of the job."""

    real: dict[str, str]
    simulated: dict[str, str]
    #: The scheduler of each.
    schedulers: dict[str, str]

    @property
    def is_same(self) -> bool:
        """Whether every pod was bound, and to the same node."""
        return self.real == self.simulated and all(self.real.values()) and len(self.real) == JOBS


def workload(folder: Path) -> Path:
    """Write a workload with a job every few seconds, a quarter of them for kube-scheduler; return its path."""
    rng = random.Random(2)
    jobs, profiles = [], {}
    for number in range(JOBS):
        is_other = number % 4 == 1
        cpu = rng.choice([5, 6]) if is_other else rng.choice([1, 2, 3, 4])
        # Jobs start at multiples of a step and end two seconds after one.
        length_s = STEP_S * (3 if is_other else rng.randint(3, 12)) + 2
        profiles[f"delay{length_s}"] = {"type": "delay", "delay": length_s}
        job = {"id": str(number), "subtime": STEP_S * (number + 1), "res": 1, "profile": f"delay{length_s}"}
        jobs.append({**job, "cpu": cpu, "scheduler": OTHERS if is_other else NAME})
    path = folder / "workload.json"
    path.write_text(json.dumps({"nb_res": 1, "jobs": jobs, "profiles": profiles}), encoding="utf-8")
    return path


def compare_kubeflux(out: Path, *, is_recorded: bool = False) -> KubeFluxRun:
    """Run the jobs in real time, unless they are recorded, and in simulation; return the nodes of the pods."""
    out.mkdir(parents=True, exist_ok=True)
    jobs = workload(out)
    if not is_recorded:
        print("running kubeflux in real time", flush=True)
        with control_plane(out / "plane", PLATFORM, report=print) as plane, _kubeflux(plane.kubeconfig, out):
            emulate(Emulation(plane.kubeconfig, (jobs,), platform=PLATFORM), out / "real", force=True)
    command = [BATKUBE, "run", "--workload", str(jobs), "--platform", PLATFORM, "--quiet", "--force"]
    flux = f"{NAME}=kubeflux {' '.join(OPTIONS)}"
    command += ["--scheduler", SCHEDULER, "--scheduler", flux, "--out", str(out / "simulated")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    schedulers = {job["id"]: job["scheduler"] for job in json.loads(jobs.read_text(encoding="utf-8"))["jobs"]}
    return KubeFluxRun(_nodes(out / "real"), _nodes(out / "simulated"), schedulers)


@contextlib.contextmanager
def _kubeflux(kubeconfig: Path, out: Path) -> Iterator[None]:
    """Run KubeFlux on a cluster during the block."""
    command = [BATKUBE, "kubeflux", "--kubeconfig", str(kubeconfig), *OPTIONS, "--audit", str(out / "audit.jsonl")]
    with (out / "kubeflux.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def _nodes(folder: Path) -> dict[str, str]:
    """Return the node of each job's pod."""
    pods = Results(folder).pods
    return {str(job): str(node) for job, node in zip(pods["job_id"], pods["node"].fillna(""), strict=True)}


def kubeflux_table(run: KubeFluxRun) -> Iterator[str]:
    """Yield the table of equal nodes by scheduler, and the differences."""
    yield "| scheduler | pods | same node in reality and simulation |"
    yield "|---|--:|--:|"
    for scheduler in (NAME, OTHERS):
        jobs = [job for job, name in run.schedulers.items() if name == scheduler]
        same = sum(run.real.get(job, "") == run.simulated.get(job) != "" for job in jobs)
        yield f"| {scheduler} | {len(jobs)} | {same} |"
    for job in run.schedulers:
        if run.real.get(job) != run.simulated.get(job):
            yield f"| {job} | {run.real.get(job)} | {run.simulated.get(job)} |"
