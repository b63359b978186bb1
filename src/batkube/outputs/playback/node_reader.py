"""Reads the nodes of a run: from nodes.csv, or from the manifest of a run of an earlier version."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from batkube.cluster.mapping import kube_name
from batkube.kernel.errors import InputError
from batkube.kernel.instants import START, Instant, seconds
from batkube.kernel.quantities import CPU, MACHINE
from batkube.outputs.measures.run_data.run_files import RunFiles
from batkube.outputs.measures.run_data.text_table import read_table
from batkube.outputs.playback.cells import CAPACITY_COLUMNS, Cells, at_resolution
from batkube.outputs.playback.model import JournalEntry, NodePeriod, RecordedNode
from batkube.outputs.playback.node_statuses import NodeChange, journal_changes, power_changes, statuses_of

_REQUIRED = ("node", "machine", "created", "removed")


def read_nodes(files: RunFiles, entries: Sequence[JournalEntry], *, whole_machines: bool) -> tuple[RecordedNode, ...]:
    """Return the nodes in order of their machine ids. With `whole_machines`, each also has one `machine`."""
    path = files.beside("nodes.csv")
    extra = {MACHINE: 1} if whole_machines else {}
    if path.is_file():
        table = read_table(path)
        table.require(_REQUIRED, "use the output folder of a run")
        nodes = _nodes_of_table(Cells(table), extra)
    else:
        nodes = [_node_of_manifest(number, machine, extra) for number, machine in enumerate(files.machines)]
        nodes = [node for node in nodes if node.periods]
    if not nodes:
        raise InputError(
            path, problem="contains no nodes, and neither does manifest.json", remedy="use the --out of a run"
        )
    changes = _changes_by_node(files, entries, {node.machine: node.name for node in nodes})
    return tuple(
        msgspec.structs.replace(node, number=number, statuses=statuses_of(node.periods, changes.get(node.name, ())))
        for number, node in enumerate(nodes)
    )


def _nodes_of_table(cells: Cells, extra: Mapping[str, int]) -> list[RecordedNode]:
    """Return a node per name; each of its rows is a period."""
    names, machines = cells.texts("node"), cells.counts("machine")
    capacities, others = cells.amounts(CAPACITY_COLUMNS), cells.other_amounts("other")
    periods = [
        NodePeriod(created, removed)
        for created, removed in zip(cells.present_instants("created"), cells.instants("removed"), strict=True)
    ]
    rows: defaultdict[str, list[int]] = defaultdict(list)
    for row, name in enumerate(names):
        rows[name].append(row)
    zones, racks, pools = (cells.texts(column) for column in ("zone", "rack", "pool"))
    return [
        RecordedNode(
            0,
            name,
            machines[first],
            {**capacities[first], **others[first], **extra},
            zones[first],
            racks[first],
            pools[first],
            tuple(sorted((periods[row] for row in node_rows), key=lambda period: period.begin)),
        )
        for name, node_rows in rows.items()
        for first in node_rows[:1]
    ]


def _node_of_manifest(number: int, machine: Mapping[str, Any], extra: Mapping[str, int]) -> RecordedNode:
    """Return the node of a machine as earlier versions recorded it, without its labels."""
    capacity = machine.get("capacity") or {CPU: machine.get("cpu_milli") or 0}
    spans = machine.get("present_s", [[0, None]])
    periods = tuple(NodePeriod(_manifest_instant(begin) or START, _manifest_instant(end)) for begin, end in spans)
    name = kube_name(str(machine.get("name", number)))
    return RecordedNode(0, name, number, {**capacity, **extra}, "", "", "", periods)


def _manifest_instant(time_s: float | None) -> Instant | None:
    return None if time_s is None else at_resolution(seconds(time_s))


def _changes_by_node(
    files: RunFiles, entries: Sequence[JournalEntry], names: Mapping[int, str]
) -> Mapping[str, Sequence[NodeChange]]:
    """Return the changes of the conditions of each node, in order of time."""
    changes = list(journal_changes(entries))
    path = files.beside("pstate_changes.csv")
    if path.is_file():
        table = read_table(path)
        table.require(("time", "machine_id", "new_pstate"), "use the output folder of a run")
        changes += power_changes(Cells(table), entries, names)
    by_node: defaultdict[str, list[NodeChange]] = defaultdict(list)
    for change in sorted(changes, key=lambda change: change[0]):
        by_node[change[1]].append(change)
    return by_node
