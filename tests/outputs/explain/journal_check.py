"""Checks explanations against the journal alone, without any code of Batkube.

    python tests/outputs/explain/journal_check.py DIR MACHINES EXPLANATION.json …

For jobs that take whole machines. An explanation is the output of `batkube explain DIR JOB --json`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any


def machine_ids(text: str) -> set[int]:
    """Return the machines of an interval set such as `0-3 5`."""
    ids: set[int] = set()
    for part in text.split():
        first, _, last = part.partition("-")
        ids.update(range(int(first), int(last or first) + 1))
    return ids


class Occupancy:
    """Which job held which machines when, and which waited."""

    def __init__(self, journal: Path) -> None:
        #: The stays of each job: begin, end and machines.
        self.stays: dict[str, list[tuple[int, float, set[int]]]] = {}
        #: The waits of each job: begin and end.
        self.waits: dict[str, list[tuple[int, float]]] = {}
        held: dict[str, tuple[int, set[int]]] = {}
        waiting: dict[str, int] = {}
        for line in journal.read_text().splitlines():
            entry = json.loads(line)
            at, event, job = entry["t"], entry["event"], entry.get("job")
            if event in ("evict", "finish") and job in held:
                begin, machines = held.pop(job)
                self.stays.setdefault(job, []).append((begin, at, machines))
            if event in ("submit", "resubmit"):
                waiting[job] = at
            elif event == "bind":
                held[job] = at, machine_ids(entry["machines"])
                self.waits.setdefault(job, []).append((waiting.pop(job), at))
        for job, (begin, machines) in held.items():
            self.stays.setdefault(job, []).append((begin, float("inf"), machines))
        for job, begin in waiting.items():
            self.waits.setdefault(job, []).append((begin, float("inf")))

    def instants(self, begin: float, end: float) -> list[float]:
        """Return `begin` and every instant before `end` at which machines were taken or released."""
        changes = {at for stays in self.stays.values() for stay in stays for at in stay[:2] if begin < at < end}
        return sorted({begin, *changes})

    def machines_of(self, job: str, at: float) -> set[int]:
        """Return the machines that a job held after everything that happened at an instant."""
        return {number for begin, end, ids in self.stays.get(job, ()) if begin <= at < end for number in ids}

    def busy(self, at: float) -> int:
        """Return how many machines were held."""
        return sum(len(self.machines_of(job, at)) for job in self.stays)

    def is_waiting(self, job: str, at: float) -> bool:
        """Return whether a job waited after everything that happened at an instant."""
        return any(begin <= at < end for begin, end in self.waits.get(job, ()))


def check(occupancy: Occupancy, explanation: Mapping[str, Any], machines: int) -> Iterator[str]:
    """Yield what is wrong with the explanation of a job."""
    name = explanation["name"]
    actual = occupancy.waits[name]
    told = [(one["queued"], one["bound"]) for one in explanation["executions"]]
    if told != [(begin, end if end != float("inf") else None) for begin, end in actual]:
        yield f"{name}: waits {told}, but {actual}"
    for execution in explanation["executions"]:
        periods = execution["periods"]
        edges = [execution["queued"], *(period["end"] for period in periods)]
        if periods and (edges[-1] != execution["bound"] or [period["begin"] for period in periods] != edges[:-1]):
            yield f"{name}: the periods {edges} do not cover its wait"
        if not periods and execution["bound"] != execution["queued"]:
            yield f"{name}: its wait has no cause"
        for period in periods:
            yield from _check_period(occupancy, name, period, machines)
        yield from _check_release(occupancy, name, execution)
        for other in execution["overtaken_by"]:
            if not any(
                begin > execution["queued"] or begin == execution["queued"]
                for begin, end in occupancy.waits[other["name"]]
                if end == other["placed"] < execution["bound"]
            ):
                yield f"{name}: was not overtaken by {other['name']}"


def _check_period(occupancy: Occupancy, name: str, period: Mapping[str, Any], machines: int) -> Iterator[str]:
    begin, end = period["begin"], period["end"]
    free = [machines - occupancy.busy(at) for at in occupancy.instants(begin, end)]
    if max(free) != period["fitting"] or period["capacity"] != machines:
        yield f"{name}: {period['fitting']} machines were free at most, but {free}"
    cause, needed = period["cause"], period["needed"]
    if cause == "resources" and max(free) >= needed:
        yield f"{name}: {max(free)} machines were free, and it needed {needed}"
    if cause in ("reservation", "scheduler") and min(free) < needed:
        yield f"{name}: only {min(free)} machines were free, and it needed {needed}"
    if (cause == "order" or period["first"]) and not occupancy.is_waiting(period["first"], end - 1):
        yield f"{name}: {period['first']} did not wait just before {end}"
    named = 0
    for holder in period["holders"]:
        held = occupancy.machines_of(holder["name"], end - 1)
        named += len(held)
        if len(held) != holder["pods"]:
            yield f"{name}: {holder['name']} held {len(held)} machines before {end}, not {holder['pods']}"
        if not any(stay[0] == holder["since"] and stay[1] == holder["until"] for stay in _stays(occupancy, holder)):
            yield f"{name}: {holder['name']} did not hold machines from {holder['since']} to {holder['until']}"
    if cause == "resources" and named != occupancy.busy(end - 1):
        yield f"{name}: {named} machines are accounted for before {end}, of {occupancy.busy(end - 1)}"


def _stays(occupancy: Occupancy, holder: Mapping[str, Any]) -> Sequence[tuple[int, float, set[int]]]:
    return occupancy.stays.get(holder["name"], ())


def _check_release(occupancy: Occupancy, name: str, execution: Mapping[str, Any]) -> Iterator[str]:
    short = [period for period in execution["periods"] if period["fitting"] < period["needed"]]
    for other in execution["released_by"]:
        if not any(execution["queued"] < stay[1] <= execution["bound"] for stay in occupancy.stays[other]):
            yield f"{name}: {other} released no machine while it waited"
    if short and short[-1]["end"] == execution["bound"] and not execution["released_by"]:
        yield f"{name}: nobody released machines for it"


def main(folder: str, machines: str, *explanations: str) -> int:
    """Print what is wrong with these explanations, and return the exit code."""
    occupancy = Occupancy(Path(folder) / "journal.jsonl")
    errors = [
        error for path in explanations for error in check(occupancy, json.loads(Path(path).read_text()), int(machines))
    ]
    print("\n".join(errors) or f"{len(explanations)} explanations are true")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
