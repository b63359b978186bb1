"""Read Batsim's events file: one JSON object per line, in any order.

    {"timestamp": 10, "type": "machine_unavailable", "resources": "0-4 6"}

An unavailable machine keeps its running jobs and accepts no new ones (Batsim documentation, "Events"). In Kubernetes,
this is a cordoned node.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path

from batkube.kernel.instants import Instant
from batkube.kernel.intervals import parse_intervals
from batkube.workloads import fields as require
from batkube.workloads.fields import Place
from batkube.workloads.files import read_bytes
from batkube.workloads.timeline.entries import EventAction, EventEntry, EventNodes, EventSchedule

_NUMBER = re.compile("[0-9]+")
_MAX_DIGITS = 7
_ACTIONS = {"machine_unavailable": EventAction.CORDON, "machine_available": EventAction.UNCORDON}


def is_batsim_events_file(content: bytes) -> bool:
    """Return whether the first line is a JSON object with a timestamp, as in Batsim's events files."""
    first = next((line for line in content.splitlines() if line.strip()), b"")
    try:
        return isinstance(json.loads(first), dict) and b"timestamp" in first
    except (RecursionError, ValueError):
        return False


def read_batsim_events(path: Path) -> tuple[EventEntry, ...]:
    """Return the entries of the file in order of time."""
    entries = [_entry(place, fields) for place, fields in event_lines(path)]
    return tuple(sorted(entries, key=lambda entry: entry.schedule.at))


def machine_ids(place: Place, text: str) -> int:
    """Parse machine ids such as `0-4 6` (Batsim: interval set) into a bit set."""
    if max(map(len, _NUMBER.findall(text)), default=0) > _MAX_DIGITS:
        place.reject(
            f"is {text[:40]!r}, which contains a machine id of more than {_MAX_DIGITS} digits", "write ids as in 0-4 6"
        )
    try:
        return parse_intervals(text)
    except ValueError as error:
        place.reject(str(error))


def event_lines(path: Path) -> Iterator[tuple[Place, Mapping[str, object]]]:
    """Yield the objects of the file, each with its place. Raises InputError."""
    for number, line in enumerate(read_bytes(path).splitlines(), 1):
        if not line.strip():
            continue
        place = Place(path) / f"line {number}"
        try:
            value = json.loads(line, parse_float=Decimal)
        except (ValueError, RecursionError):
            place.reject("is not JSON", "write one object per line")
        yield place, require.mapping(place, value)


def _entry(place: Place, fields: Mapping[str, object]) -> EventEntry:
    kind = require.string(place / "type", fields.get("type"))
    if kind not in _ACTIONS:
        (place / "type").reject(f"is {kind!r}, which is not supported", f"write one of {', '.join(_ACTIONS)}")
    at = require.duration(place / "timestamp", fields.get("timestamp"))
    ids = machine_ids(place / "resources", require.string(place / "resources", fields.get("resources")))
    return EventEntry(place, _ACTIONS[kind], EventSchedule(Instant(at)), EventNodes(ids=ids))
