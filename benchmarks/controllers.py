"""Whether runs with the real kube-controller-manager repeat to the request while every core has other work; see
README.md."""

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
#: What is compared of a run, beside the requests that its programs made.
FILES = ("jobs.csv", "pods.csv", "schedule.csv", "machine_states.csv", "journal.jsonl", "fidelity.json")
MANAGER = "kube-controller-manager@1.34.4"


def run_once(workload: Path, until: str, controllers: str, out: Path) -> None:
    """Run into `out`, and write every request of its programs beside it, in the order in which they were answered."""
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
    """Return where the requests of two runs part; "" if nowhere."""
    with one.open(encoding="utf-8") as first, other.open(encoding="utf-8") as second:
        for number, (left, right) in enumerate(itertools.zip_longest(first, second, fillvalue="")):
            if left != right:
                return f"request {number + 1:,}"
    return ""


def compared(workload: Path, until: str, controllers: str, folder: Path) -> str:
    """Run twice, into folders whose names differ in length; return what differs."""
    outs = [folder / "one", folder / "the other one"]
    for out in outs:
        # Each in a process of its own, as a user's runs are.
        process = multiprocessing.get_context("spawn").Process(
            target=run_once, args=(workload, until, controllers, out)
        )
        process.start()
        process.join()
        assert process.exitcode == 0, f"a run failed with {process.exitcode}"
    different = [name for name in FILES if (outs[0] / name).read_bytes() != (outs[1] / name).read_bytes()]
    parted = first_difference(*(out.with_suffix(".requests") for out in outs))
    return ", ".join([*different, *([parted] if parted else [])])


def main() -> None:
    """Run the pairs and append what came out to the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", type=Path, default=HERE / "objects.yaml", help="objects to run")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--until", default="24h")
    parser.add_argument("--controllers", default=MANAGER)
    parser.add_argument("--load", type=int, default=os.cpu_count() or 1, help="so many processes busy meanwhile")
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
