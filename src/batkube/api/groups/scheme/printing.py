"""The printers of all built-in kinds.

Kinds without columns of their own print their name and creation time, as the default table convertor of
apiserver/pkg/registry/rest does.
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


#: The printers of built-in kinds, by storage name; that of Scales as `scales.autoscaling`.
PRINTERS = {
    storage: Printer(columns_of(storage), kind.cells, kind.row_conditions, kind.row_order)
    for storage, kind in KINDS.items()
    if kind.cells is not None
}
#: The printer of all other kinds, such as LimitRanges, Roles and CustomResourceDefinitions.
DEFAULT_PRINTER = Printer([NAME_COLUMN, column("Created At", "date", "", 0)], _default_cells, empty_rows=None)


def printer_of(resource: Resource) -> Printer:
    """Return the printer of a built-in kind; that of a custom kind is made by `custom_printer`."""
    return PRINTERS.get(resource.storage, DEFAULT_PRINTER)
