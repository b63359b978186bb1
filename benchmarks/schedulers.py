"""Measure `batkube run` with the real kube-scheduler in virtual time; see README.md."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from batkube.workloads.reader import read_workload

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "schedulers.md"
BATKUBE = str(Path(sys.executable).with_name("batkube"))
SCHEDULER = "kube-scheduler@1.34.4"
#: With kube-scheduler's default of 50 requests a second, 10,000 bindings would take 200 virtual seconds.
FAST_CLIENT = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "clientConnection": {"qps": 100_000, "burst": 100_000},
}
COLUMNS = (
    "case",
    "jobs",
    "nodes",
    "virtual s",
    "real s",
    "virtual / real",
    "2020",
    "scheduler CPU s",
    "our CPU s",
    "our share",
    "scheduler MiB",
    "our MiB",
    "attempts",
    "makespan s",
    "mean wait s",
)


@dataclass(frozen=True, slots=True)
class Case:
    """A workload on a platform."""

    name: str
    #: Writes the workload to the first folder; the second one has the shared data. Returns its path.
    workload: Callable[[Path, Path], Path]
    platform: str
    #: Virtual seconds per real second of the 2020 prototype, as published.
    prototype: str = ""
    fast_client: bool = False


def _published(name: str) -> Callable[[Path, Path], Path]:
    return lambda _, shared: shared / "batkube" / "workloads" / name


def _delays(count: int, every_s: float, length_s: float) -> Callable[[Path, Path], Path]:
    """Return a function that writes a workload of `count` equal jobs of one cpu, one every `every_s` seconds."""

    def make(folder: Path, _: Path) -> Path:
        jobs = [
            {"id": str(number), "subtime": number * every_s, "res": 1, "profile": "one", "cpu": "1"}
            for number in range(count)
        ]
        profiles = {"one": {"type": "delay", "delay": length_s}}
        return _written(folder, jobs, profiles)

    return make


def _trace_by_cpu(name: str, limit: int | None = None) -> Callable[[Path, Path], Path]:
    """Return a function that writes a trace in which each job is one pod with a cpu for each processor."""

    def make(folder: Path, shared: Path) -> Path:
        workload = read_workload(shared / "swf" / name, name="w0")
        jobs, profiles = [], {}
        for job in list(workload.jobs)[:limit]:
            length_s = getattr(job.profile, "duration", 0) / 1e9
            profiles[str(length_s)] = {"type": "delay", "delay": length_s}
            submit_s = job.submit / 1e9
            jobs.append({"id": job.name, "subtime": submit_s, "res": 1, "profile": str(length_s), "cpu": str(job.size)})
        return _written(folder, jobs, profiles)

    return make


def _written(folder: Path, jobs: list[dict[str, Any]], profiles: dict[str, Any]) -> Path:
    path = folder / "workload.json"
    path.write_text(json.dumps({"nb_res": 1, "jobs": jobs, "profiles": profiles}))
    return path


CASES = (
    Case("burst", _published("200_delay170.json"), "16x1", "58"),
    Case("spaced", _published("spaced_200_delay170.json"), "16x1", "23"),
    Case("KIT", _published("KIT_10h_80.json"), "1x6", "328"),
    Case("week", _delays(100, 6048, 600), "16x1"),
    Case("large", _delays(10_000, 0, 60), "1000x10", fast_client=True),
    Case("KTH-SP2-5000", _trace_by_cpu("KTH-SP2-1996-2.swf", 5000), "1x100"),
    Case("KTH-SP2", _trace_by_cpu("KTH-SP2-1996-2.swf"), "1x100"),
)


def run_case(case: Case, scheduler: str, shared: Path, limit_s: float) -> str:
    """Run a case and return its row of the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        workload = case.workload(folder, shared)
        command = [BATKUBE, "run", "--workload", str(workload), "--quiet"]
        command += ["--platform", case.platform, "--scheduler", scheduler, "--resources", "requests"]
        if case.fast_client:
            configuration = folder / "configuration.yaml"
            configuration.write_text(json.dumps(FAST_CLIENT))
            command += ["--scheduler-config", str(configuration)]
        out = folder / "out"
        try:
            done = subprocess.run(
                [*command, "--out", str(out)], capture_output=True, text=True, check=False, timeout=limit_s
            )
        except subprocess.TimeoutExpired:
            return _row([case.name, f"not done after {limit_s:.0f} s"])
        if done.returncode:
            return _row([case.name, _reason(done.stderr)])
        return _result_row(case, out, dict(line.split("=") for line in done.stdout.splitlines()))


def _reason(text: str) -> str:
    """Return the first line of an error, without the program path with which it starts."""
    first = (text.strip().splitlines() or ["failed"])[0]
    return first.rpartition("/")[2].partition(";")[0]


def _result_row(case: Case, out: Path, results: dict[str, str]) -> str:
    manifest = json.loads((out / "manifest.json").read_text())
    (scheduler,) = manifest["real"]["programs"]
    real, makespan = manifest["real"], float(results["makespan"])
    with (out / "journal.jsonl").open() as journal:
        attempts = sum('"event":"attempt"' in line or '"event":"bind"' in line for line in journal)
    share = real["cpu_s"] / (real["cpu_s"] + scheduler["cpu_s"])
    return _row(
        [
            case.name,
            f"{manifest['jobs']:,}",
            f"{len(manifest['platform']['machines']):,}",
            f"{makespan:,.0f}",
            f"{real['run_s']:.1f}",
            f"{makespan / real['run_s']:,.0f}",
            case.prototype,
            f"{scheduler['cpu_s']:.1f}",
            f"{real['cpu_s']:.1f}",
            f"{100 * share:.0f} %",
            f"{scheduler['peak_memory_bytes'] / 2**20:.0f}",
            f"{real['peak_memory_bytes'] / 2**20:.0f}",
            f"{attempts:,}",
            results["makespan"],
            results["mean_waiting_time"],
        ]
    )


def _row(cells: list[str]) -> str:
    return f"| {' | '.join([*cells, *[''] * (len(COLUMNS) - len(cells))])} |"


def _built() -> str:
    """Build the scheduler before the measurements, and return its path."""
    command = [BATKUBE, "schedulers", "build", SCHEDULER]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def main() -> None:
    """Run the selected cases; print the table and append it to the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(case.name for case in CASES)}; default: all")
    parser.add_argument("--limit", type=float, default=1800, help="time limit of a case in seconds")
    parser.add_argument("--scheduler", help=f"the path of a program instead of {SCHEDULER}")
    options = parser.parse_args()
    scheduler = options.scheduler or _built()
    shared_data = os.environ.get("BATKUBE_SHARED_DATA")
    shared = Path(shared_data) if shared_data else HERE.parent.parent / "shared" / "data"
    load = os.getloadavg()[0]
    heading = [
        "",
        f"## {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, load {load:.1f}",
        "",
        f"`python benchmarks/schedulers.py {' '.join(options.cases)}`".replace(" `", "`"),
        "",
        _row(list(COLUMNS)),
        f"|{'---|' * len(COLUMNS)}",
    ]
    print("\n".join(heading), flush=True)
    lines = []
    for case in CASES:
        if not options.cases or case.name in options.cases:
            lines.append(run_case(case, scheduler, shared, options.limit))
            print(lines[-1], flush=True)
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write("\n".join([*heading, *lines, ""]))


if __name__ == "__main__":
    main()
