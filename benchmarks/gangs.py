"""Measure `batkube run` with gang schedulers in virtual time; see README.md.

python benchmarks/gangs.py quiet [--seconds 1000000]     long runs with few jobs: the cost of the programs' own timers
python benchmarks/gangs.py many [--gangs 10000]          Volcano, gangs of 1 to 64 pods, one a second, on 1,000 nodes
python benchmarks/gangs.py plane [--gangs 1000]          the same on a real control plane, in real time
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from batkube.emulation.control_plane.commands import NO_LIMITS
from batkube.emulation.control_plane.plane import control_plane
from batkube.emulation.control_plane.scheduler_install import install_scheduler
from batkube.emulation.emulate import emulate
from batkube.emulation.settings import Emulation, JobKind

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "gangs.md"
BATKUBE = str(Path(sys.executable).with_name("batkube"))
SCHEDULERS = ("kube-scheduler@1.34.4", "volcano@1.10.0", "kube-batch@0.5.0", "scheduler-plugins@0.30.6", "kueue@0.10.0")
COLUMNS = (
    "scheduler",
    "gangs",
    "pods",
    "nodes",
    "virtual s",
    "real s",
    "virtual / real",
    "programs' CPU s",
    "our CPU s",
    "programs' MiB",
    "our MiB",
    "mean wait s",
)
#: The number of gangs in a quiet run.
FEW = 20


def quiet_workload(path: Path, seconds: int) -> str:
    """Write a workload of a few gangs of four pods, spread over a long time; return the platform."""
    step = seconds / FEW
    jobs = [{"id": str(number), "subtime": number * step, "res": 4, "profile": "work"} for number in range(FEW)]
    write(path, jobs, {"work": {"type": "delay", "delay": step / 10, "cpu": 1}})
    return "8x2,8Gi"


def many_workload(path: Path, count: int) -> str:
    """Write a workload of gangs of 1 to 64 pods, one a second; return the platform."""
    rng = random.Random(count)
    jobs = [
        {"id": str(number), "subtime": number, "res": rng.randint(1, 64), "profile": "work"} for number in range(count)
    ]
    write(path, jobs, {"work": {"type": "delay", "delay": 60, "cpu": 1}})
    return "1000x16,64Gi"


def write(path: Path, jobs: list[dict[str, object]], profiles: dict[str, dict[str, object]]) -> None:
    """Write a workload."""
    path.write_text(json.dumps({"nb_res": 64, "jobs": jobs, "profiles": profiles}))


def row(scheduler: str, workload: Path, nodes: str, folder: Path, limit_s: float) -> str:
    """Run a workload and return its row of the table."""
    out = folder / "out"
    command = [BATKUBE, "run", "--workload", str(workload), "--platform", nodes, "--scheduler", scheduler, "--quiet"]
    command += ["--force", "--out", str(out), "--time-limit", f"{limit_s:.0f}s", "--watchdog", "10m"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or not (out / "manifest.json").is_file():
        return line([scheduler, done.stderr.strip().splitlines()[-1]])
    programs = json.loads((out / "manifest.json").read_text())["real"]["programs"]
    cpu_s, peak_bytes = (sum(one[key] for one in programs) for key in ("cpu_s", "peak_memory_bytes"))
    return result_row(scheduler, workload, nodes, out, cpu_s, peak_bytes)


def row_of_plane(scheduler: str, workload: Path, nodes: str, folder: Path) -> str:
    """Run a workload on a real control plane and return its row of the table."""
    plane_folder, out = folder / "plane", folder / "out"
    with control_plane(plane_folder, nodes, has_scheduler=False, limits=NO_LIMITS, lease_s=600, report=report) as plane:
        served = install_scheduler(plane, scheduler, nodes, folder / "programs")
        before = plane.cpu_seconds()
        emulate(Emulation(plane.kubeconfig, (workload,), kind=JobKind.POD_GROUP, scheduler_name=served), out)
        used = {name: cpu_s - before[name] for name, cpu_s in plane.cpu_seconds().items()}
        peak_bytes = sum(plane.peak_memory_bytes().values())
    report(", ".join(f"{name} {cpu_s:.1f} CPU s" for name, cpu_s in used.items()))
    return result_row(f"{scheduler} on a real plane", workload, nodes, out, sum(used.values()), peak_bytes)


def result_row(name: str, workload: Path, nodes: str, out: Path, cpu_s: float, peak_bytes: int) -> str:
    """Return the row of the run in `out`; CPU time and memory are the totals of all its programs."""
    manifest = json.loads((out / "manifest.json").read_text())
    real, count = manifest["real"], manifest["jobs"]
    jobs = json.loads(workload.read_text())["jobs"]
    numbers = dict(zip(*[text.split(",") for text in (out / "schedule.csv").read_text().splitlines()], strict=True))
    finished = int(numbers["nb_jobs_finished"])
    # Emulations have no end in their manifest.
    end_s = manifest.get("end_s", float(numbers["makespan"]))
    return line(
        [
            name,
            f"{count:,}" if finished == count else f"{finished:,} of {count:,}",
            f"{sum(job['res'] for job in jobs):,}",
            nodes.partition("x")[0],
            f"{end_s:,.0f}",
            f"{real['run_s']:.1f}",
            f"{end_s / real['run_s']:,.0f}",
            f"{cpu_s:.1f}",
            f"{real['cpu_s']:.1f}",
            f"{peak_bytes / 2**20:.0f}",
            f"{real['peak_memory_bytes'] / 2**20:.0f}",
            numbers["mean_waiting_time"],
        ]
    )


def report(text: str) -> None:
    """Print a message about progress."""
    print(text, file=sys.stderr, flush=True)


def line(cells: Sequence[str]) -> str:
    """Return a row of the table, with empty cells at its end."""
    return f"| {' | '.join([*cells, *[''] * (len(COLUMNS) - len(cells))])} |"


def rows(options: argparse.Namespace, folder: Path) -> Iterator[str]:
    """Run the case; yield the rows of the table."""
    workload = folder / "workload.json"
    if options.case == "quiet":
        nodes = quiet_workload(workload, options.seconds)
        chosen = options.scheduler or SCHEDULERS
    else:
        nodes = many_workload(workload, options.gangs)
        chosen = options.scheduler or ["volcano@1.10.0"]
    for scheduler in chosen:
        if options.case == "plane":
            yield row_of_plane(scheduler, workload, nodes, folder)
        else:
            yield row(scheduler, workload, nodes, folder, options.limit)


def main() -> None:
    """Run a case; print the table and append it to the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=["quiet", "many", "plane"])
    parser.add_argument("--seconds", type=int, default=1_000_000)
    parser.add_argument("--gangs", type=int, default=10_000)
    parser.add_argument("--scheduler", action="append", help="a name of the catalogue; may be repeated")
    parser.add_argument("--limit", type=float, default=600, help="seconds after which a run is stopped")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    heading = [
        "",
        f"## {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, load {load:.1f}",
    ]
    heading += ["", f"`python benchmarks/gangs.py {' '.join(sys.argv[1:])}`", "", line(COLUMNS)]
    heading += [f"|{'---|' * len(COLUMNS)}"]
    print("\n".join(heading), flush=True)
    lines = []
    with tempfile.TemporaryDirectory() as name:
        for text in rows(options, Path(name)):
            lines.append(text)
            print(text, flush=True)
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write("\n".join([*heading, *lines, ""]))


if __name__ == "__main__":
    main()
