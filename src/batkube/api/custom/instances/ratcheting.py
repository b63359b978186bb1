"""Telling what an update left as it was, so that old faults are not held against it.

A value of the new object is compared with the one it came from: properties by name, items of a list of type map by
their keys; items of other lists have no past of their own (Kubernetes: apiserver/pkg/cel/common/equality.go).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from batkube.api.custom.schemas.structural import Json, StructuralSchema
from batkube.api.patches.element_order import json_identity

NO_OLD_VALUE: Any = object()
"""The old value of what has none: an object just created, or an item that cannot be traced back."""


def old_property(old: Json, key: str) -> Json:
    """Return what the property at `key` was."""
    return old.get(key, NO_OLD_VALUE) if isinstance(old, dict) else NO_OLD_VALUE


def old_item_lookup(old: Json, schema: StructuralSchema) -> Callable[[Json], Json]:
    """Return a function that tells what an item of a list was: the one with the same keys, in a list of type map."""
    if schema.list_type != "map" or not isinstance(old, list):
        return lambda item: NO_OLD_VALUE
    keys = schema.list_keys
    known: dict[Hashable, Json] = {}
    for candidate in old:
        if isinstance(candidate, dict):
            known.setdefault(_key_values(candidate, keys), candidate)
    return lambda item: known.get(_key_values(item, keys), NO_OLD_VALUE) if isinstance(item, dict) else NO_OLD_VALUE


def _key_values(item: dict[str, Any], keys: tuple[str, ...]) -> Hashable:
    return tuple(json_identity(item.get(key)) for key in keys)


def is_unchanged(value: Json, old: Json, schema: StructuralSchema | None) -> bool:
    """Return whether a value is as it was; the order of a list of type map does not matter."""
    if isinstance(value, dict) and isinstance(old, dict):
        if len(value) != len(old) or schema is None:
            return False
        return all(
            key in old and schema.child(key) is not None and is_unchanged(item, old[key], schema.child(key))
            for key, item in value.items()
        )
    if isinstance(value, list) and isinstance(old, list):
        if len(value) != len(old):
            return False
        if schema is None or schema.list_type != "map":
            return value == old
        past = old_item_lookup(old, schema)
        return all(_is_item_unchanged(item, past(item), schema.items) for item in value)
    return type(value) is type(old) and bool(value == old)


def _is_item_unchanged(item: Json, old: Json, schema: StructuralSchema | None) -> bool:
    return old is not NO_OLD_VALUE and is_unchanged(item, old, schema)
