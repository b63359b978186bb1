"""Whether runs with the real kube-scheduler repeat to the byte while every core has other work, and while others knock
at its port; see README.md."""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
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

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "repeatability.md"
STRANGERS = HERE.parent / "tests" / "hostile" / "strangers.py"
BATKUBE = str(Path(sys.executable).with_name("batkube"))
CASES = {
    "burst": ("200_delay170.json", "16x1"),
    "spaced": ("spaced_200_delay170.json", "16x1"),
    "KIT": ("KIT_10h_80.json", "1x6"),
}
#: What strangers do, in one attacked run after the other; see strangers.py.
ATTACKS = {
    "everything": [],
    "everything, as another user": ["as-nobody"],
    "half requests": ["half_requests"],
    "connections closed at once": ["floods", "short_words"],
    "requests with the secret": ["requests_with_the_secret"],
    "silence and garbage": ["silence", "garbage"],
}
#: How many jobs of burst an attacked run has.
ATTACKED_JOBS = 24


#: Schedulers of gangs, each with the 30 gangs that were recorded with it in real time.
GANG_SCHEDULERS = ("volcano@1.10.0", "kube-batch@0.5.0", "scheduler-plugins@0.30.6", "kueue@0.10.0")
GANG_NODES = "8x2,8Gi"


class Result(NamedTuple):
    """What must be the same in all runs of a case."""

    digest: str
    makespan: str
    mean_wait: str


def _spin() -> None:
    while True:
        pass


@contextlib.contextmanager
def other_load(processes: int) -> Iterator[None]:
    """Keep so many processes busy meanwhile."""
    spinning = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(processes)]
    for process in spinning:
        process.start()
    try:
        yield
    finally:
        for process in spinning:
            process.kill()


def run_once(workload: Path, nodes: str, scheduler: str, folder: Path) -> Result:
    """Run into `folder`/out."""
    out = folder / "out"
    command = [BATKUBE, "run", "--workload", str(workload), "--quiet", "--platform", nodes, "--scheduler", scheduler]
    done = subprocess.run([*command, "--out", str(out)], capture_output=True, text=True, check=True)
    results = dict(line.split("=") for line in done.stdout.splitlines())
    digest = json.loads((out / "manifest.json").read_text())["digest"]
    return Result(digest, results["makespan"], results["mean_waiting_time"])


def results_of(case: str, scheduler: str, runs: int, shared: Path) -> Counter[Result]:
    """Run a case so many times; return how often each result came out."""
    workload, nodes = CASES[case]
    found: Counter[Result] = Counter()
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as name:
            found[run_once(shared / "batkube" / "workloads" / workload, nodes, scheduler, Path(name))] += 1
    return found


def gang_rows(schedulers: Sequence[str], runs: int, folder: Path) -> Iterator[str]:
    """Run the 30 gangs so many times with each scheduler; yield rows to print."""
    sys.path.insert(0, str(HERE.parent / "tests"))
    import published

    workload = published.mixed_gangs(folder)
    for scheduler in schedulers:
        found: Counter[Result] = Counter()
        for _ in range(runs):
            with tempfile.TemporaryDirectory(dir=folder) as name:
                found[run_once(workload, GANG_NODES, scheduler, Path(name))] += 1
        (_, makespan, wait), _ = found.most_common(1)[0]
        yield f"| {scheduler} | {runs} | {told(found)} | {makespan} | {wait} |"


@contextlib.contextmanager
def strangers(folder: Path, kinds: Sequence[str]) -> Iterator[None]:
    """Let another process knock at the port of the run that is written into `folder` meanwhile."""
    knocking = subprocess.Popen([sys.executable, str(STRANGERS), str(folder), *kinds])
    try:
        yield
    finally:
        knocking.kill()
        knocking.wait()


def turned_away(folder: Path) -> int:
    """Return how many connections of strangers a run has noted."""
    notes = json.loads((folder / "out" / "fidelity.json").read_text())
    return sum(note["count"] for note in notes if note["subject"] == "connections")


def attacked_rows(scheduler: str, runs: int, shared: Path, folder: Path, odd: Path) -> Iterator[str]:
    """Run the beginning of burst so many times, every other time with strangers at the port; yield rows to print.

    The first run, and those that come to something else, are kept in `odd`.
    """
    content = json.loads((shared / "batkube" / "workloads" / CASES["burst"][0]).read_text())
    workload = folder / "workload.json"
    workload.write_text(json.dumps({**content, "jobs": content["jobs"][:ATTACKED_JOBS]}))
    found: dict[str, Counter[Result]] = {}
    noted: Counter[str] = Counter()
    first: Result | None = None
    for number in range(runs):
        label = list(ATTACKS)[number // 2 % len(ATTACKS)] if number % 2 else "nothing"
        with tempfile.TemporaryDirectory(dir=folder) as name:
            attack = strangers(Path(name), ATTACKS[label]) if number % 2 else contextlib.nullcontext()
            with attack:
                result = run_once(workload, CASES["burst"][1], scheduler, Path(name))
            count = turned_away(Path(name))
            if result != first:
                shutil.copytree(Path(name) / "out", odd / f"{number}-{label}")
                first = first or result
        found.setdefault(label, Counter())[result] += 1
        noted[label] += count
        print(number, label, result.digest, count, flush=True)
        assert bool(count) == bool(number % 2), "strangers are noted, and only when there were any"
    for label, results in found.items():
        yield f"| {label} | {results.total()} | {told(results)} | {noted[label]:,} |"


def told(results: Counter[Result]) -> str:
    """Return the digests, each with how often it came out."""
    return "; ".join(f"{result.digest} ({count})" for result, count in results.items())


def main() -> None:
    """Run the cases and append what came out to the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--attacked", type=int, default=0, help="so many runs instead, every other one attacked")
    parser.add_argument("--gangs", action="store_true", help="the 30 gangs with each scheduler that knows such")
    parser.add_argument("--load", type=int, default=os.cpu_count() or 1, help="so many processes busy meanwhile")
    parser.add_argument("--scheduler", default="kube-scheduler@1.34.4", help="a name of the catalogue, or a path")
    parser.add_argument("--toolchain", default="", help="what to call the Go toolchain it was built with")
    parser.add_argument("--odd", type=Path, default=Path("odd-runs"), help="where attacked runs that differ are kept")
    options = parser.parse_args()
    given = os.environ.get("BATKUBE_SHARED_DATA")
    shared = Path(given) if given else HERE.parent.parent / "shared" / "data"
    built = f" ({options.toolchain})" if options.toolchain else ""
    cores = os.cpu_count() or 1
    lines = []
    with other_load(options.load), tempfile.TemporaryDirectory() as name:
        if options.attacked:
            lines += [
                f"The first {ATTACKED_JOBS} jobs of burst, every other run with strangers at the program's port.",
                "",
            ]
            lines += ["| what strangers did | runs | digests | connections turned away |", "|---|---|---|---|"]
            lines += attacked_rows(options.scheduler, options.attacked, shared, Path(name), options.odd)
        elif options.gangs:
            chosen = [options.scheduler] if options.scheduler in GANG_SCHEDULERS else GANG_SCHEDULERS
            lines += ["| scheduler | runs | digests | makespan s | mean wait s |", "|---|---|---|---|---|"]
            lines += gang_rows(chosen, options.runs, Path(name))
        else:
            lines += ["| case | runs | digests | makespan s | mean wait s |", "|---|---|---|---|---|"]
            for case in CASES:
                found = results_of(case, options.scheduler, options.runs, shared)
                (_, makespan, wait), _ = found.most_common(1)[0]
                lines.append(f"| {case} | {options.runs} | {told(found)} | {makespan} | {wait} |")
    load = f"{cores} cores, load average {os.getloadavg()[2]:.1f}"
    title = "Gangs" if options.gangs else Path(options.scheduler).name
    lines = ["", f"## {title}{built}, {platform.machine()}, {load}", "", *lines]
    print("\n".join(lines))
    with RESULTS.open("a", encoding="utf-8") as results:
        results.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
