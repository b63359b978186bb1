"""Measure what a live page costs a run: without a page, with a page that nobody has open, and with an open one.

The open page is a client that asks for news as the browser does, in a process of its own. See README.md.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from batkube.page.live.live_page import LivePage
from batkube.scenarios.keys import make_scenario
from batkube.simulation.assembly import Simulation
from batkube.simulation.run import execute
from batkube.timing.run_clock import PausableClock
from recording import measured_commit, record
from traces import delay_jobs

RESULTS = Path(__file__).resolve().parent / "results" / "live_page.md"
MODES = ("no page", "page, not open", "open page")
COLUMNS = ("jobs", "machines", "scheduler", *(f"{mode}: CPU s" for mode in MODES), "open page costs")
#: As page/src/live.ts.
INTERVAL_S = 0.25


def main() -> None:
    """Measure all modes in turn, several times, and append a table to the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--machines", type=int, default=128)
    parser.add_argument("--scheduler", default="policy:easy")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dry-run", action="store_true", help="do not write the results")
    parser.add_argument("--run", nargs=2, metavar=("MODE", "FILE"), help=argparse.SUPPRESS)
    parser.add_argument("--poll", metavar="URL", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.poll:
        poll(options.poll)
        return
    if options.run:
        mode, workload = options.run
        print(run_once(mode, Path(workload), options.machines, options.scheduler))
        return
    subject = measured_commit()
    with tempfile.TemporaryDirectory() as folder:
        workload = Path(folder) / "w.json"
        delay_jobs(workload, options.jobs, options.machines)
        costs: dict[str, list[float]] = {mode: [] for mode in MODES}
        for _ in range(options.rounds):
            for mode in MODES:
                costs[mode].append(in_process(mode, workload, options))
    least = [min(costs[mode]) for mode in MODES]
    share = f"{100 * (least[2] / least[0] - 1):+.0f} %"
    cells = [f"{options.jobs:,}", str(options.machines), options.scheduler, *(f"{cost:.2f}" for cost in least), share]
    table = ["| " + " | ".join(row) + " |" for row in (COLUMNS, ["---"] * len(COLUMNS), cells)]
    print("\n".join(table))
    if not options.dry_run:
        record(RESULTS, subject, table)


def in_process(mode: str, workload: Path, options: argparse.Namespace) -> float:
    """Return the CPU seconds of a run in a process of its own."""
    command = [sys.executable, __file__, "--run", mode, str(workload), "--machines", str(options.machines)]
    command += ["--scheduler", options.scheduler]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def run_once(mode: str, workload: Path, machines: int, scheduler: str) -> float:
    """Execute the run in this process, and return its CPU seconds."""
    keys = {"workload": [str(workload)], "platform": f"{machines}x1", "scheduler": scheduler}
    scenario = make_scenario(keys, "benchmark")
    with contextlib.ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        clock = None if mode == MODES[0] else PausableClock()

        def show(simulation: Simulation) -> None:
            if clock is None:
                return
            page = stack.enter_context(LivePage(simulation.world, "a run", "in progress", clock=clock))
            if mode == MODES[2]:
                stack.enter_context(open_page(page.url))

        before_s = time.process_time()
        execute(scenario, Path(folder) / "out", on_assembled=show, run_clock=clock)
        return time.process_time() - before_s


@contextlib.contextmanager
def open_page(url: str) -> Iterator[None]:
    """Run a client of the page in a process of its own."""
    process = subprocess.Popen([sys.executable, __file__, "--poll", url], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()  # after its first request
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def poll(url: str) -> None:
    """Ask for news forever, as a page does."""
    parts, cursor = urlsplit(url), ""
    connection = http.client.HTTPConnection(parts.netloc)
    while True:
        connection.request("GET", f"{parts.path}deltas?since={cursor}")
        answer = json.loads(connection.getresponse().read())
        if not cursor:
            print("open", flush=True)
        cursor = answer["cursor"]
        time.sleep(INTERVAL_S)


if __name__ == "__main__":
    main()
