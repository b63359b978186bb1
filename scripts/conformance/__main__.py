"""Kubernetes' own conformance suite against `batkube serve`: what passes, what fails, and what nobody can expect to.

    make conformance   or   python scripts/conformance --out DIR [--only REGEX] [--all | --beyond] [--rounds 1] …

The suite (k8s.io/kubernetes/test/e2e) is built from the Go module proxy, once; it takes a quarter of an hour on two
cores. A cluster is served, and the specs are run against it by several processes at once; those that must be alone have
another cluster, and are run one after the other meanwhile. `beyond.yaml` says which specs are not run, and why: they
look at what a container really did. With `--rounds` all of it is done again and again on the same clusters, and a spec
has passed if it did each time; what the servers took after each round shows whether anything stays. DIR gets
`specs.csv`, `table.md`, `memory.csv` (what the servers took, minute by minute) and what each process of the suite
printed. Exit code 1 when a spec that was run did not pass.
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
from clusters import Cluster, served, settled_memory, watched  # beside this file

from batkube.schedulers.build.builder import ensure_built
from batkube.schedulers.installed import cache_folder
from batkube.schedulers.named_programs import find_recipe
from batkube.schedulers.recipes import BuildRecipe, GoMod

HERE = Path(__file__).parent
VERSION = "v1.34.4"
CONFORMANCE = "[Conformance]"
SERIAL, SLOW = "[Serial]", "[Slow]"
#: How many specs one process of the suite runs.
CHUNK = 6
#: So long a process of the suite may take for each of its specs, before it is ended.
SPEC_S = 1800
_GROUP = re.compile(r"\[(sig-[a-z-]+)\]")


class Verdict(NamedTuple):
    """How a spec went."""

    spec: str
    outcome: str
    #: Why it was not run, or the first line of why it failed.
    reason: str = ""
    length_s: float = 0.0

    @property
    def group(self) -> str:
        """The special interest group that keeps the spec."""
        match = _GROUP.search(self.spec)
        return match[1] if match else "others"


def suite() -> BuildRecipe:
    """Return the suite as a program."""
    main = (HERE / "suite.go").read_text(encoding="utf-8")
    variables = tuple(
        (f"k8s.io/{package}.gitVersion", VERSION) for package in ("component-base/version", "client-go/pkg/version")
    )
    return BuildRecipe(
        "e2e", "k8s.io/kubernetes", VERSION, "", main=main, go_mod=GoMod.KUBERNETES, variables=variables, virtual=False
    )


def beyond() -> dict[str, str]:
    """Return the specs that are not run, each with the reason."""
    reasons = yaml.safe_load((HERE / "beyond.yaml").read_text(encoding="utf-8"))
    return {spec: reason for reason, specs in reasons.items() for spec in specs}


class Suite:
    """The suite's program, with the cluster that it is let loose on."""

    def __init__(self, binary: Path, cluster: Cluster, kubectl: Path, out: Path) -> None:
        self._command = [str(binary), f"--kubeconfig={cluster.kubeconfig}"]
        self._command += ["--provider=skeleton", "--disable-log-dump=true"]
        self._command.append(f"--kubectl-path={kubectl}")
        #: Where reports go, with the name of the cluster.
        self._out = out / cluster.name
        self._numbers = itertools.count(1)

    def specs(self) -> list[str]:
        """Return the names of all conformance specs."""
        reports = self._reports("list", re.escape(CONFORMANCE), "--ginkgo.dry-run")
        return sorted(name for report in reports if CONFORMANCE in (name := _name(report)))

    def run(self, specs: Sequence[str]) -> list[Verdict]:
        """Run some specs in one process."""
        focus = "|".join(re.escape(spec).replace(r"\ ", " ") for spec in specs)
        reports = {_name(report): report for report in self._reports(f"{next(self._numbers):03}", f"({focus})$")}
        verdicts = [_verdict(spec, reports.get(spec)) for spec in specs]
        for one in verdicts:
            print(f"{one.outcome:8} {one.length_s:6.0f} s  {one.spec}", flush=True)
        return verdicts

    def _reports(self, name: str, focus: str, *more: str) -> list[dict[str, Any]]:
        path, log = (self._out.with_name(f"{self._out.name}-{name}.{form}") for form in ("json", "log"))
        command = [*self._command, f"--ginkgo.focus={focus}", f"--ginkgo.json-report={path}", "--ginkgo.no-color"]
        # The specs of a process that hangs have failed.
        with log.open("wb") as stream, contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run([*command, *more], stdout=stream, stderr=stream, timeout=SPEC_S * CHUNK, check=False)
        if not path.exists():
            return []
        return [report for one in json.loads(path.read_text(encoding="utf-8")) for report in one["SpecReports"] or ()]


def _name(report: dict[str, Any]) -> str:
    return " ".join([*(report.get("ContainerHierarchyTexts") or ()), report.get("LeafNodeText", "")])


def _verdict(spec: str, report: dict[str, Any] | None) -> Verdict:
    if report is None:
        return Verdict(spec, "failed", "the suite ended before it came to an end")
    length_s = report.get("RunTime", 0) / 1e9
    if report["State"] == "passed":
        return Verdict(spec, "passed", "", length_s)
    message = (report.get("Failure") or {}).get("Message", "").strip().splitlines()
    outcome = "skipped" if report["State"] in ("skipped", "pending") else "failed"
    return Verdict(spec, outcome, message[0] if message else report["State"], length_s)


def table(verdicts: Sequence[Verdict]) -> str:
    """Return how many specs of each group went how, and every one that was run and did not pass."""
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
        lines += ["", "| did not pass | what it said |", "|---|---|"]
        lines += [f"| {one.spec} | {one.reason.replace('|', '¦')[:200]} |" for one in failures]
    return "\n".join(lines) + "\n"


def write(out: Path, verdicts: Sequence[Verdict], memory: Sequence[str]) -> None:
    """Write what became of the specs, and what the servers took."""
    with (out / "specs.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["group", "spec", "outcome", "reason", "length_s"])
        for one in verdicts:
            writer.writerow([one.group, one.spec, one.outcome, one.reason, f"{one.length_s:.1f}"])
    text = f"{table(verdicts)}\nWhat the servers took:\n\n" + "".join(f"- {line}\n" for line in memory)
    (out / "table.md").write_text(text, encoding="utf-8")


def run_all(together: Suite, apart: Suite, specs: Sequence[str], workers: int) -> list[Verdict]:
    """Run specs, slow ones first, each by itself, and those that must be alone one after the other on their cluster."""
    alone = [spec for spec in specs if SERIAL in spec]
    slow = [[spec] for spec in specs if SLOW in spec and SERIAL not in spec]
    others = [spec for spec in specs if SLOW not in spec and SERIAL not in spec]
    with ThreadPoolExecutor(workers) as many, ThreadPoolExecutor(1) as one:
        runs = [many.submit(together.run, chunk) for chunk in (*slow, *_chunks(others))]
        runs += [one.submit(apart.run, chunk) for chunk in _chunks(alone)]
        return [verdict for run in runs for verdict in run.result()]


def _chunks(specs: Sequence[str]) -> list[Sequence[str]]:
    """Return what each process runs: neighbours by name, which take about as long, are of different ones."""
    count = -(-len(specs) // CHUNK)
    return [specs[start::count] for start in range(count)]


def of_all_rounds(rounds: Sequence[Sequence[Verdict]]) -> list[Verdict]:
    """Return the verdict of each spec: the first that is not a pass, if there is one."""
    verdicts: dict[str, Verdict] = {}
    for one in itertools.chain.from_iterable(rounds):
        if one.spec not in verdicts or verdicts[one.spec].outcome == "passed":
            verdicts[one.spec] = one
    return list(verdicts.values())


def main() -> int:
    """Build, serve, run, and tell."""
    parser = argparse.ArgumentParser(prog="conformance", description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="a folder for the results; emptied first")
    parser.add_argument("--only", default="", metavar="REGEX", help="only specs whose name has a match")
    containers = parser.add_mutually_exclusive_group()
    containers.add_argument("--all", action="store_true", help="the specs that need real containers, too")
    containers.add_argument("--beyond", action="store_true", help="only those: most fail, and the server must bear it")
    parser.add_argument("--rounds", type=int, default=1, help="how often all of it is done, on the same clusters (1)")
    parser.add_argument("--workers", type=int, default=4, help="processes of the suite at once (4)")
    parser.add_argument("--platform", default="3x16,64Gi", help="the cluster (3x16,64Gi)")
    parser.add_argument("--build-only", action="store_true", help="build the suite, and no more")
    parser.add_argument("serve", nargs="*", help="more arguments for batkube serve, after --")
    arguments = parser.parse_args()
    binary = ensure_built(suite(), cache_folder(), lambda line: print(line, flush=True))
    if arguments.build_only:
        print(binary)
        return 0
    kubectl = ensure_built(find_recipe("kubectl@1.34.4"), cache_folder(), lambda line: print(line, flush=True))
    shutil.rmtree(arguments.out, ignore_errors=True)
    arguments.out.mkdir(parents=True)
    with (
        served(arguments.out, "served", arguments.platform, arguments.serve) as shared,
        served(arguments.out, "alone", arguments.platform, arguments.serve) as own,
        watched((shared, own), arguments.out / "memory.csv"),
    ):
        together, apart = (Suite(binary, cluster, kubectl, arguments.out) for cluster in (shared, own))
        reasons = beyond()
        specs = [spec for spec in together.specs() if re.search(arguments.only, spec)]
        if arguments.beyond:
            specs = [spec for spec in specs if spec in reasons]
        if arguments.all or arguments.beyond:
            reasons = {}
        verdicts = [Verdict(spec, "not run", reasons[spec]) for spec in specs if spec in reasons]
        wanted = [spec for spec in specs if spec not in reasons]
        rounds, memory = [], []
        for number in range(1, arguments.rounds + 1):
            rounds.append(run_all(together, apart, wanted, arguments.workers))
            memory.append(f"after round {number}: {settled_memory((shared, own))}")
            print(memory[-1], flush=True)
        verdicts += of_all_rounds(rounds)
    write(arguments.out, sorted(verdicts), memory)
    print((arguments.out / "table.md").read_text(encoding="utf-8"))
    return int(any(one.outcome == "failed" for one in verdicts))


if __name__ == "__main__":
    sys.exit(main())
