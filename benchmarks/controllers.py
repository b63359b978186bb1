"""Check whether runs with kube-controller-manager send the same requests again on a busy machine; see README.md."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import itertools
import multiprocessing
import os
import platform
import sys
import tempfile
from pathlib import Path
from unittest import mock

from batkube.api.assembly import Api
from batkube.api.requests.messages import Request, Response, Stream
from batkube.scenarios.keys import make_scenario
from batkube.simulation.run import execute
from other_load import other_load

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "controllers.md"
#: The files that are compared, in addition to the requests of the programs.
FILES = ("jobs.csv", "pods.csv", "schedule.csv", "machine_states.csv", "journal.jsonl", "fidelity.json")
MANAGER = "kube-controller-manager@1.34.4"


def run_once(workload: Path, until: str, controllers: str, out: Path) -> None:
    """Execute a run with the output folder `out`, and log all requests beside it, in the order of their answers."""
    answer = Api.handle
    with out.with_suffix(".requests").open("w", encoding="utf-8") as log:

        def handle(api: Api, request: Request) -> Response | Stream:
            program = request.headers.get("user-agent", "").partition("/")[0]
            body = hashlib.sha256(request.body).hexdigest()[:12]
            log.write(f"{program} {request.method} {request.path} {request.query} {body}\n")
            return answer(api, request)

        keys = {"workload": str(workload), "platform": "8x4,16Gi", "scheduler": "kube-scheduler@1.34.4"}
        scenario = make_scenario({**keys, "until": until, "controllers": controllers}, "benchmark")
        with mock.patch.object(Api, "handle", handle):
            execute(scenario, out)


def first_difference(one: Path, other: Path) -> str:
    """Return the first request in which two runs differ; "" if there is none."""
    with one.open(encoding="utf-8") as first, other.open(encoding="utf-8") as second:
        for number, (left, right) in enumerate(itertools.zip_longest(first, second, fillvalue="")):
            if left != right:
                return f"request {number + 1:,}"
    return ""


def compared(workload: Path, until: str, controllers: str, folder: Path) -> str:
    """Run twice, with output folders whose names differ in length; return the differences."""
    outs = [folder / "one", folder / "the other one"]
    for out in outs:
        # Each run has its own process, like those of a user.
        process = multiprocessing.get_context("spawn").Process(
            target=run_once, args=(workload, until, controllers, out)
        )
        process.start()
        process.join()
        assert process.exitcode == 0, f"a run failed with {process.exitcode}"
    different = [name for name in FILES if (outs[0] / name).read_bytes() != (outs[1] / name).read_bytes()]
    difference = first_difference(*(out.with_suffix(".requests") for out in outs))
    return ", ".join([*different, *([difference] if difference else [])])


def main() -> None:
    """Run the pairs and append the table to the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", type=Path, default=HERE / "objects.yaml", help="the objects")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--until", default="24h")
    parser.add_argument("--controllers", default=MANAGER)
    parser.add_argument("--load", type=int, default=os.cpu_count() or 1, help="number of other busy processes")
    options = parser.parse_args()
    rows = []
    with other_load(options.load), tempfile.TemporaryDirectory() as name:
        for number in range(options.pairs):
            folder = Path(name) / str(number)
            folder.mkdir()
            difference = compared(options.workload, options.until, options.controllers, folder)
            count = sum(1 for _ in (folder / "one.requests").open(encoding="utf-8"))
            rows.append(f"| {number + 1} | {count:,} | {difference or 'nothing'} |")
            print(rows[-1], flush=True)
    load = f"{os.cpu_count()} cores, load average {os.getloadavg()[2]:.1f}"
    title = f"## {options.controllers}, {options.until} of {options.workload.name}, {platform.machine()}, {load}"
    lines = ["", title, "", "| pair | requests of a run | different |", "|---|---|---|", *rows]
    with RESULTS.open("a", encoding="utf-8") as results:
        results.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
