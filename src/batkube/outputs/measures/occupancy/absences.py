"""Absences of machines: periods in which they failed or were cordoned according to the journal, or had no node.

machine_states.csv only has the number of absent machines. A journal can be long, so it is read only if that number is
ever above zero.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from batkube.outputs.measures.occupancy.stays import horizon_s
from batkube.outputs.measures.run_data.run_files import RunFiles

#: Actions of a timeline of events that end an absence of a node, and that begin one.
_END_EVENTS, _BEGIN_EVENTS = frozenset({"return", "uncordon", "add"}), frozenset({"fail", "cordon", "drain", "remove"})


class Absence(NamedTuple):
    """A period, in seconds, in which a machine is not available."""

    machine: int
    start: float
    end: float


def absences_of(results: RunFiles) -> list[Absence]:
    """Return the absences of all machines; those of one machine do not overlap."""
    end = float(results.manifest.get("end_s") or horizon_s(results.jobs))
    merged: list[Absence] = []
    for absence in sorted([*_reported_absences(results, end), *_node_gaps(results, end)]):
        if merged and merged[-1].machine == absence.machine and absence.start <= merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(absence.end, merged[-1].end))
        else:
            merged.append(absence)
    return merged


def _node_gaps(results: RunFiles, end_s: float) -> Iterator[Absence]:
    for machine, spans in results.presence_s.items():
        edges = [0.0, *(edge for span in spans for edge in span), end_s]
        for start, end in zip(edges[::2], edges[1::2], strict=True):
            if start < end:
                yield Absence(machine, start, end)


def _reported_absences(results: RunFiles, end: float) -> list[Absence]:
    """Return the absences according to the journal."""
    if not _has_absences(results):
        return []
    number_of = {name: number for number, name in enumerate(results.machine_names)}
    absences: list[Absence] = []
    #: Reasons why each machine is absent, and since when: a failed one may also be cordoned.
    absent: dict[int, dict[str, float]] = {}
    for at, action, node in _node_events(results):
        machine = number_of.get(node)
        if machine is None:
            continue
        reasons = absent.setdefault(machine, {})
        if action == "add" and not reasons and not any(absence.machine == machine for absence in absences):
            absences.append(Absence(machine, 0.0, at))  # the node did not exist before
        since = min(reasons.values(), default=at)
        _update_reasons(reasons, action, at)
        if not reasons and since < at:
            absences.append(Absence(machine, since, at))
    until_end = [Absence(machine, min(reasons.values()), end) for machine, reasons in absent.items() if reasons]
    return [*absences, *until_end]


def _has_absences(results: RunFiles) -> bool:
    """Return whether any machine was ever absent; if machine_states.csv was left out, whether one may have been."""
    if results.left_out("machine_states.csv"):
        scenario = results.manifest.get("scenario") or {}
        return bool(scenario.get("events") or scenario.get("attach"))
    states = results.machine_states
    return "nb_unavailable" in states and bool((states["nb_unavailable"] > 0).any())


def _update_reasons(reasons: dict[str, float], action: str, at: float) -> None:
    """Add or remove a reason for a machine's absence."""
    if action in _BEGIN_EVENTS:
        reasons.setdefault("cordon" if action == "drain" else action, at)
    elif action == "uncordon":
        reasons.pop("cordon", None)
    elif action == "return":
        reasons.pop("fail", None)
    else:
        reasons.clear()  # a machine that is added is a new node


def _node_events(results: RunFiles) -> Iterator[tuple[float, str, str]]:
    """Yield the events of nodes in the journal: time, action, node."""
    path = results.file("journal.jsonl")
    if not path.is_file():
        return
    with path.open(encoding="utf-8") as file:
        for line in file:
            if '"nodes":' in line:
                entry = json.loads(line)
                if entry["event"] in _BEGIN_EVENTS | _END_EVENTS:
                    for node in entry["nodes"].split(" "):
                        yield entry["t"] / 1e9, entry["event"], node
