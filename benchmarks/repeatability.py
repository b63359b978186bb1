"""Whether runs with the real kube-scheduler repeat to the byte while every core has other work; see README.md."""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import platform
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "repeatability.md"
BATKUBE = str(Path(sys.executable).with_name("batkube"))
CASES = {
    "burst": ("200_delay170.json", "16x1"),
    "spaced": ("spaced_200_delay170.json", "16x1"),
    "KIT": ("KIT_10h_80.json", "1x6"),
}


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


def digests_of(case: str, scheduler: str, runs: int, shared: Path) -> Counter[tuple[str, str, str]]:
    """Run a case so many times; return how often each digest, makespan and mean wait came out."""
    workload, nodes = CASES[case]
    found: Counter[tuple[str, str, str]] = Counter()
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as name:
            out = Path(name) / "out"
            command = [BATKUBE, "run", "--workload", str(shared / "batkube" / "workloads" / workload), "--quiet"]
            command += ["--platform", nodes, "--scheduler", scheduler, "--out", str(out)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            results = dict(line.split("=") for line in done.stdout.splitlines())
            digest = json.loads((out / "manifest.json").read_text())["digest"]
            found[digest, results["makespan"], results["mean_waiting_time"]] += 1
    return found


def main() -> None:
    """Run the cases and append what came out to the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--scheduler", default="kube-scheduler@1.34.4", help="a name of the catalogue, or a path")
    parser.add_argument("--toolchain", default="", help="what to call the Go toolchain it was built with")
    options = parser.parse_args()
    given = os.environ.get("BATKUBE_SHARED_DATA")
    shared = Path(given) if given else HERE.parent.parent / "shared" / "data"
    built = f" ({options.toolchain})" if options.toolchain else ""
    cores = os.cpu_count() or 1
    lines = [
        "",
        f"## {Path(options.scheduler).name}{built}, {platform.machine()}, {cores} cores, each busy with something else",
        "",
        "| case | runs | digests | makespan s | mean wait s |",
        "|---|---|---|---|---|",
    ]
    with other_load(cores):
        for case in CASES:
            found = digests_of(case, options.scheduler, options.runs, shared)
            told = "; ".join(f"{digest} ({count})" for (digest, _, _), count in found.items())
            (_, makespan, wait), _ = found.most_common(1)[0]
            lines.append(f"| {case} | {options.runs} | {told} | {makespan} | {wait} |")
            print(lines[-1], flush=True)
    with RESULTS.open("a", encoding="utf-8") as results:
        results.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
