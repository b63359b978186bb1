"""External events of a file, as schedulers are told of them.

    {"timestamp": 10, "type": "machine_unavailable", "resources": "0-4 6"}

Imitated: Batsim 4.2.1, src/events.cpp: events of one date come by type, machines that return before those that leave.
"""

from __future__ import annotations

from pathlib import Path

from batkube.batsim.protocol.messages import Notify
from batkube.batsim.server.batsim_server import MACHINE_AVAILABLE, MACHINE_UNAVAILABLE
from batkube.kernel.instants import Instant
from batkube.workloads import fields as take
from batkube.workloads.events.batsim_events import event_lines, machine_ids

_KINDS = {"machine_available": MACHINE_AVAILABLE, "machine_unavailable": MACHINE_UNAVAILABLE}
_ORDER = [MACHINE_AVAILABLE, MACHINE_UNAVAILABLE]


def read_external_events(path: Path, *, forwards_unknown: bool) -> list[Notify]:
    """Return the events of a file in order; the machines of those that concern some are a set of ids."""
    if path.is_file() and path.stat().st_size == 0:
        return []  # a trace without a failure is a trace, too
    events = []
    for place, members in event_lines(path):
        kind = take.string(place / "type", members.get("type"))
        at = Instant(take.duration(place / "timestamp", members.get("timestamp")))
        if kind in _KINDS:
            ids = machine_ids(place / "resources", take.string(place / "resources", members.get("resources")))
            events.append(Notify(at=at, kind=_KINDS[kind], more={"resources": ids}))
        elif forwards_unknown:
            more = {key: value for key, value in members.items() if key != "type"}
            events.append(Notify(at=at, kind=kind, more=more))
        else:
            (place / "type").reject(
                f"is {kind!r}, which Batsim does not know",
                f"one of {', '.join(_KINDS)}; or --forward-unknown-events, and the scheduler is told of it",
            )
    return sorted(events, key=lambda event: (event.at, _rank(event.kind)))


def _rank(kind: str) -> int:
    return _ORDER.index(kind) if kind in _ORDER else len(_ORDER)
