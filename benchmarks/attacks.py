"""Check whether runs with kube-scheduler repeat to the byte while other processes attack their port; see README.md."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from other_load import other_load

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "repeatability.md"
STRANGERS = HERE.parent / "tests" / "hostile" / "strangers.py"
BATKUBE = str(Path(sys.executable).with_name("batkube"))
BURST, NODES = "200_delay170.json", "16x1"
#: The attacks, which take turns; see strangers.py.
ATTACKS = {
    "everything": [],
    "everything, as another user": ["as-nobody"],
    "half requests": ["half_requests"],
    "connections closed at once": ["floods", "short_words"],
    "requests with the secret": ["requests_with_the_secret"],
    "silence and garbage": ["silence", "garbage"],
}
#: The number of jobs of burst in a run.
ATTACKED_JOBS = 24


class Result(NamedTuple):
    """Results that must be equal in all runs of a case."""

    digest: str
    makespan: str
    mean_wait: str


def run_once(workload: Path, nodes: str, scheduler: str, folder: Path) -> Result:
    """Execute a run with the output folder `folder`/out."""
    out = folder / "out"
    command = [BATKUBE, "run", "--workload", str(workload), "--quiet", "--platform", nodes, "--scheduler", scheduler]
    done = subprocess.run([*command, "--out", str(out)], capture_output=True, text=True, check=True)
    results = dict(line.split("=") for line in done.stdout.splitlines())
    digest = json.loads((out / "manifest.json").read_text())["digest"]
    return Result(digest, results["makespan"], results["mean_waiting_time"])


@contextlib.contextmanager
def strangers(folder: Path, kinds: Sequence[str]) -> Iterator[None]:
    """Attack the port of the run in `folder` from another process."""
    attacker = subprocess.Popen([sys.executable, str(STRANGERS), str(folder), *kinds])
    try:
        yield
    finally:
        attacker.kill()
        attacker.wait()


def rejected_connections(folder: Path) -> int:
    """Return the number of rejected connections in a run's fidelity notes."""
    notes = json.loads((folder / "out" / "fidelity.json").read_text())
    return sum(note["count"] for note in notes if note["subject"] == "connections")


def attacked_rows(scheduler: str, runs: int, shared: Path, folder: Path, odd: Path) -> Iterator[str]:
    """Run the first jobs of burst several times, every other time under attack; yield the rows of the table.

    The first run, and runs with other results, are kept in `odd`.
    """
    content = json.loads((shared / "batkube" / "workloads" / BURST).read_text())
    workload = folder / "workload.json"
    workload.write_text(json.dumps({**content, "jobs": content["jobs"][:ATTACKED_JOBS]}))
    digests_by_attack: dict[str, Counter[Result]] = {}
    rejected: Counter[str] = Counter()
    first: Result | None = None
    for number in range(runs):
        label = list(ATTACKS)[number // 2 % len(ATTACKS)] if number % 2 else "nothing"
        with tempfile.TemporaryDirectory(dir=folder) as name:
            attack = strangers(Path(name), ATTACKS[label]) if number % 2 else contextlib.nullcontext()
            with attack:
                result = run_once(workload, NODES, scheduler, Path(name))
            count = rejected_connections(Path(name))
            if result != first:
                shutil.copytree(Path(name) / "out", odd / f"{number}-{label}")
                first = first or result
        digests_by_attack.setdefault(label, Counter())[result] += 1
        rejected[label] += count
        print(number, label, result.digest, count, flush=True)
        assert bool(count) == bool(number % 2), "attacks are rejected, and nothing else is"
    for label, results in digests_by_attack.items():
        yield f"| {label} | {results.total()} | {format_digests(results)} | {rejected[label]:,} |"


def format_digests(results: Counter[Result]) -> str:
    """Format the digests with the number of runs of each."""
    return "; ".join(f"{result.digest} ({count})" for result, count in results.items())


def main() -> None:
    """Run the cases and append the table to the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="number of runs, every other one attacked")
    parser.add_argument("--load", type=int, default=os.cpu_count() or 1, help="number of other busy processes")
    parser.add_argument("--scheduler", default="kube-scheduler@1.34.4", help="a name of the catalogue, or a path")
    parser.add_argument("--odd", type=Path, default=Path("odd-runs"), help="folder for runs that differ from the first")
    options = parser.parse_args()
    shared_data = os.environ.get("BATKUBE_SHARED_DATA")
    shared = Path(shared_data) if shared_data else HERE.parent.parent / "shared" / "data"
    lines = [
        f"The first {ATTACKED_JOBS} jobs of burst; every other run was attacked at its API server's port.",
        "",
    ]
    lines += ["| attack | runs | digests | connections rejected |", "|---|---|---|---|"]
    with other_load(options.load), tempfile.TemporaryDirectory() as name:
        lines += attacked_rows(options.scheduler, options.runs, shared, Path(name), options.odd)
    load = f"{os.cpu_count() or 1} cores, load average {os.getloadavg()[2]:.1f}"
    lines = ["", f"## {Path(options.scheduler).name}, {platform.machine()}, {load}", "", *lines]
    print("\n".join(lines))
    with RESULTS.open("a", encoding="utf-8") as results:
        results.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
