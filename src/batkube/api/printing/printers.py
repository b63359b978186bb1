"""Printers: how the objects of a kind become the rows of a Table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

Column = dict[str, Any]
"""A TableColumnDefinition of meta.k8s.io/v1, as its JSON."""

Cells = Callable[[KubeObject, Instant], list[Any]]
"""Returns the cells of an object's row; the instant is needed for ages."""


class Printer(msgspec.Struct, frozen=True, eq=False):
    """The columns of a kind, and the functions that compute its cells."""

    columns: list[Column]
    cells: Cells
    #: Returns the conditions of a row (only pods have any).
    row_conditions: Callable[[KubeObject], list[dict[str, str]] | None] | None = None
    #: The sort key of a list's rows; None keeps their order (only FlowSchemas are sorted).
    sort_key: Callable[[KubeObject], Any] | None = None
    #: The rows of an empty list: `[]`, or null where kube-apiserver does not allocate the slice.
    empty_rows: list[Any] | None = msgspec.field(default_factory=list)


def column(name: str, type_: str, form: str, priority: int, description: str = "") -> Column:
    """Return a column definition, in which all fields are always written."""
    return {"name": name, "type": type_, "format": form, "description": description, "priority": priority}
