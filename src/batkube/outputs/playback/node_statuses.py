"""When nodes were failed, cordoned or asleep, from the journal and, with --energy, pstate_changes.csv.

The journal has what the events of a run did to nodes, and which nodes clients of the API cordoned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from batkube.kernel.errors import InputError
from batkube.kernel.instants import Instant
from batkube.kernel.intervals import members, parse_intervals
from batkube.outputs.playback.cells import Cells, at_resolution
from batkube.outputs.playback.model import JournalEntry, NodePeriod, NodeStatus, StatusChange

#: What an event of the journal sets and unsets.
_BEGIN = {"fail": NodeStatus.FAILED, "cordon": NodeStatus.CORDONED, "drain": NodeStatus.CORDONED}
_END = {"return": NodeStatus.FAILED, "uncordon": NodeStatus.CORDONED}
#: The power states that stand for transitions (Batsim: output-energy.rst).
_SWITCHED_ON, _SWITCHED_OFF = -1, -2
_SWITCHING = {_SWITCHED_ON: NodeStatus.SWITCHING_ON, _SWITCHED_OFF: NodeStatus.SWITCHING_OFF}
#: The order in which conditions count if a node has several.
_PRECEDENCE = (
    NodeStatus.FAILED,
    NodeStatus.SWITCHING_OFF,
    NodeStatus.ASLEEP,
    NodeStatus.SWITCHING_ON,
    NodeStatus.CORDONED,
    NodeStatus.READY,
)

NodeChange = tuple[Instant, str, NodeStatus, bool]
"""An instant, a node, a condition, and whether the condition begins or ends then."""


@dataclass(slots=True)
class _NodeConditions:
    """The conditions of a node, and the changes of its status so far."""

    present: set[NodeStatus] = field(default_factory=set)
    changes: list[StatusChange] = field(default_factory=list)

    def record(self, at: Instant) -> None:
        """Record the status from `at` on; the last of several at the same instant counts."""
        status = next(status for status in _PRECEDENCE if status in self.present or status is NodeStatus.READY)
        if self.changes and self.changes[-1].at == at:
            self.changes.pop()
        if not self.changes or self.changes[-1].status is not status:
            self.changes.append(StatusChange(at, status))


def statuses_of(periods: Sequence[NodePeriod], changes: Iterable[NodeChange]) -> tuple[StatusChange, ...]:
    """Return the statuses of a node, given when it existed and the changes of its conditions in order of time."""
    conditions = _NodeConditions()
    remaining = list(changes)
    for period in periods:
        # A node that is created again has none of its earlier conditions.
        conditions.present.clear()
        conditions.record(period.begin)
        for at, _, status, begins in remaining:
            if period.contains(at):
                (conditions.present.add if begins else conditions.present.discard)(status)
                conditions.record(at)
    return tuple(conditions.changes)


def journal_changes(entries: Iterable[JournalEntry]) -> Iterator[NodeChange]:
    """Yield the changes that events of the run made."""
    for entry in entries:
        status = _BEGIN.get(entry.event) or _END.get(entry.event)
        names = entry.fields.get("nodes")
        if status is not None and isinstance(names, str):
            for name in names.split(" "):
                yield at_resolution(entry.at), name, status, entry.event in _BEGIN


def power_changes(cells: Cells, entries: Iterable[JournalEntry], names: Mapping[int, str]) -> Iterator[NodeChange]:
    """Yield the changes of pstate_changes.csv: a machine that has switched off is asleep. `names` are by machine id.

    The file has six significant digits of each time, as Batsim's; the journal has the exact times of the requests.
    """
    requests = iter([at_resolution(entry.at) for entry in entries if entry.event in ("switch_on", "switch_off")])
    #: The latest transition of each machine, and when it began.
    transitions: dict[int, tuple[int, Instant]] = {}
    for row, approximate in enumerate(cells.present_instants("time")):
        machines, pstate = _power_row(cells, row)
        requested = next(requests, approximate) if pstate in _SWITCHING else approximate
        for machine in members(machines):
            name = names.get(machine, "")
            transition, since = transitions.get(machine, (0, requested))
            at = max(requested, since)
            for status in (NodeStatus.SWITCHING_ON, NodeStatus.SWITCHING_OFF, NodeStatus.ASLEEP):
                yield at, name, status, False
            if pstate in _SWITCHING:
                transitions[machine] = pstate, at
                yield at, name, _SWITCHING[pstate], True
            elif transition == _SWITCHED_OFF:
                yield at, name, NodeStatus.ASLEEP, True


def _power_row(cells: Cells, row: int) -> tuple[int, int]:
    try:
        return parse_intervals(cells.texts("machine_id")[row]), int(cells.texts("new_pstate")[row])
    except ValueError as error:
        raise InputError(cells.table.path, at=f"line {cells.table.lines[row]}", problem=str(error)) from error
