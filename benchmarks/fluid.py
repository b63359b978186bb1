"""Measure the cost of the fluid model per event, and whether idle hosts add to it; see README.md."""

from __future__ import annotations

import argparse
import gc
import random
import time
from pathlib import Path
from typing import NamedTuple

from batkube.execution.profiles.fluid_platform import FluidPlatform
from batkube.fluid.flow import Flow
from batkube.kernel.instants import Instant
from batkube.platforms.simgrid.network import parse_network
from recording import measured_commit, record

RESULTS = Path(__file__).resolve().parent / "results" / "fluid.md"
COLUMNS = ("hosts", "busy", "tasks", "at once", "events", "CPU s", "us per event")


class Case(NamedTuple):
    """Tasks on the first `busy` of `hosts` hosts of a cluster with a backbone."""

    hosts: int
    busy: int
    tasks: int


def cluster(hosts: int) -> bytes:
    """Return a platform of hosts on links of 125 MB/s, with a shared backbone of 2.25 GB/s."""
    return (
        '<?xml version="1.0"?><platform version="4.1"><zone id="z" routing="Full"><cluster id="c" prefix="h" suffix="" '
        f'radical="0-{hosts - 1}" speed="1Gf" bw="125MBps" lat="50us" bb_bw="2.25GBps" bb_lat="500us"/>'
        "</zone></platform>"
    ).encode()


def simulate(case: Case) -> tuple[int, float, int]:
    """Simulate a case; return the number of events, their CPU seconds, and the maximum number of simultaneous tasks."""
    rng = random.Random(0)
    flow = Flow()
    platform = FluidPlatform(parse_network(Path("cluster.xml"), cluster(case.hosts)), flow)
    free = [f"h{number}" for number in range(case.busy)]
    hosts_by_task: dict[object, list[str]] = {}
    started = events = most = 0
    now = Instant(0)
    gc.collect()
    start = time.process_time()
    while started < case.tasks or hosts_by_task:
        while started < case.tasks:
            size = rng.choice((1, 2, 4, 8))
            if size > len(free):
                break
            hosts = [free.pop() for _ in range(size)]
            sent = [0.0 if row == column else rng.uniform(1e6, 1e8) for row in range(size) for column in range(size)]
            task = platform.new_task(str(started), hosts, [rng.uniform(1e9, 1e10)] * size, sent)
            hosts_by_task[task] = hosts
            flow.begin(task, now)
            started += 1
            events += 1
        most = max(most, len(hosts_by_task))
        flow.update_rates(now)
        due = flow.due()
        assert due is not None
        now = due
        for done in flow.advance(now):
            free += hosts_by_task.pop(done)
            events += 1
    return events, time.process_time() - start, most


def main() -> None:
    """Run the cases, print their table and append it to the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the tasks, without recording the results")
    quick = parser.parse_args().quick
    tasks = 1_000 if quick else 10_000
    cases = [Case(128, 128, tasks), Case(1_024, 128, tasks), Case(8_192, 128, tasks), Case(128, 32, tasks)]
    lines = [f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
    for case in cases:
        events, cpu_s, most = simulate(case)
        cells = [f"{case.hosts:,}", str(case.busy), f"{case.tasks:,}", str(most), f"{events:,}", f"{cpu_s:.1f}"]
        lines.append(f"| {' | '.join([*cells, f'{1e6 * cpu_s / events:.0f}'])} |")
        print(lines[-1], flush=True)
    if quick:
        return
    record(RESULTS, measured_commit(), lines)


if __name__ == "__main__":
    main()
