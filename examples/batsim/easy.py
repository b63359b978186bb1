r"""EASY backfilling over Batsim's protocol: a scheduler in one file, for Batsim and for Batkube.

    batkube run --workload jobs.json --platform 32x1 --out out \
        --scheduler "batsim:python examples/batsim/easy.py {endpoint}"

or with a Batsim, which connects to the scheduler:

    python examples/batsim/easy.py tcp://127.0.0.1:28000 &
    batkube batsim -p platform.xml -w jobs.json -e out -s tcp://127.0.0.1:28000

Jobs start from the head of the queue while they fit. The first one that does not fit gets a reservation: the machines
with the lowest numbers that are free when enough running jobs have reached their walltimes. A later job may start
before it if it ends by then, or does not use these machines. The program needs pyzmq and nothing of Batkube.
"""

import json
import math
import sys
from dataclasses import dataclass
from typing import Any

import zmq


@dataclass
class Job:
    id: str
    size: int
    walltime: float


@dataclass
class Run:
    end: float
    machines: set[int]


class Easy:
    def __init__(self) -> None:
        self._machines: set[int] = set()
        self._down: set[int] = set()
        self._queue: list[Job] = []
        self._running: dict[str, Run] = {}

    def reply(self, message: dict[str, Any]) -> dict[str, Any]:
        """Handle the events of a message, and return the decisions."""
        now = message["now"]
        decisions: list[tuple[str, dict[str, str]]] = []
        for event in message["events"]:
            decisions += self._handle(event["type"], event["data"])
        for job, machines in self._starts(now):
            decisions.append(("EXECUTE_JOB", {"job_id": job.id, "alloc": " ".join(map(str, sorted(machines)))}))
        return {"now": now, "events": [{"timestamp": now, "type": kind, "data": data} for kind, data in decisions]}

    def _handle(self, kind: str, data: dict[str, Any]) -> list[tuple[str, dict[str, str]]]:
        if kind == "SIMULATION_BEGINS":
            self._machines = {machine["id"] for machine in data["compute_resources"]}
        elif kind == "JOB_SUBMITTED":
            job = Job(data["job_id"], data["job"]["res"], data["job"].get("walltime", math.inf))
            if job.size > len(self._machines):
                return [("REJECT_JOB", {"job_id": job.id})]
            self._queue.append(job)
        elif kind == "JOB_COMPLETED":
            del self._running[data["job_id"]]
        elif kind == "NOTIFY" and data["type"] == "event_machine_unavailable":
            self._down |= numbers(data["resources"])
        elif kind == "NOTIFY" and data["type"] == "event_machine_available":
            self._down -= numbers(data["resources"])
        return []

    def _starts(self, now: float) -> list[tuple[Job, set[int]]]:
        """Return the jobs to start: the head of the queue while it fits, then jobs that do not delay the next one."""
        starts: list[tuple[Job, set[int]]] = []

        def start(job: Job, machines: set[int]) -> None:
            self._queue.remove(job)
            self._running[job.id] = Run(now + job.walltime, machines)
            starts.append((job, machines))

        while self._queue and (machines := lowest(self._free(), self._queue[0].size)):
            start(self._queue[0], machines)
        if self._queue:
            head, *others = self._queue
            shadow, reserved = self._reservation(head)
            for job in others:
                usable = self._free() if now + job.walltime <= shadow else self._free() - reserved
                if machines := lowest(usable, job.size):
                    start(job, machines)
        return starts

    def _free(self) -> set[int]:
        return self._machines - self._down - {machine for run in self._running.values() for machine in run.machines}

    def _reservation(self, head: Job) -> tuple[float, set[int]]:
        """Return the latest start of the head of the queue, and its machines."""
        free = self._free()
        for end in sorted({run.end for run in self._running.values()}):
            free |= {machine for run in self._running.values() if run.end == end for machine in run.machines}
            if machines := lowest(free - self._down, head.size):
                return end, machines
        return math.inf, set()


def lowest(machines: set[int], count: int) -> set[int]:
    """Return the machines with the lowest numbers; none if there are too few."""
    return set(sorted(machines)[:count]) if count <= len(machines) else set()


def numbers(intervals: str) -> set[int]:
    """Return the numbers of `0-3 7`."""
    bounds = [part.partition("-") for part in intervals.split()]
    return {number for first, _, last in bounds for number in range(int(first), int(last or first) + 1)}


def main() -> None:
    socket = zmq.Context().socket(zmq.REP)
    socket.bind(sys.argv[1])
    easy = Easy()
    is_over = False
    while not is_over:
        message = json.loads(socket.recv())
        socket.send_string(json.dumps(easy.reply(message)))
        is_over = any(event["type"] == "SIMULATION_ENDS" for event in message["events"])


if __name__ == "__main__":
    main()
