"""Compare the cost of runs with that of an earlier commit; see README.md.

    python benchmarks/side_by_side.py 7efebe0 --trace KTH-SP2 --jobs 4000 --instructions
    python benchmarks/side_by_side.py 7efebe0 --case burst --case 10000x1000 --instructions

The first compares traces under policies, the second cases of repeatability.py with kube-scheduler: its own cost is not
counted, and its earlier build is made first where it differs.

The speed of a shared machine varies from minute to minute, so earlier measurements cannot be compared. The two sources
therefore take turns, and the minimum CPU time of each counts. The table also has whether both produced the same digest.
`--instructions` counts instructions with valgrind instead, which do not depend on other load, but take thirty times as
long.
"""

from __future__ import annotations

import argparse
import functools
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
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from measuring import Cost, measure
from policies import POLICIES, run_command, trace_cases
from recording import measured_commit, record
from repeatability import CASES, KUBE_SCHEDULER

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "side_by_side.md"
COLUMNS = (
    "workload",
    "scheduler",
    "CPU s then",
    "CPU s now",
    "ratio",
    "peak MiB then",
    "peak MiB now",
    "same schedule",
)
COUNTED = ("workload", "scheduler", "10⁹ instructions then", "now", "ratio")
LIMIT_S = 3600.0
#: What a run and the build of its scheduler need.
SOURCES = ("src", "go", "native")
#: Valgrind's count of instructions, without those of the kernel.
_COUNT = re.compile(r"I\s+refs:\s+([\d,]+)")
_VALGRIND = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")


def source_of(commit: str, folder: Path) -> Path:
    """Extract the sources of a commit into `folder`; return the folder to import them from."""
    archive = subprocess.run(
        ["git", "-C", str(HERE.parent), "archive", commit, *SOURCES], capture_output=True, check=False
    )
    if archive.returncode:
        sys.exit(f"cannot get {commit}: {archive.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder / "src"


class Comparison(NamedTuple):
    """What is run with both sources."""

    workload: str
    scheduler: str
    #: Returns the command for an output folder.
    command: Callable[[Path], list[str]]


def trace_comparisons(folder: Path, names: Sequence[str], jobs_max: int | None) -> Iterator[Comparison]:
    """Yield traces, all if `names` is empty, under each policy."""
    for case in trace_cases(folder, jobs_max):
        if not names or case.name in names:
            for policy in POLICIES:
                yield Comparison(case.name, policy, functools.partial(run_command, case, policy))


def program_comparisons(folder: Path, names: Sequence[str]) -> Iterator[Comparison]:
    """Yield cases of repeatability.py."""
    for name in names:
        inputs = folder / name
        inputs.mkdir()
        # Valgrind makes a run look stalled.
        options = [*CASES[name].options(inputs), "--watchdog", "3600", "--force", "--quiet"]
        yield Comparison(name, KUBE_SCHEDULER, functools.partial(program_command, options))


def program_command(options: Sequence[str], out: Path) -> list[str]:
    """Return the command of a run with the output folder `out`."""
    return [sys.executable, "-m", "batkube", "run", *options, "--out", str(out)]


def environment(source: Path, compiled: Path) -> dict[str, str]:
    """Return the environment of a run with `source`, whose modules are compiled once, as after an installation."""
    variables = {**os.environ, "PYTHONPATH": str(source), "PYTHONPYCACHEPREFIX": str(compiled)}
    variables["PYTHONHASHSEED"], variables["PYTHONDONTWRITEBYTECODE"] = "0", ""
    return variables


def run_once(source: Path, compared: Comparison, out: Path) -> tuple[Cost, str]:
    """Run a case with the modules of `source`; return its cost and its digest."""
    shutil.rmtree(out, ignore_errors=True)
    with mock.patch.dict(os.environ, environment(source, out.parent)):
        cost = measure(compared.command(out), LIMIT_S)
    return cost, json.loads((out / "manifest.json").read_text())["digest"]


def row(compared: Comparison, sources: Sequence[Path], rounds: int, folder: Path) -> str:
    """Return a row of the table: `rounds` runs of each source, in turn."""
    runs: list[list[tuple[Cost, str]]] = [[], []]
    for _ in range(rounds):
        for number, source in enumerate(sources):
            runs[number].append(run_once(source, compared, folder / f"out-{number}"))
    cpu = [min(cost.cpu_s for cost, _ in some) for some in runs]
    memory = [statistics.median(cost.peak_memory_bytes for cost, _ in some) / 2**20 for some in runs]
    digests = {digest for some in runs for _, digest in some}
    cells = [compared.workload, compared.scheduler, f"{cpu[0]:.2f}", f"{cpu[1]:.2f}", f"{cpu[1] / cpu[0]:.3f}"]
    return f"| {' | '.join([*cells, *(f'{peak:.1f}' for peak in memory), 'yes' if len(digests) == 1 else 'no'])} |"


def counted_row(compared: Comparison, sources: Sequence[Path], folder: Path) -> str:
    """Return a row of the table of instructions: one run of each source."""
    then, now = (instructions(source, compared, folder / f"out-{number}") for number, source in enumerate(sources))
    return f"| {compared.workload} | {compared.scheduler} | {then / 1e9:.2f} | {now / 1e9:.2f} | {now / then:.3f} |"


def instructions(source: Path, compared: Comparison, out: Path) -> int:
    """Return the number of instructions of a run, with compiled modules and fixed hash seeds.

    Those of a scheduler are not counted, since valgrind does not follow its process.
    """
    run_once(source, compared, out)
    shutil.rmtree(out)
    command = [*_VALGRIND, *compared.command(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment(source, out.parent))
    match = _COUNT.search(done.stderr)
    if done.returncode or match is None:
        sys.exit(f"valgrind failed: {done.stderr.strip()[-300:]}")
    return int(match[1].replace(",", ""))


def table(
    comparisons: Iterable[Comparison], sources: Sequence[Path], rounds: int, folder: Path, *, is_counted: bool
) -> Iterator[str]:
    """Yield the rows of the table."""
    columns = COUNTED if is_counted else COLUMNS
    yield f"| {' | '.join(columns)} |"
    yield "|---" * len(columns) + "|"
    for compared in comparisons:
        yield counted_row(compared, sources, folder) if is_counted else row(compared, sources, rounds, folder)


def main() -> None:
    """Measure, print the table, and append it to the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit", help="the commit to compare with")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each source per row (default 5)")
    parser.add_argument("--jobs", type=int, help="maximum number of jobs of each trace")
    parser.add_argument("--trace", action="append", help="name of a trace; may be repeated (default: all)")
    parser.add_argument(
        "--case", action="append", choices=CASES, help="case of repeatability.py instead of traces; may be repeated"
    )
    parser.add_argument("--instructions", action="store_true", help="count instructions (needs valgrind; slow)")
    parser.add_argument("--no-record", action="store_true", help="do not append to the results")
    options = parser.parse_args()
    if options.instructions and shutil.which(_VALGRIND[0]) is None:
        sys.exit("--instructions needs valgrind, which is not on the PATH: apt-get install valgrind")
    subject, lines = f"{measured_commit()} beside {options.commit}", []
    with tempfile.TemporaryDirectory(prefix="batkube-bench-") as name:
        folder = Path(name)
        sources = (source_of(options.commit, folder / "then"), HERE.parent / "src")
        comparisons = (
            program_comparisons(folder, options.case)
            if options.case
            else trace_comparisons(folder, options.trace or (), options.jobs)
        )
        for line in table(comparisons, sources, options.rounds, folder, is_counted=options.instructions):
            print(line, flush=True)
            lines.append(line)
    if not options.no_record:
        record(RESULTS, subject, lines)


if __name__ == "__main__":
    main()
