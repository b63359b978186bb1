"""nodes.csv: the nodes of a run with their resources, and when each of them existed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from batkube.cluster.mapping import kube_name
from batkube.cluster.nodes.machine_registry import Presence
from batkube.kernel.instants import START, format_seconds
from batkube.kernel.quantities import CPU, GPU, MEMORY, PODS
from batkube.outputs.writers.csv_fields import amount_cells, csv_field
from batkube.platforms.model import Machine

NODE_COLUMNS = (
    "node",
    "machine",
    "cpu",
    "memory",
    "pods",
    "gpus",
    "other",
    "zone",
    "rack",
    "pool",
    "created",
    "removed",
)

#: Resources with a column of their own; the column `other` has the rest.
_COLUMN_RESOURCES = (CPU, MEMORY, PODS, GPU)
#: Labels for the place of a node and for the group of nodes it was created with; the first one that a node has counts.
ZONE_LABELS = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
RACK_LABELS = ("topology.kubernetes.io/rack", "rack")
POOL_LABELS = (
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "karpenter.sh/nodepool",
    "node.kubernetes.io/pool",
    "nodepool",
    "pool",
)
_WHOLE_RUN: Presence = [(START, None)]


def write_nodes(
    path: Path, machines: Iterable[Machine], presence_of: Callable[[int], Presence | None] | None = None
) -> None:
    """Write a row for each period in which a node existed, in order of machine ids.

    `presence_of` returns these periods by the number of the machine; None for a node that existed throughout, as all
    do without it.
    """
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(",".join(NODE_COLUMNS) + "\n")
        for number, machine in enumerate(machines):
            presence = None if presence_of is None else presence_of(number)
            cells = _machine_cells(machine)
            for created, removed in _WHOLE_RUN if presence is None else presence:
                end = "" if removed is None else format_seconds(removed)
                file.write(f"{cells},{format_seconds(created)},{end}\n")


def _machine_cells(machine: Machine) -> str:
    """Return all cells but the last two."""
    capacity = machine.capacity
    other = {name: amount for name, amount in sorted(capacity.items()) if name not in _COLUMN_RESOURCES}
    cells = (
        kube_name(machine.name),
        str(machine.id),
        *amount_cells(capacity, _COLUMN_RESOURCES),
        json.dumps(other) if other else "",
        *(first_label(machine.labels, names) for names in (ZONE_LABELS, RACK_LABELS, POOL_LABELS)),
    )
    return ",".join(map(csv_field, cells))


def first_label(labels: Mapping[str, str], names: Sequence[str]) -> str:
    """Return the first of these labels that a node has; "" if it has none of them."""
    return next((labels[name] for name in names if name in labels), "")
