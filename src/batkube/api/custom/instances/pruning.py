"""Pruning: remove fields that the schema does not specify, and report them.

Unknown fields are kept only below x-kubernetes-preserve-unknown-fields. A null is removed if the value is neither
nullable nor has a default.

Kubernetes: apiextensions-apiserver/pkg/apiserver/schema/pruning and defaulting/prunenulls.go.
"""

from __future__ import annotations

from typing import Any

from batkube.api.custom.schemas.structural import META_FIELDS, Json, StructuralSchema


def prune(value: dict[str, Any], schema: StructuralSchema | None) -> list[str]:
    """Remove unknown fields from an object in place, except in metadata; return their paths, sorted."""
    unknown: list[str] = []
    if schema is None:
        for key in [key for key in value if key not in META_FIELDS]:
            unknown.append(key)
            del value[key]
    else:
        _prune_object(value, schema, "", unknown, is_resource=True)
    unknown.sort()
    return unknown


def prune_embedded_value(value: Json, schema: StructuralSchema | None) -> None:
    """Remove unknown fields from a value inside an object."""
    _prune(value, schema, "", [])


def _prune(value: Json, schema: StructuralSchema | None, path: str, unknown: list[str]) -> None:
    if isinstance(value, dict):
        if schema is None:
            for key in value:
                unknown.append(_child_path(path, key))
            value.clear()
        else:
            _prune_object(value, schema, path, unknown, is_resource=schema.embedded)
    elif isinstance(value, list):
        if schema is not None and schema.preserves_unknown:
            _prune_preserved_list(value, schema, path, unknown)
            return
        items = None if schema is None else schema.items
        for index, item in enumerate(value):
            if isinstance(item, dict | list):
                _prune(item, items, f"{path}[{index}]", unknown)


def _prune_object(
    value: dict[str, Any], schema: StructuralSchema, path: str, unknown: list[str], *, is_resource: bool
) -> None:
    removed = []
    for key, item in value.items():
        if is_resource and key in META_FIELDS:
            continue
        part = schema.properties.get(key)
        if part is not None or schema.has_additional:
            if isinstance(item, dict | list):
                _prune(item, schema.child(key), _child_path(path, key), unknown)
        elif not schema.preserves_unknown:
            removed.append(key)
    for key in removed:
        unknown.append(_child_path(path, key))
        del value[key]


def _prune_preserved_list(value: list[Any], schema: StructuralSchema, path: str, unknown: list[str]) -> None:
    """Prune the specified values in the items of a list; like the list, the items keep their unknown fields."""
    items = schema.items
    if items is None:
        return
    for index, item in enumerate(value):
        if isinstance(item, dict):
            _prune_preserved_object(item, items, f"{path}[{index}]", unknown)
        elif isinstance(item, list):
            _prune_preserved_list(item, items, f"{path}[{index}]", unknown)


def _prune_preserved_object(value: dict[str, Any], schema: StructuralSchema, path: str, unknown: list[str]) -> None:
    for key, item in value.items():
        if schema.embedded and key in META_FIELDS:
            continue
        part = schema.properties.get(key)
        if (part is not None or schema.has_additional) and isinstance(item, dict | list):
            _prune(item, schema.child(key), _child_path(path, key), unknown)


def _child_path(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def drop_nulls(value: Json, schema: StructuralSchema | None) -> None:
    """Remove, in place, every null that is neither nullable nor replaced by a default."""
    if isinstance(value, dict):
        removed = []
        for key, item in value.items():
            part = None if schema is None else schema.child(key)
            if item is None:
                if part is not None and not part.nullable and part.default is None:
                    removed.append(key)
            elif part is not None and isinstance(item, dict | list):
                drop_nulls(item, part)
        for key in removed:
            del value[key]
    elif isinstance(value, list) and schema is not None and schema.items is not None:
        for item in value:
            if isinstance(item, dict | list):
                drop_nulls(item, schema.items)
