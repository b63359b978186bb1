"""Measure delay jobs over Batsim's protocol, with `batkube batsim` and `batkube run`; see README.md."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import NamedTuple

from batkube.batsim.protocol.zmq_sockets import free_endpoint
from measuring import measure
from recording import measured_commit, record

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "batsim.md"
MACHINES = 128
LENGTH_S = 170
#: The mean number of busy machines if jobs are submitted one by one.
BUSY = 115
LIMIT_S = 900.0
COLUMNS = (
    "jobs",
    "come",
    "with",
    "messages",
    "CPU s",
    "µs per job",
    "peak MiB",
    "Batsim 4.2.1, recorded: CPU s",
    "peak MiB",
)
#: Batsim 4.2.1 with SimGrid 3.32, measured once on two cores at a load of five: CPU seconds, peak memory in KiB.
RECORDED = {
    ("burst", 1_000): (0.24, 43_720),
    ("burst", 10_000): (2.40, 81_152),
    ("burst", 100_000): (24.91, 548_680),
    ("spaced", 1_000): (0.51, 43_860),
    ("spaced", 10_000): (5.27, 83_124),
    ("spaced", 100_000): (47.18, 511_728),
}
#: First come, first served for jobs of one machine each, in constant time; writes the number of messages to a file.
SCHEDULER = """
import collections, json, sys, zmq
socket = zmq.Context().socket(zmq.REP)
socket.bind(sys.argv[1])
free, waiting, where, messages, is_over = collections.deque(range(int(sys.argv[2]))), collections.deque(), {}, 0, False
while not is_over:
    message = json.loads(socket.recv())
    messages += 1
    decisions = []
    for event in message["events"]:
        kind, data = event["type"], event["data"]
        if kind == "JOB_SUBMITTED":
            waiting.append(data["job_id"])
        elif kind == "JOB_COMPLETED":
            free.append(where.pop(data["job_id"]))
        is_over = is_over or kind == "SIMULATION_ENDS"
    while free and waiting:
        job = waiting.popleft()
        where[job] = free.popleft()
        data = {"job_id": job, "alloc": str(where[job])}
        decisions.append({"timestamp": message["now"], "type": "EXECUTE_JOB", "data": data})
    socket.send_string(json.dumps({"now": message["now"], "events": decisions}))
open(sys.argv[3], "w").write(str(messages))
"""


class Case(NamedTuple):
    """A number of jobs that are submitted all at once or one by one."""

    come: str
    jobs: int


def write_inputs(case: Case, folder: Path) -> None:
    """Write the platform, the workload and the scheduler of a case."""
    interval_s = 0.0 if case.come == "burst" else LENGTH_S / BUSY
    jobs = [
        {"id": str(number), "subtime": round(number * interval_s, 3), "res": 1, "profile": "delay"}
        for number in range(case.jobs)
    ]
    profiles = {"delay": {"type": "delay", "delay": LENGTH_S}}
    (folder / "jobs.json").write_text(json.dumps({"nb_res": MACHINES, "jobs": jobs, "profiles": profiles}))
    hosts = "".join(f'<host id="host{n:03}" speed="1Gf" coordinates="0 0 0"/>' for n in range(MACHINES))
    (folder / "platform.xml").write_text(
        '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">'
        f'<zone id="z" routing="Vivaldi"><host id="master_host" speed="1Gf" coordinates="0 0 0"/>{hosts}</zone>'
        "</platform>"
    )
    (folder / "scheduler.py").write_text(SCHEDULER)


@contextmanager
def scheduler(folder: Path) -> Iterator[str]:
    """Run the scheduler in its own process, which is not measured; yield its endpoint."""
    endpoint = free_endpoint()
    command = [sys.executable, str(folder / "scheduler.py"), endpoint, str(MACHINES), str(folder / "messages")]
    with subprocess.Popen(command) as process:
        try:
            yield endpoint
            process.wait(LIMIT_S)
        finally:
            process.kill()


def batsim_arguments(endpoint: str) -> list[str]:
    """Return the arguments of `batkube batsim` with a scheduler."""
    return ["batsim", "-q", "--disable-machine-state-tracing", "-s", endpoint, "--export", "out"]


def run_arguments(endpoint: str) -> list[str]:
    """Return the arguments of `batkube run` with a scheduler."""
    return ["run", "--quiet", "--scheduler", f"batsim:{endpoint}", "--out", "run"]


WAYS = {"batkube batsim": batsim_arguments, "batkube run": run_arguments}


def row(case: Case, way: str) -> str:
    """Measure a case and return its row of the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(case, folder)
        with chdir(folder), scheduler(folder) as endpoint:
            arguments = [*WAYS[way](endpoint), "--platform", "platform.xml", "--workload", "jobs.json"]
            cost = measure([sys.executable, "-m", "batkube", *arguments], LIMIT_S)
        messages = int((folder / "messages").read_text())
    cells = [f"{case.jobs:,}", "at once" if case.come == "burst" else "one by one", f"`{way}`", f"{messages:,}"]
    cells += [f"{cost.cpu_s:.1f}", f"{1e6 * cost.cpu_s / case.jobs:.0f}", f"{cost.peak_memory_bytes / 2**20:.0f}"]
    cpu_s, peak_kib = RECORDED[case]
    return f"| {' | '.join([*cells, f'{cpu_s:.1f}', f'{peak_kib / 1024:.0f}'])} |"


def main() -> None:
    """Run the cases, print their table and append it to the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="1,000 jobs, without recording the results")
    quick = parser.parse_args().quick
    sizes = (1_000,) if quick else (10_000, 100_000)
    subject = measured_commit()
    lines = [f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
    for come in ("burst", "spaced"):
        for jobs in sizes:
            for way in WAYS:
                lines.append(row(Case(come, jobs), way))
                print(lines[-1], flush=True)
    if not quick:
        record(RESULTS, subject, lines)


if __name__ == "__main__":
    main()
