"""A printer: how objects of one kind become rows of a Table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

Column = dict[str, Any]
"""A TableColumnDefinition of meta.k8s.io/v1, as its JSON."""

Cells = Callable[[KubeObject, Instant], list[Any]]
"""Returns the cells of an object's row at an instant, since ages are told."""


class Printer(msgspec.Struct, frozen=True, eq=False):
    """The columns of a kind and what fills them."""

    columns: list[Column]
    cells: Cells
    #: Returns the conditions of a row (only pods have any).
    row_conditions: Callable[[KubeObject], list[dict[str, str]] | None] | None = None
    #: By what the rows of a list are sorted, if not left as they come (only FlowSchemas are).
    sort_key: Callable[[KubeObject], Any] | None = None
    #: What the rows of an empty list are: `[]`, or null where the original forgets to make the list.
    empty_rows: list[Any] | None = msgspec.field(default_factory=list)


def column(name: str, type_: str, form: str, priority: int, description: str = "") -> Column:
    """Return a column definition, every field of which is always written."""
    return {"name": name, "type": type_, "format": form, "description": description, "priority": priority}
