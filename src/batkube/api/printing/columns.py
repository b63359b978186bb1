"""The columns of built-in kinds, from `columns.json`, which `scripts/derive_columns.py` derives from Kubernetes."""

from __future__ import annotations

import importlib.resources

import msgspec

from batkube.api.printing.printers import Column, column


class _Derived(msgspec.Struct):
    """The file `columns.json`: name, type, format, priority and description; `@key` stands for a description."""

    descriptions: dict[str, str]
    columns: dict[str, list[tuple[str, str, str, int, str]]]

    def column(self, name: str, type_: str, form: str, priority: int, description: str) -> Column:
        text = self.descriptions[description[1:]] if description.startswith("@") else description
        return column(name, type_, form, priority, text)


_DERIVED = msgspec.json.decode(
    importlib.resources.files(__package__).joinpath("columns.json").read_bytes(), type=_Derived
)
#: The column that every kind begins with but events.
NAME_COLUMN = _DERIVED.column("Name", "string", "name", 0, "@metav1.ObjectMeta.name")
#: What documents the time at which an object was created, in any column that tells it.
CREATION_DESCRIPTION = _DERIVED.descriptions["metav1.ObjectMeta.creationTimestamp"]


def columns_of(storage: str) -> list[Column]:
    """Return the columns of a kind by its name in the store."""
    return [_DERIVED.column(*definition) for definition in _DERIVED.columns[storage]]
