"""Compare simulated runs of gang schedulers with recorded and new runs on a real control plane.

    python scripts/reality.py gangs [--simulated-only]

Each scheduler has its own control plane, and is installed as by an administrator: its definitions, its queues, then the
program and its controllers. The programs are the builds of the simulated runs; without a clock page they run in real
time. kube-batch is simulated only, since it needs API versions that servers since 1.25 do not have. The recorded
figures are in tests/published.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import published
from batkube.emulation.control_plane.plane import control_plane
from batkube.emulation.control_plane.scheduler_install import install_scheduler
from batkube.emulation.emulate import emulate
from batkube.emulation.settings import Emulation, JobKind
from batkube.outputs.results import Results

BATKUBE = str(Path(sys.executable).with_name("batkube"))
#: Their names in the catalogue.
SCHEDULERS = {
    "volcano": "volcano@1.10.0",
    "kube-batch": "kube-batch@0.5.0",
    "coscheduling": "scheduler-plugins@0.30.6",
    "kueue": "kueue@0.10.0",
}
#: The schedulers that run on a current control plane, with the kind of object that they expect.
REAL_SCHEDULERS = {"volcano": JobKind.POD_GROUP, "coscheduling": JobKind.POD_GROUP, "kueue": JobKind.KUEUE_JOB}
#: The tolerated relative distance of a simulated run from the range of the recorded runs.
MAKESPAN_TOLERANCE, WAIT_TOLERANCE = 0.03, 0.06
#: Its pods were created one by one, alternating between gangs, faster than it tried them; see tests/reality.
INTERLEAVED = ("four", "coscheduling")
DECISION_COST = "model:30ms"


class Figures(NamedTuple):
    """The results of a run; a gang waits until its last pod runs."""

    makespan_s: float
    mean_wait_s: float


@dataclass(frozen=True, slots=True)
class GangRun:
    """The results of a workload with a scheduler: recorded, simulated, and of a new real run if there is one."""

    recorded: published.Ranges
    simulated: Figures
    real: Figures | None = None

    @property
    def is_in_range(self) -> bool:
        """Whether the simulated run agrees with the real ones, within the tolerances."""
        makespans, waits = self.recorded
        if self.real is not None:
            makespans, waits = (*makespans, self.real.makespan_s), (*waits, self.real.mean_wait_s)
        return (1 - MAKESPAN_TOLERANCE) * min(makespans) <= self.simulated.makespan_s <= (1 + MAKESPAN_TOLERANCE) * max(
            makespans
        ) and (1 - WAIT_TOLERANCE) * min(waits) <= self.simulated.mean_wait_s <= (1 + WAIT_TOLERANCE) * max(waits)


def compare_gangs(out: Path, *, is_recorded: bool) -> dict[tuple[str, str], GangRun]:
    """Run the workloads in real time, unless they are recorded, and simulate them; return the results."""
    if not is_recorded:
        for scheduler, kind in REAL_SCHEDULERS.items():
            run_in_real_time(scheduler, kind, out)
    runs = {}
    for (workload, scheduler), recorded in published.GANGS.items():
        folder = out / f"{workload}-{scheduler}"
        real = Results(folder / "real") if (folder / "real" / "jobs.csv").is_file() else None
        figures = None if real is None else figures_of_jobs(real)
        runs[workload, scheduler] = GangRun(recorded, simulated(workload, scheduler, folder), figures)
    return runs


def run_in_real_time(scheduler: str, kind: JobKind, out: Path) -> None:
    """Run each workload in real time, with a new scheduler on a new control plane."""
    for workload, write in published.GANG_WORKLOADS.items():
        print(f"running {workload} with {SCHEDULERS[scheduler]} in real time", flush=True)
        folder = out / f"{workload}-{scheduler}"
        # An earlier control plane would still have its nodes.
        shutil.rmtree(folder / "plane", ignore_errors=True)
        with control_plane(folder / "plane", published.EIGHT_OF_TWO, has_scheduler=False, report=print) as plane:
            name = install_scheduler(plane, SCHEDULERS[scheduler], published.EIGHT_OF_TWO, folder / "programs")
            settings = Emulation(plane.kubeconfig, (write(folder),), kind=kind, scheduler_name=name)
            emulate(settings, folder / "real", force=True)


def simulated(workload: str, scheduler: str, folder: Path) -> Figures:
    """Simulate a workload with a scheduler; return the results."""
    folder.mkdir(parents=True, exist_ok=True)
    is_interleaved = (workload, scheduler) == INTERLEAVED
    write = published.four_interleaved_gangs if is_interleaved else published.GANG_WORKLOADS[workload]
    command = [BATKUBE, "run", "--workload", str(write(folder)), "--quiet", "--force"]
    command += ["--platform", published.EIGHT_OF_TWO, "--scheduler", SCHEDULERS[scheduler]]
    command += ["--latencies", str(published.KWOK_LATENCIES), "--out", str(folder / "simulated")]
    if is_interleaved:
        command += ["--decision-cost", DECISION_COST]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    results = Results(folder / "simulated")
    if not is_interleaved:
        return figures_of_jobs(results)
    pods = results.pods
    return Figures(pods["finished"].max(), pods.groupby(pods["pod"].str.partition("-")[0])["started"].max().mean())


def figures_of_jobs(results: Results) -> Figures:
    """Return the results of a run with a row for each gang."""
    return Figures(results.jobs["finish_time"].max(), results.jobs["waiting_time"].mean())


def gang_table(runs: Mapping[tuple[str, str], GangRun]) -> Iterator[str]:
    """Yield the table of the gang schedulers."""
    yield "| gangs | scheduler | makespan recorded / real / simulated | mean wait recorded / real / simulated | |"
    yield "|---|---|---|---|---|"
    for (workload, scheduler), one in runs.items():
        (shortest, longest), (least, most) = one.recorded
        makespan, wait = ("–", "–") if one.real is None else (f"{figure:.1f}" for figure in one.real)
        yield (
            f"| {workload} | {SCHEDULERS[scheduler]} "
            f"| {shortest:.1f}–{longest:.1f} / {makespan} / {one.simulated.makespan_s:.1f} s "
            f"| {least:.1f}–{most:.1f} / {wait} / {one.simulated.mean_wait_s:.1f} s "
            f"| {'' if one.is_in_range else 'outside'} |"
        )
