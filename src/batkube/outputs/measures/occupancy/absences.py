"""When machines were of no use to anybody: down or cordoned, as the journal tells, or without a node.

machine_states.csv only counts them. A journal can be long, so it is read only where that count is not always zero.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from batkube.outputs.measures.occupancy.stays import horizon_s
from batkube.outputs.measures.run_data.run_files import RunFiles

#: Deeds of a timeline of events, by what they do to a node.
_END_EVENTS, _BEGIN_EVENTS = frozenset({"return", "uncordon", "add"}), frozenset({"fail", "cordon", "drain", "remove"})


class Absence(NamedTuple):
    """A stretch of time, in seconds, in which a machine takes no work."""

    machine: int
    start: float
    end: float


def absences_of(results: RunFiles) -> list[Absence]:
    """Return the absences of all machines, as far as the run's files tell; those of one machine do not overlap."""
    end = float(results.manifest.get("end_s") or horizon_s(results.jobs))
    merged: list[Absence] = []
    for one in sorted([*_reported_absences(results, end), *_node_gaps(results, end)]):
        if merged and merged[-1].machine == one.machine and one.start <= merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(one.end, merged[-1].end))
        else:
            merged.append(one)
    return merged


def _node_gaps(results: RunFiles, end_s: float) -> Iterator[Absence]:
    for machine, spans in results.presence_s.items():
        edges = [0.0, *(edge for span in spans for edge in span), end_s]
        for start, end in zip(edges[::2], edges[1::2], strict=True):
            if start < end:
                yield Absence(machine, start, end)


def _reported_absences(results: RunFiles, end: float) -> list[Absence]:
    """Return what the journal tells."""
    if not _has_absences(results):
        return []
    number_of = {name: number for number, name in enumerate(results.machine_names)}
    absences: list[Absence] = []
    #: Why each machine is away, and since when: a failed one may be cordoned as well.
    away: dict[int, dict[str, float]] = {}
    for at, deed, node in _node_events(results):
        machine = number_of.get(node)
        if machine is None:
            continue
        reasons = away.setdefault(machine, {})
        if deed == "add" and not reasons and not any(one.machine == machine for one in absences):
            absences.append(Absence(machine, 0.0, at))  # not there until now
        since = min(reasons.values(), default=at)
        _update_reasons(reasons, deed, at)
        if not reasons and since < at:
            absences.append(Absence(machine, since, at))
    left = [Absence(machine, min(reasons.values()), end) for machine, reasons in away.items() if reasons]
    return [*absences, *left]


def _has_absences(results: RunFiles) -> bool:
    """Say whether any machine was ever of no use; where the counts were left out, whether any may have been."""
    if results.left_out("machine_states.csv"):
        scenario = results.manifest.get("scenario") or {}
        return bool(scenario.get("events") or scenario.get("attach"))
    states = results.machine_states
    return "nb_unavailable" in states and bool((states["nb_unavailable"] > 0).any())


def _update_reasons(reasons: dict[str, float], deed: str, at: float) -> None:
    """Note that a machine is away for another reason, or for one less."""
    if deed in _BEGIN_EVENTS:
        reasons.setdefault("cordon" if deed == "drain" else deed, at)
    elif deed == "uncordon":
        reasons.pop("cordon", None)
    elif deed == "return":
        reasons.pop("fail", None)
    else:
        reasons.clear()  # a machine that is added is a new node


def _node_events(results: RunFiles) -> Iterator[tuple[float, str, str]]:
    """Yield what happened to nodes: when, what, to which."""
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
