"""Measure `batkube run` with in-process policies, on real traces and on workloads that grow; see README.md."""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import accasim_case
from measuring import CommandFailed, Cost, measure
from recording import measured_commit, record
from traces import delay_jobs, plain_swf

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "policies.md"
POLICIES = ("fcfs", "easy")
TRACES = (("KTH-SP2", "KTH-SP2-1996-2.swf", 100), ("HPC2N", "HPC2N-2002-2.1-cln.swf.gz", 240))
GROWTH_HOSTS = 128
GROWTH_JOBS = (10_000, 100_000, 200_000)
QUICK_JOBS = 3_000
QUICK_GROWTH_JOBS = (2_000, 8_000)

COLUMNS = ("workload", "jobs", "machines", "simulator", "policy", "real s", "CPU s", "peak MiB", "jobs / CPU s")
CHECKS = ("makespan s", "mean wait s")


@dataclass(frozen=True, slots=True)
class Case:
    """A workload on a platform; every simulator and policy gets the same file."""

    name: str
    workload: Path
    jobs: int
    machines: int


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table: the cost of a simulation, or the reason for its failure."""

    case: Case
    simulator: str
    policy: str
    cost: Cost | None
    outcome: tuple[int, float, float] | None
    problem: str = ""

    def markdown(self) -> str:
        """Return the line as Markdown."""
        cells = [self.case.name, f"{self.case.jobs:,}", str(self.case.machines), self.simulator, self.policy]
        if self.cost is None or self.outcome is None:
            cells += [self.problem, *[""] * (len(COLUMNS) + len(CHECKS) - len(cells) - 1)]
        else:
            jobs, makespan_s, wait_s = self.outcome
            cells += [f"{self.cost.real_s:.1f}", f"{self.cost.cpu_s:.1f}"]
            cells += [f"{self.cost.peak_memory_bytes / 2**20:.0f}", f"{jobs / self.cost.cpu_s:,.0f}"]
            cells += [f"{makespan_s:,.0f}", f"{wait_s:,.1f}"]
        return f"| {' | '.join(cells)} |"


def main() -> None:
    """Measure, print the table, and append it to the results."""
    options = _options()
    subject = measured_commit()  # at the start, since the working tree may change during the measurement
    with tempfile.TemporaryDirectory(prefix="batkube-bench-") as name:
        folder = Path(name)
        lines = [f"| {' | '.join((*COLUMNS, *CHECKS))} |", "|---" * (len(COLUMNS) + len(CHECKS)) + "|"]
        print("\n".join(lines), flush=True)
        traces = trace_cases(folder, QUICK_JOBS if options.quick else None)
        for case in [*traces, *_growth_cases(folder, options.quick)]:
            for policy in POLICIES:
                lines.append(_batkube(case, policy, folder, options.limit_s).markdown())
                print(lines[-1], flush=True)
        for row in [] if options.no_accasim else _accasim_rows(traces, folder, options.limit_s):
            lines.append(row.markdown())
            print(lines[-1], flush=True)
    if not options.no_record:
        record(RESULTS, subject, lines)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help=f"{QUICK_JOBS} jobs of each trace, small generated workloads"
    )
    parser.add_argument("--no-accasim", action="store_true", help="do not run AccaSim")
    parser.add_argument("--no-record", action="store_true", help=f"do not append to {RESULTS.relative_to(HERE.parent)}")
    parser.add_argument("--limit-s", type=float, default=3600.0, help="time limit of a run in seconds (default 3600)")
    return parser.parse_args()


def trace_cases(folder: Path, jobs_max: int | None) -> list[Case]:
    """Write the recorded traces, with at most `jobs_max` jobs each, to `folder`; return their cases."""
    data = Path(os.environ.get("BATKUBE_SHARED_DATA", HERE.parent.parent / "shared" / "data")) / "swf"
    if not data.is_dir():
        sys.exit("needs the shared test data: set BATKUBE_SHARED_DATA to its folder")
    cases = []
    for name, file_name, machines in TRACES:
        workload = folder / f"{name}.swf"
        jobs = plain_swf(data / file_name, workload, jobs_max)
        cases.append(Case(name, workload, jobs, machines))
    return cases


def _growth_cases(folder: Path, quick: bool) -> list[Case]:
    cases = []
    for count in QUICK_GROWTH_JOBS if quick else GROWTH_JOBS:
        workload = folder / f"delays-{count}.json"
        cases.append(Case("delays", workload, delay_jobs(workload, count, GROWTH_HOSTS), GROWTH_HOSTS))
    return cases


def run_command(case: Case, policy: str, out: Path) -> list[str]:
    """Return the command that runs a case with the output folder `out`."""
    entry = [sys.executable, "-c", "from batkube.cli.main import main; main()", "run"]
    what = ["--workload", str(case.workload), "--platform", f"{case.machines}x1", "--scheduler", f"policy:{policy}"]
    return [*entry, *what, "--out", str(out), "--force", "--quiet"]


def _batkube(case: Case, policy: str, folder: Path, limit_s: float) -> Row:
    out = folder / "batkube"
    try:
        cost = measure(run_command(case, policy, out), limit_s)
    except CommandFailed as error:
        return Row(case, "Batkube", policy, None, None, str(error))
    return Row(case, "Batkube", policy, cost, _batkube_outcome(out))


def _batkube_outcome(out: Path) -> tuple[int, float, float]:
    """Return the number of jobs, the time from first submission to last completion, and the mean wait."""
    with (out / "jobs.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["final_state"] != "REJECTED"]
    first = min(float(row["submission_time"]) for row in rows)
    last = max(float(row["finish_time"]) for row in rows)
    return len(rows), last - first, sum(float(row["waiting_time"]) for row in rows) / len(rows)


def _accasim_rows(cases: list[Case], folder: Path, limit_s: float) -> Iterator[Row]:
    simulator = f"AccaSim {accasim_case.VERSION}"
    try:
        python = accasim_case.prepare()
    except (accasim_case.NotAvailable, OSError, subprocess.CalledProcessError) as error:
        yield from (Row(case, simulator, "", None, None, f"not measured: {error}") for case in cases)
        return
    for case in cases:
        for policy in POLICIES:
            out = folder / f"accasim-{case.name}-{policy}"
            out.mkdir()
            try:
                cost = measure(accasim_case.command(python, case.workload, case.machines, policy, out), limit_s)
            except CommandFailed as error:
                yield Row(case, simulator, policy, None, None, f"not measured: {error}")
            else:
                yield Row(case, simulator, policy, cost, accasim_case.outcome(case.workload, out))


if __name__ == "__main__":
    main()
