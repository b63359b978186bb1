"""The columns of built-in kinds, from `columns.json`, which `scripts/derive_columns.py` derives from Kubernetes.

The descriptions of the columns are Kubernetes' texts, which are not part of our sources; `with_descriptions` adds them
if they are available.
"""

from __future__ import annotations

import importlib.resources
from collections.abc import Mapping

import msgspec

from batkube.api.printing.printers import Column, Printer, column

ColumnDescriptions = Mapping[str, Mapping[str, str]]
"""The descriptions of the columns by storage name."""

#: Name, type, format and priority of each column.
_COLUMNS = msgspec.json.decode(
    importlib.resources.files(__package__).joinpath("columns.json").read_bytes(),
    type=dict[str, list[tuple[str, str, str, int]]],
)
#: The first column of every kind but events.
NAME_COLUMN = column("Name", "string", "name", 0)


def columns_of(storage: str) -> list[Column]:
    """Return the columns of a kind by its storage name."""
    return [column(*definition) for definition in _COLUMNS[storage]]


def with_descriptions(printer: Printer, storage: str, descriptions: ColumnDescriptions) -> Printer:
    """Return a printer with descriptions of its columns; kinds without descriptions share those of pods."""
    of_pods = descriptions.get("pods", {})
    own = descriptions.get(storage, {**of_pods, "Created At": of_pods.get("Age", "")})
    columns = [
        {**definition, "description": definition["description"] or own.get(definition["name"], "")}
        for definition in printer.columns
    ]
    return msgspec.structs.replace(printer, columns=columns)
