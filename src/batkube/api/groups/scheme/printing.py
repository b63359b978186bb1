"""How each kind is printed.

Kinds that have no columns of their own get what the default of apiserver/pkg/registry/rest prints: their name and when
they were created.
"""

from __future__ import annotations

from typing import Any

from batkube.api.groups.scheme.catalogue import KINDS
from batkube.api.printing.columns import NAME_COLUMN, columns_of
from batkube.api.printing.printers import Printer, column
from batkube.cluster.kinds import Resource
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant


def _default_cells(value: KubeObject, now: Instant) -> list[Any]:
    metadata = value["metadata"]
    return [metadata.get("name", ""), metadata.get("creationTimestamp") or "0001-01-01T00:00:00Z"]


#: How each built-in kind is printed, by its name in the store; a Scale as `scales.autoscaling`.
PRINTERS = {
    storage: Printer(columns_of(storage), kind.cells, kind.row_conditions, kind.row_order)
    for storage, kind in KINDS.items()
    if kind.cells is not None
}
#: How the other kinds are printed, such as LimitRanges, Roles and CustomResourceDefinitions.
DEFAULT_PRINTER = Printer([NAME_COLUMN, column("Created At", "date", "", 0)], _default_cells, empty_rows=None)


def printer_of(resource: Resource) -> Printer:
    """Return how a built-in kind is printed; a custom one is printed by `custom_printer` of its definition."""
    return PRINTERS.get(resource.storage, DEFAULT_PRINTER)
