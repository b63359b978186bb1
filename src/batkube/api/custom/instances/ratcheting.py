"""Ratcheting: find the values that an update did not change, so that errors which they already had are tolerated.

A new value is correlated with its old one: properties by name, items of a list of type `map` by their keys. Items of
other lists have no old value.

Kubernetes: apiserver/pkg/cel/common/equality.go.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from batkube.api.custom.schemas.structural import Json, StructuralSchema
from batkube.api.patches.element_order import json_identity

NO_OLD_VALUE: Any = object()
"""The old value of a value without one: of a new object, or of a list item that cannot be correlated."""


def old_property(old: Json, key: str) -> Json:
    """Return the old value of the property at `key`."""
    return old.get(key, NO_OLD_VALUE) if isinstance(old, dict) else NO_OLD_VALUE


def old_item_lookup(old: Json, schema: StructuralSchema) -> Callable[[Json], Json]:
    """Return a function from a list item to its old value: the item with the same keys, in a list of type `map`."""
    if schema.list_type != "map" or not isinstance(old, list):
        return lambda item: NO_OLD_VALUE
    keys = schema.list_keys
    items_by_key: dict[Hashable, Json] = {}
    for candidate in old:
        if isinstance(candidate, dict):
            items_by_key.setdefault(_key_values(candidate, keys), candidate)
    return lambda item: (
        items_by_key.get(_key_values(item, keys), NO_OLD_VALUE) if isinstance(item, dict) else NO_OLD_VALUE
    )


def _key_values(item: dict[str, Any], keys: tuple[str, ...]) -> Hashable:
    return tuple(json_identity(item.get(key)) for key in keys)


def is_unchanged(value: Json, old: Json, schema: StructuralSchema | None) -> bool:
    """Return whether a value equals its old one; the order of a list of type `map` does not matter."""
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
