"""What `batkube experiment` makes of the machine's cores with many small runs; see README.md."""

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
from recording import record, subject_of_now

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "experiments.md"
WORKLOAD = HERE.parent / "examples" / "experiments" / "inputs" / "mixed.json"
POLICIES = ("fcfs", "easy", "conservative", "sjf")
COLUMNS = ("runs", "at once", "real s", "CPU s", "of it in runs", "% CPU", "% CPU asked for", "runs / s")
_LOOK_S = 0.05


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    runs: int
    jobs: int
    cost: Cost
    #: CPU seconds that the runs themselves took, without starting processes, planning, tables and the report.
    in_runs_s: float
    #: How long threads waited for a core, because others had them all.
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
    parser.add_argument("--runs", type=int, default=200, help="how many runs (default 200)")
    parser.add_argument("--no-record", action="store_true", help=f"do not append to {RESULTS.relative_to(HERE.parent)}")
    options = parser.parse_args()
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    print("\n".join(lines), flush=True)
    with tempfile.TemporaryDirectory(prefix="batkube-bench-") as name:
        for jobs in dict.fromkeys((1, os.cpu_count() or 1)):
            lines.append(_measured(Path(name), options.runs, jobs).markdown())
            print(lines[-1], flush=True)
    if not options.no_record:
        record(RESULTS, subject_of_now(), lines)


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
    """Adds up how long our descendants' threads stood ready without a core, looking now and then (Linux)."""

    def __init__(self) -> None:
        self._waited_ns: dict[str, int] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    @property
    def total_s(self) -> float:
        """Seconds in all."""
        return sum(self._waited_ns.values()) / 1e9

    def __enter__(self) -> Waits:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(_LOOK_S):
            processes = _children(os.getpid())
            while processes:
                pid = processes.pop()
                processes += _children(pid)
                for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
                    with contextlib.suppress(OSError):
                        # Nanoseconds on a core, nanoseconds of waiting for one. Linux: scheduler/sched-stats.rst.
                        self._waited_ns[str(path)] = int(path.read_text().split()[1])


def _children(pid: int) -> list[int]:
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(child) for child in path.read_text().split()]
    return found


if __name__ == "__main__":
    main()
