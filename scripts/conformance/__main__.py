"""Run Kubernetes' conformance suite against `batkube serve`.

    make conformance   or   python scripts/conformance --out DIR [--only REGEX] [--all | --beyond] [--rounds 1] …

The suite (k8s.io/kubernetes/test/e2e) is built once from the Go module proxy, which takes a quarter of an hour on two
cores. Several processes run the specs against one served cluster. Serial specs have a second cluster, and run one after
the other at the same time. `beyond.yaml` lists the specs that are not run, by reason: they check what a container did.
`--rounds` repeats everything on the same clusters. A spec has passed if it passed in each round, and the memory of the
servers after each round shows leaks. DIR gets `specs.csv`, `table.md`, `memory.csv` (the memory of the servers by
minute) and the output of each process of the suite. The exit code is 1 if a spec that was run did not pass.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import itertools
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from clusters import Cluster, memory_log, serve_cluster, settled_memory  # beside this file

from batkube.schedulers.build.builder import ensure_built
from batkube.schedulers.installed import cache_folder
from batkube.schedulers.named_programs import find_recipe
from batkube.schedulers.recipes import BuildRecipe, GoMod

HERE = Path(__file__).parent
VERSION = "v1.34.4"
CONFORMANCE = "[Conformance]"
SERIAL, SLOW = "[Serial]", "[Slow]"
#: The number of specs in a process of the suite.
CHUNK = 6
#: The time limit of a process of the suite, for each of its specs.
SPEC_S = 1800
_GROUP = re.compile(r"\[(sig-[a-z-]+)\]")


class Verdict(NamedTuple):
    """The outcome of a spec."""

    spec: str
    outcome: str
    #: Why it was not run, or the first line of its failure.
    reason: str = ""
    length_s: float = 0.0

    @property
    def group(self) -> str:
        """The special interest group that maintains the spec."""
        match = _GROUP.search(self.spec)
        return match[1] if match else "others"


def suite() -> BuildRecipe:
    """Return the build recipe of the suite."""
    main = (HERE / "suite.go").read_text(encoding="utf-8")
    variables = tuple(
        (f"k8s.io/{package}.gitVersion", VERSION) for package in ("component-base/version", "client-go/pkg/version")
    )
    return BuildRecipe(
        "e2e", "k8s.io/kubernetes", VERSION, "", main=main, go_mod=GoMod.KUBERNETES, variables=variables, virtual=False
    )


def excluded_specs() -> dict[str, str]:
    """Return the specs that are not run, with the reason of each."""
    reasons = yaml.safe_load((HERE / "beyond.yaml").read_text(encoding="utf-8"))
    return {spec: reason for reason, specs in reasons.items() for spec in specs}


class Suite:
    """The program of the suite, with the cluster that it tests."""

    def __init__(self, binary: Path, cluster: Cluster, kubectl: Path, out: Path) -> None:
        self._command = [str(binary), f"--kubeconfig={cluster.kubeconfig}"]
        self._command += ["--provider=skeleton", "--disable-log-dump=true"]
        self._command.append(f"--kubectl-path={kubectl}")
        #: The prefix of reports and logs: the output folder and the name of the cluster.
        self._out = out / cluster.name
        self._numbers = itertools.count(1)

    def specs(self) -> list[str]:
        """Return the names of all conformance specs."""
        reports = self._reports("list", re.escape(CONFORMANCE), "--ginkgo.dry-run")
        return sorted(name for report in reports if CONFORMANCE in (name := _name(report)))

    def run(self, specs: Sequence[str]) -> list[Verdict]:
        """Run specs in one process."""
        focus = "|".join(re.escape(spec).replace(r"\ ", " ") for spec in specs)
        reports = {_name(report): report for report in self._reports(f"{next(self._numbers):03}", f"({focus})$")}
        verdicts = [_verdict(spec, reports.get(spec)) for spec in specs]
        for one in verdicts:
            print(f"{one.outcome:8} {one.length_s:6.0f} s  {one.spec}", flush=True)
        return verdicts

    def _reports(self, name: str, focus: str, *more: str) -> list[dict[str, Any]]:
        path, log = (self._out.with_name(f"{self._out.name}-{name}.{form}") for form in ("json", "log"))
        command = [*self._command, f"--ginkgo.focus={focus}", f"--ginkgo.json-report={path}", "--ginkgo.no-color"]
        # A process that hangs writes no report, so its specs fail.
        with log.open("wb") as stream, contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run([*command, *more], stdout=stream, stderr=stream, timeout=SPEC_S * CHUNK, check=False)
        if not path.exists():
            return []
        return [report for one in json.loads(path.read_text(encoding="utf-8")) for report in one["SpecReports"] or ()]


def _name(report: dict[str, Any]) -> str:
    return " ".join([*(report.get("ContainerHierarchyTexts") or ()), report.get("LeafNodeText", "")])


def _verdict(spec: str, report: dict[str, Any] | None) -> Verdict:
    if report is None:
        return Verdict(spec, "failed", "the suite has no report of it")
    length_s = report.get("RunTime", 0) / 1e9
    if report["State"] == "passed":
        return Verdict(spec, "passed", "", length_s)
    message = (report.get("Failure") or {}).get("Message", "").strip().splitlines()
    outcome = "skipped" if report["State"] in ("skipped", "pending") else "failed"
    return Verdict(spec, outcome, message[0] if message else report["State"], length_s)


def table(verdicts: Sequence[Verdict]) -> str:
    """Return the table of outcomes by group, and the specs that were run and did not pass."""
    lines = ["| group | specs | passed | failed | not run |", "|---|--:|--:|--:|--:|"]
    groups = {one.group for one in verdicts}
    for group in [*sorted(groups), "all"]:
        counts = Counter(one.outcome for one in verdicts if group in ("all", one.group))
        not_run = counts["not run"] + counts["skipped"]
        lines.append(f"| {group} | {counts.total()} | {counts['passed']} | {counts['failed']} | {not_run} |")
    lines += ["", "| not run, because | specs |", "|---|--:|"]
    reasons = Counter(one.reason for one in verdicts if one.outcome == "not run")
    lines += [f"| {reason} | {count} |" for reason, count in reasons.most_common()]
    failures = [one for one in verdicts if one.outcome in ("failed", "skipped")]
    if failures:
        lines += ["", "| did not pass | message |", "|---|---|"]
        lines += [f"| {one.spec} | {one.reason.replace('|', '¦')[:200]} |" for one in failures]
    return "\n".join(lines) + "\n"


def write(out: Path, verdicts: Sequence[Verdict], memory: Sequence[str]) -> None:
    """Write the outcomes of the specs and the memory of the servers."""
    with (out / "specs.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["group", "spec", "outcome", "reason", "length_s"])
        for one in verdicts:
            writer.writerow([one.group, one.spec, one.outcome, one.reason, f"{one.length_s:.1f}"])
    text = f"{table(verdicts)}\nMemory of the servers:\n\n" + "".join(f"- {line}\n" for line in memory)
    (out / "table.md").write_text(text, encoding="utf-8")


def run_all(parallel_suite: Suite, serial_suite: Suite, specs: Sequence[str], workers: int) -> list[Verdict]:
    """Run specs: slow ones first, each in its own process, and serial ones one after the other on their own cluster."""
    alone = [spec for spec in specs if SERIAL in spec]
    slow = [[spec] for spec in specs if SLOW in spec and SERIAL not in spec]
    others = [spec for spec in specs if SLOW not in spec and SERIAL not in spec]
    with ThreadPoolExecutor(workers) as many, ThreadPoolExecutor(1) as one:
        runs = [many.submit(parallel_suite.run, chunk) for chunk in (*slow, *_chunks(others))]
        runs += [one.submit(serial_suite.run, chunk) for chunk in _chunks(alone)]
        return [verdict for run in runs for verdict in run.result()]


def _chunks(specs: Sequence[str]) -> list[Sequence[str]]:
    """Divide specs among processes; specs with similar names, which often take equally long, are in different ones."""
    count = -(-len(specs) // CHUNK)
    return [specs[start::count] for start in range(count)]


def of_all_rounds(rounds: Sequence[Sequence[Verdict]]) -> list[Verdict]:
    """Return the verdict of each spec over all rounds: the first one that is not `passed`, if any."""
    verdicts: dict[str, Verdict] = {}
    for one in itertools.chain.from_iterable(rounds):
        if one.spec not in verdicts or verdicts[one.spec].outcome == "passed":
            verdicts[one.spec] = one
    return list(verdicts.values())


def main() -> int:
    """Build the suite, serve the clusters, run the specs and print the table."""
    parser = argparse.ArgumentParser(prog="conformance", description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="the output folder; its content is deleted first")
    parser.add_argument("--only", default="", metavar="REGEX", help="only specs whose name matches")
    containers = parser.add_mutually_exclusive_group()
    containers.add_argument("--all", action="store_true", help="also run specs that need real containers")
    containers.add_argument("--beyond", action="store_true", help="run only those; most of them fail")
    parser.add_argument("--rounds", type=int, default=1, help="number of repetitions on the same clusters (default 1)")
    parser.add_argument("--workers", type=int, default=4, help="simultaneous processes of the suite (default 4)")
    parser.add_argument("--platform", default="3x16,64Gi", help="the cluster (default 3x16,64Gi)")
    parser.add_argument("--build-only", action="store_true", help="build the suite without running it")
    parser.add_argument("serve", nargs="*", help="arguments of batkube serve, after --")
    arguments = parser.parse_args()
    binary = ensure_built(suite(), cache_folder(), lambda line: print(line, flush=True))
    if arguments.build_only:
        print(binary)
        return 0
    kubectl = ensure_built(find_recipe("kubectl@1.34.4"), cache_folder(), lambda line: print(line, flush=True))
    shutil.rmtree(arguments.out, ignore_errors=True)
    arguments.out.mkdir(parents=True)
    with (
        serve_cluster(arguments.out, "served", arguments.platform, arguments.serve) as shared,
        serve_cluster(arguments.out, "alone", arguments.platform, arguments.serve) as own,
        memory_log((shared, own), arguments.out / "memory.csv"),
    ):
        parallel_suite, serial_suite = (Suite(binary, cluster, kubectl, arguments.out) for cluster in (shared, own))
        reasons = excluded_specs()
        specs = [spec for spec in parallel_suite.specs() if re.search(arguments.only, spec)]
        if arguments.beyond:
            specs = [spec for spec in specs if spec in reasons]
        if arguments.all or arguments.beyond:
            reasons = {}
        verdicts = [Verdict(spec, "not run", reasons[spec]) for spec in specs if spec in reasons]
        wanted = [spec for spec in specs if spec not in reasons]
        rounds, memory = [], []
        for number in range(1, arguments.rounds + 1):
            rounds.append(run_all(parallel_suite, serial_suite, wanted, arguments.workers))
            memory.append(f"after round {number}: {settled_memory((shared, own))}")
            print(memory[-1], flush=True)
        verdicts += of_all_rounds(rounds)
    write(arguments.out, sorted(verdicts), memory)
    print((arguments.out / "table.md").read_text(encoding="utf-8"))
    return int(any(one.outcome == "failed" for one in verdicts))


if __name__ == "__main__":
    sys.exit(main())
