"""The columns of built-in kinds, from `columns.json`, which `scripts/derive_columns.py` derives from Kubernetes.

What Kubernetes says of each column in words is not ours to keep; it is added where it is known (`described`).
"""

from __future__ import annotations

import importlib.resources
from collections.abc import Mapping

import msgspec

from batkube.api.printing.printers import Column, Printer, column

ColumnDescriptions = Mapping[str, Mapping[str, str]]
"""What is said of each column, by the name of a kind in the store."""

#: Name, type, format and priority of each column.
_COLUMNS = msgspec.json.decode(
    importlib.resources.files(__package__).joinpath("columns.json").read_bytes(),
    type=dict[str, list[tuple[str, str, str, int]]],
)
#: The column that every kind begins with but events.
NAME_COLUMN = column("Name", "string", "name", 0)


def columns_of(storage: str) -> list[Column]:
    """Return the columns of a kind by its name in the store."""
    return [column(*definition) for definition in _COLUMNS[storage]]


def with_descriptions(printer: Printer, storage: str, words: ColumnDescriptions) -> Printer:
    """Return a printer that says of its columns what they are; kinds without words of their own share those of pods."""
    of_pods = words.get("pods", {})
    own = words.get(storage, {**of_pods, "Created At": of_pods.get("Age", "")})
    columns = [{**one, "description": one["description"] or own.get(one["name"], "")} for one in printer.columns]
    return msgspec.structs.replace(printer, columns=columns)
