"""Simulations by our Batsim or the real one, with a scheduler in this process."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.batsim.platforms import silent_platform
from tests.batsim.real_batsim import LOG, run_real_batsim
from tests.batsim.recordings import arguments_of, read_table

from batkube.batsim.simulator.run import run_batsim
from batkube.kernel.errors import RunFailed

OURS, REAL = "batkube batsim", "the batsim on the PATH"
WATTS = '<prop id="wattage_per_state" value="30:30:100"/>'
TASK = {"type": "parallel_homogeneous", "cpu": 5e9, "com": 0}
DELAY = {"type": "delay", "delay": 3}

Decision = tuple[str, Mapping[str, Any]]
"""The type and the data of an event of the scheduler."""

Reaction = Callable[[str, Mapping[str, Any]], Sequence[Decision]]
"""Returns the decisions of a scheduler for an event with this type and data."""


class ReactiveScheduler:
    """A scheduler that handles each event with a function."""

    def __init__(self, react: Reaction) -> None:
        self._react = react
        self.events: list[tuple[float, str, Mapping[str, Any]]] = []

    def request(self, text: str) -> bytes:
        """Return the reply to a message."""
        message = json.loads(text)
        now, decisions = message["now"], []
        for event in message["events"]:
            self.events.append((event["timestamp"], event["type"], event["data"]))
            decisions += self._react(event["type"], event["data"])
        events = [{"timestamp": now, "type": kind, "data": data} for kind, data in decisions]
        return json.dumps({"now": now, "events": events}).encode()


def on_first_machines(kind: str, data: Mapping[str, Any]) -> list[Decision]:
    """Execute each job on the first machines."""
    if kind != "JOB_SUBMITTED":
        return []
    return [("EXECUTE_JOB", {"job_id": data["job_id"], "alloc": f"0-{data['job']['res'] - 1}"})]


def and_call(at: float) -> Callable[[str, Mapping[str, Any]], list[Decision]]:
    """Execute jobs on the first machines, and request a call at a date after each."""

    def react(kind: str, data: Mapping[str, Any]) -> list[Decision]:
        decisions = on_first_machines(kind, data)
        return [*decisions, ("CALL_ME_LATER", {"timestamp": at})] if decisions else []

    return react


def kinds_at(events: Sequence[tuple[float, str, Mapping[str, Any]]], date: float) -> list[str]:
    """Return the types of the events at a date, except for the end of the simulation."""
    return [kind for at, kind, _ in events if at == date and kind != "SIMULATION_ENDS"]


class EitherBatsim:
    """Runs simulations with our Batsim or the real one."""

    def __init__(self, folder: Path, program: str) -> None:
        self._folder = folder
        self._program = program
        self.platform = silent_platform(folder, 4)
        #: The message if the simulation was aborted: that of our error, or the log of the real Batsim.
        self.failure = ""

    def __call__(
        self,
        jobs: Sequence[Mapping[str, Any]],
        profiles: Mapping[str, Mapping[str, Any]],
        *options: str,
        react: Reaction = on_first_machines,
    ) -> list[tuple[float, str, Mapping[str, Any]]]:
        """Simulate, and return the events that the scheduler has received: date, type, data."""
        entries = [{"id": str(number), "subtime": 0, "res": 1, **job} for number, job in enumerate(jobs)]
        workload = self._folder / "w.json"
        workload.write_text(json.dumps({"nb_res": 4, "jobs": entries, "profiles": profiles}))
        arguments = ["-p", str(self.platform), "-w", str(workload), *options]
        scheduler = ReactiveScheduler(react)
        if self._program == REAL:
            if run_real_batsim(arguments, self._folder, scheduler):
                self.failure = (self._folder / LOG).read_text()
        else:
            try:
                run_batsim(
                    dataclasses.replace(arguments_of(arguments), prefix=str(self._folder / "out")), scheduler=scheduler
                )
            except RunFailed as error:
                self.failure = str(error)
        return scheduler.events

    @property
    def joules(self) -> str:
        """The energy of all machines in the schedule's file."""
        header, row = read_table(self._folder / "out_schedule.csv")
        return row[header.index("consumed_joules")]

    @property
    def rows(self) -> list[dict[str, str]]:
        """The rows of the jobs' file."""
        return job_rows(self._folder)


def job_rows(folder: Path) -> list[dict[str, str]]:
    """Return the rows of the file `out_jobs.csv`."""
    header, *rows = read_table(folder / "out_jobs.csv")
    return [dict(zip(header, row, strict=True)) for row in rows]
