"""Measure how well `batkube experiment` uses the cores with many small runs; see README.md."""

from __future__ import annotations

import argparse
import contextlib
import csv
import os
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

import yaml

from measuring import Cost, measure
from recording import measured_commit, record

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "experiments.md"
WORKLOAD = HERE.parent / "examples" / "experiments" / "inputs" / "mixed.json"
POLICIES = ("fcfs", "easy", "conservative", "sjf")
COLUMNS = ("runs", "at once", "real s", "CPU s", "of it in runs", "% CPU", "% CPU asked for", "runs / s")
_SAMPLE_INTERVAL_S = 0.05


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    runs: int
    jobs: int
    cost: Cost
    #: CPU seconds of the runs themselves, without starting processes, planning, tables and the report.
    in_runs_s: float
    #: How long runnable threads waited for a core.
    waited_s: float

    def markdown(self) -> str:
        """Return the line as Markdown."""
        cost = self.cost
        cells = [str(self.runs), str(self.jobs), f"{cost.real_s:.1f}", f"{cost.cpu_s:.1f}", f"{self.in_runs_s:.1f}"]
        cells += [f"{100 * used_s / cost.real_s:.0f}" for used_s in (cost.cpu_s, cost.cpu_s + self.waited_s)]
        cells.append(f"{self.runs / cost.real_s:.1f}")
        return f"| {' | '.join(cells)} |"


def main() -> None:
    """Measure, print the table, and append it to the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="number of runs (default 200)")
    parser.add_argument("--no-record", action="store_true", help=f"do not append to {RESULTS.relative_to(HERE.parent)}")
    options = parser.parse_args()
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    print("\n".join(lines), flush=True)
    with tempfile.TemporaryDirectory(prefix="batkube-bench-") as name:
        for jobs in dict.fromkeys((1, os.cpu_count() or 1)):
            lines.append(_measured(Path(name), options.runs, jobs).markdown())
            print(lines[-1], flush=True)
    if not options.no_record:
        record(RESULTS, measured_commit(), lines)


def _measured(folder: Path, runs: int, jobs: int) -> Row:
    file, out = folder / "experiment.yaml", folder / f"out-{jobs}"
    content = {
        "base": {"workload": str(WORKLOAD), "platform": "32x1"},
        "axes": {"scheduler": [f"policy:{name}" for name in POLICIES]},
        "seeds": -(-runs // len(POLICIES)),
    }
    file.write_text(yaml.safe_dump(content))
    entry = [sys.executable, "-c", "from batkube.cli.main import main; main()", "experiment", str(file)]
    with Waits() as waits:
        cost = measure([*entry, "--out", str(out), "--jobs", str(jobs), "--limit", str(runs), "--quiet"], 3600)
    with (out / "timings.csv").open(newline="") as timings:
        in_runs_s = sum(float(row["cpu_s"]) for row in csv.DictReader(timings))
    return Row(runs, jobs, cost, in_runs_s, waits.total_s)


class Waits:
    """Samples how long the threads of all descendants were runnable without a core (Linux)."""

    def __init__(self) -> None:
        self._waited_ns: dict[str, int] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._sample)

    @property
    def total_s(self) -> float:
        """The total in seconds."""
        return sum(self._waited_ns.values()) / 1e9

    def __enter__(self) -> Waits:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stopped.wait(_SAMPLE_INTERVAL_S):
            processes = _children(os.getpid())
            while processes:
                pid = processes.pop()
                processes += _children(pid)
                for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
                    with contextlib.suppress(OSError):
                        # Nanoseconds on a core and waiting for one (Linux: Documentation/scheduler/sched-stats.rst).
                        self._waited_ns[str(path)] = int(path.read_text().split()[1])


def _children(pid: int) -> list[int]:
    pids = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            pids += [int(child) for child in path.read_text().split()]
    return pids


if __name__ == "__main__":
    main()
