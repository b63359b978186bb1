"""Check whether runs with real programs repeat to the byte in several conditions; see README.md.

    python benchmarks/repeatability.py --runs 30                                      everything that is quick to build
    python benchmarks/repeatability.py --cases 2000x1000 volcano --conditions quiet cuts --runs 6

Each case runs in each condition, and all its digests must be equal. The conditions take turns, so that slow changes of
the machine affect all of them. Pinned runs are simultaneous, one on each core. Loaded runs are simultaneous too, two
for each core, and are each other's load. Runs that differ from the first are kept in --odd, for `compare --journal`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "repeatability.md"
PROGRAMS = HERE.parent / "examples" / "programs"
BATKUBE = str(Path(sys.executable).with_name("batkube"))
sys.path.insert(0, str(HERE.parent / "tests"))

import published  # noqa: E402

KUBE_SCHEDULER = "kube-scheduler@1.34.4"
#: A client without a rate limit: it sends whole bursts at one instant.
UNLIMITED = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {qps: 100000, burst: 100000}
"""


@dataclass(frozen=True)
class Case:
    """The options of `batkube run`, for a folder in which input files are written."""

    options: Callable[[Path], list[str]]


def delays(pods: int, nodes: int, cpus: int = 1) -> Case:
    """Return a case of jobs of one cpu, all submitted at 0 s, and a client without a rate limit."""

    def options(folder: Path) -> list[str]:
        jobs = [{"id": str(number), "subtime": 0, "res": 1, "profile": "d"} for number in range(pods)]
        profiles = {"d": {"type": "delay", "delay": 170, "cpu": 1}}
        workload, configuration = folder / f"{pods}.json", folder / "configuration.yaml"
        workload.write_text(json.dumps({"nb_res": nodes, "jobs": jobs, "profiles": profiles}))
        configuration.write_text(UNLIMITED)
        named = ["--workload", str(workload), "--platform", f"{nodes}x{cpus}", "--scheduler", KUBE_SCHEDULER]
        return [*named, "--scheduler-config", str(configuration)]

    return Case(options)


def published_case(name: str, nodes: str, scheduler: str) -> Case:
    """Return a case of a published workload."""

    def options(folder: Path) -> list[str]:
        workload = getattr(published, name)(folder)
        return ["--workload", str(workload), "--platform", nodes, "--scheduler", scheduler]

    return Case(options)


def three_days(*more: str) -> Case:
    """Return a case of Deployments, CronJobs and other objects over three virtual days."""
    named = ["--workload", str(HERE / "objects.yaml"), "--platform", "8x4,16Gi", "--until", "3d"]
    return Case(lambda _: [*named, "--scheduler", KUBE_SCHEDULER, *more])


def c_options(folder: Path) -> list[str]:
    """Return the options of a run with the example scheduler in C."""
    program = folder / "random_scheduler"
    subprocess.run(["cc", "-O2", "-o", str(program), str(PROGRAMS / "random_scheduler.c")], check=True)
    return ["--workload", str(published.burst(folder)), "--platform", "16x1", "--scheduler", f"preload:{program}"]


CASES = {
    "burst": published_case("burst", published.SIXTEEN, KUBE_SCHEDULER),
    "spaced": published_case("spaced", published.SIXTEEN, KUBE_SCHEDULER),
    **{f"{pods}x{nodes}": delays(pods, nodes) for pods, nodes in ((200, 100), (1000, 100), (2000, 1000))},
    # On these nodes all pods fit at once. Retrying thousands of pending pods would take minutes.
    "5000x1000": delays(5000, 1000, cpus=10),
    "objects": three_days(),
    "python": published_case("burst", "16x1", f"python:{PROGRAMS / 'random_scheduler.py'}"),
    "c": Case(c_options),
    # The following take minutes to build or to run.
    "1.19": published_case("burst", published.SIXTEEN, "kube-scheduler@1.19.0"),
    "1.37": published_case("burst", published.SIXTEEN, "kube-scheduler@1.37.1"),
    "native-gangs": published_case("mixed_gangs", published.EIGHT_OF_TWO, "kube-scheduler-gangs@1.37.1"),
    "volcano": published_case("mixed_gangs", published.EIGHT_OF_TWO, "volcano@1.10.0"),
    "kueue": published_case("mixed_gangs", published.EIGHT_OF_TWO, "kueue@0.10.0"),
    "coscheduling": published_case("mixed_gangs", published.EIGHT_OF_TWO, "scheduler-plugins@0.30.6"),
    "kube-batch": published_case("mixed_gangs", published.EIGHT_OF_TWO, "kube-batch@0.5.0"),
    "controllers": three_days("--controllers", "kube-controller-manager@1.34.4"),
    "10000x1000": delays(10_000, 1000, cpus=10),
    "10000x5000": delays(10_000, 5000, cpus=10),
}
QUICK = tuple(CASES)[: tuple(CASES).index("1.19")]

#: `pinned` and `loaded` concern the machine; the other conditions are values of `--disturb`.
CONDITIONS = ("quiet", "pinned", "loaded", "cuts", "pauses", "slow-server", "slow-program", "wake-ups")
CORES = sorted(os.sched_getaffinity(0))
#: The number of simultaneous runs; one in the other conditions.
AT_ONCE = {"pinned": len(CORES), "loaded": 2 * len(CORES)}


def run_in(condition: str, options: Sequence[str], out: Path, core: int) -> str:
    """Run in a condition, with the output folder `out`, and pinned to `core` if so; return the digest."""
    command = [BATKUBE, "run", *options, "--quiet", "--out", str(out)]
    prepare = None
    if condition == "pinned":
        prepare = partial(os.sched_setaffinity, 0, {core})
    elif condition not in ("quiet", "loaded"):
        command += ["--disturb", condition]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=prepare, check=False)
    if done.returncode:
        return f"exit code {done.returncode}: {done.stderr.strip().splitlines()[-1:]}"
    notes = json.loads((out / "fidelity.json").read_text())
    remark = " (noted)" if any(note["subject"] == "repeatability" for note in notes) else ""
    return str(json.loads((out / "manifest.json").read_text())["digest"]) + remark


def digests_of(case: str, conditions: Sequence[str], runs: int, folder: Path, odd: Path) -> dict[str, Counter[str]]:
    """Run a case several times in each condition; return how often each digest occurred."""
    options = CASES[case].options(folder)
    counts_by_condition: dict[str, Counter[str]] = {condition: Counter() for condition in conditions}
    first: str | None = None
    for done in range(runs):
        for condition in conditions:
            at_once = AT_ONCE.get(condition, 1)
            if done % at_once:
                continue
            outs = [folder / f"{condition}-{number}" for number in range(done, min(done + at_once, runs))]
            with ThreadPoolExecutor(at_once) as pool:
                digests = list(pool.map(partial(run_in, condition, options), outs, CORES * at_once))
            for out, digest in zip(outs, digests, strict=True):
                counts_by_condition[condition][digest] += 1
                if digest != first and out.exists():
                    shutil.copytree(out, odd / f"{case}-{out.name}", dirs_exist_ok=True)
                    first = first or digest
                shutil.rmtree(out, ignore_errors=True)
                shutil.rmtree(f"{out}.failed", ignore_errors=True)
                print(case, out.name, digest, f"load {os.getloadavg()[0]:.1f}", flush=True)
    return counts_by_condition


def row(case: str, counts_by_condition: dict[str, Counter[str]]) -> str:
    """Return a row of the table: the numbers of runs and digests in each condition, and the digest if unique."""
    all_digests = sum(counts_by_condition.values(), Counter())
    cells = [f"{counts.total()}: {len(counts)}" for counts in counts_by_condition.values()]
    digest = next(iter(all_digests)) if len(all_digests) == 1 else f"**{len(all_digests)} digests**"
    return f"| {case} | {' | '.join(cells)} | {digest} |"


def main() -> None:
    """Run the cases and append the table to the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=30, help="number of runs of each case in each condition")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=QUICK, metavar="CASE", help=", ".join(CASES))
    parser.add_argument(
        "--conditions", nargs="+", choices=CONDITIONS, default=CONDITIONS, metavar="CONDITION", help=str(CONDITIONS)
    )
    parser.add_argument("--odd", type=Path, default=Path("odd-runs"), help="folder for runs that differ from the first")
    options = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True)
    _write(
        "",
        f"## {commit.stdout.strip()}, {platform.machine()}, {len(CORES)} cores",
        "",
        "Number of runs and of different digests in each condition.",
        "",
        f"| case | {' | '.join(options.conditions)} | digest |",
        f"|---|{'---|' * len(options.conditions)}---|",
    )
    for case in options.cases:
        with tempfile.TemporaryDirectory() as name:
            _write(row(case, digests_of(case, options.conditions, options.runs, Path(name), options.odd)))


def _write(*lines: str) -> None:
    """Print lines, and append them to the results immediately, since all cases take hours."""
    print(*lines, sep="\n", flush=True)
    with RESULTS.open("a", encoding="utf-8") as results:
        results.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
