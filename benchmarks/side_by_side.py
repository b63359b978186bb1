"""Compare the cost of traces with that of an earlier commit; see README.md.

The speed of a shared machine varies from minute to minute, so earlier measurements cannot be compared. The two sources
therefore take turns, and the minimum CPU time of each counts. The table also has whether both produced the same digest.
`--instructions` counts instructions with valgrind instead, which do not depend on other load, but take thirty times as
long.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest import mock

from measuring import Cost, measure
from policies import POLICIES, Case, run_command, trace_cases
from recording import measured_commit, record

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "side_by_side.md"
COLUMNS = ("workload", "policy", "CPU s then", "CPU s now", "ratio", "peak MiB then", "peak MiB now", "same schedule")
COUNTED = ("workload", "policy", "10⁹ instructions then", "now", "ratio")
LIMIT_S = 3600.0
#: Valgrind's count of instructions, without those of the kernel.
_COUNT = re.compile(r"I\s+refs:\s+([\d,]+)")
_VALGRIND = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")


def source_of(commit: str, folder: Path) -> Path:
    """Extract the sources of a commit into `folder`; return the folder to import them from."""
    archive = subprocess.run(
        ["git", "-C", str(HERE.parent), "archive", commit, "src"], capture_output=True, check=False
    )
    if archive.returncode:
        sys.exit(f"cannot get {commit}: {archive.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder / "src"


def run_once(source: Path, case: Case, policy: str, out: Path) -> tuple[Cost, str]:
    """Run a case with the modules of `source`; return its cost and its digest."""
    shutil.rmtree(out, ignore_errors=True)
    with mock.patch.dict(os.environ, {"PYTHONPATH": str(source)}):
        cost = measure(run_command(case, policy, out), LIMIT_S)
    return cost, json.loads((out / "manifest.json").read_text())["digest"]


def row(case: Case, policy: str, sources: Sequence[Path], rounds: int, folder: Path) -> str:
    """Return a row of the table: `rounds` runs of each source, in turn."""
    runs: list[list[tuple[Cost, str]]] = [[], []]
    for _ in range(rounds):
        for number, source in enumerate(sources):
            runs[number].append(run_once(source, case, policy, folder / f"out-{number}"))
    cpu = [min(cost.cpu_s for cost, _ in some) for some in runs]
    memory = [statistics.median(cost.peak_memory_bytes for cost, _ in some) / 2**20 for some in runs]
    digests = {digest for some in runs for _, digest in some}
    cells = [case.name, policy, f"{cpu[0]:.2f}", f"{cpu[1]:.2f}", f"{cpu[1] / cpu[0]:.3f}"]
    return f"| {' | '.join([*cells, *(f'{peak:.1f}' for peak in memory), 'yes' if len(digests) == 1 else 'no'])} |"


def counted_row(case: Case, policy: str, sources: Sequence[Path], folder: Path) -> str:
    """Return a row of the table of instructions: one run of each source."""
    then, now = (instructions(source, case, policy, folder / f"out-{number}") for number, source in enumerate(sources))
    return f"| {case.name} | {policy} | {then / 1e9:.2f} | {now / 1e9:.2f} | {now / then:.3f} |"


def instructions(source: Path, case: Case, policy: str, out: Path) -> int:
    """Return the number of instructions of a run, with compiled modules and fixed hash seeds."""
    run_once(source, case, policy, out)
    shutil.rmtree(out)
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONHASHSEED": "0"}
    command = [*_VALGRIND, *run_command(case, policy, out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    match = _COUNT.search(done.stderr)
    if done.returncode or match is None:
        sys.exit(f"valgrind failed: {done.stderr.strip()[-300:]}")
    return int(match[1].replace(",", ""))


def table(
    cases: Sequence[Case], sources: Sequence[Path], rounds: int, folder: Path, *, is_counted: bool
) -> Iterator[str]:
    """Yield the rows of the table."""
    columns = COUNTED if is_counted else COLUMNS
    yield f"| {' | '.join(columns)} |"
    yield "|---" * len(columns) + "|"
    for case in cases:
        for policy in POLICIES:
            if is_counted:
                yield counted_row(case, policy, sources, folder)
            else:
                yield row(case, policy, sources, rounds, folder)


def main() -> None:
    """Measure, print the table, and append it to the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit", help="the commit to compare with")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each source per row (default 5)")
    parser.add_argument("--jobs", type=int, help="maximum number of jobs of each trace")
    parser.add_argument("--trace", action="append", help="name of a trace; may be repeated (default: all)")
    parser.add_argument("--instructions", action="store_true", help="count instructions (needs valgrind; slow)")
    parser.add_argument("--no-record", action="store_true", help="do not append to the results")
    options = parser.parse_args()
    if options.instructions and shutil.which(_VALGRIND[0]) is None:
        sys.exit("--instructions needs valgrind, which is not on the PATH: apt-get install valgrind")
    subject, lines = f"{measured_commit()} beside {options.commit}", []
    with tempfile.TemporaryDirectory(prefix="batkube-bench-") as name:
        folder = Path(name)
        sources = (source_of(options.commit, folder / "then"), HERE.parent / "src")
        cases = [case for case in trace_cases(folder, options.jobs) if case.name in (options.trace or [case.name])]
        for line in table(cases, sources, options.rounds, folder, is_counted=options.instructions):
            print(line, flush=True)
            lines.append(line)
    if not options.no_record:
        record(RESULTS, subject, lines)


if __name__ == "__main__":
    main()
