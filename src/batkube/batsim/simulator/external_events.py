"""Reads files of external events, for `batkube batsim`.

    {"timestamp": 10, "type": "machine_unavailable", "resources": "0-4 6"}

Imitated: Batsim 4.2.1, src/events.cpp. Events of one date are sorted by type: machines become available before others
become unavailable.
"""

from __future__ import annotations

from pathlib import Path

from batkube.batsim.protocol.messages import Notify
from batkube.batsim.server.batsim_server import MACHINE_AVAILABLE, MACHINE_UNAVAILABLE
from batkube.kernel.instants import Instant
from batkube.workloads import fields
from batkube.workloads.timeline.batsim_events import event_lines, machine_ids

_KINDS = {"machine_available": MACHINE_AVAILABLE, "machine_unavailable": MACHINE_UNAVAILABLE}
_ORDER = [MACHINE_AVAILABLE, MACHINE_UNAVAILABLE]


def read_external_events(path: Path, *, forwards_unknown: bool) -> list[Notify]:
    """Return the events of a file in order; the `resources` of machine events are sets of ids. Raise InputError."""
    if path.is_file() and path.stat().st_size == 0:
        return []
    events = []
    for place, members in event_lines(path):
        kind = fields.string(place / "type", members.get("type"))
        at = Instant(fields.duration(place / "timestamp", members.get("timestamp")))
        if kind in _KINDS:
            ids = machine_ids(place / "resources", fields.string(place / "resources", members.get("resources")))
            events.append(Notify(at=at, kind=_KINDS[kind], more={"resources": ids}))
        elif forwards_unknown:
            more = {key: value for key, value in members.items() if key != "type"}
            events.append(Notify(at=at, kind=kind, more=more))
        else:
            (place / "type").reject(
                f"{kind!r} is not an event type of Batsim",
                f"use {' or '.join(_KINDS)}, or forward the event to the scheduler with --forward-unknown-events",
            )
    return sorted(events, key=lambda event: (event.at, _rank(event.kind)))


def _rank(kind: str) -> int:
    return _ORDER.index(kind) if kind in _ORDER else len(_ORDER)
