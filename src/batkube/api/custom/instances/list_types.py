"""Uniqueness in lists: whole items of a list of type `set`, the keys of items of a list of type `map`.

Kubernetes: apiextensions-apiserver/pkg/apiserver/schema/listtype/validation.go.
"""

from __future__ import annotations

import json
from typing import Any

from batkube.api.custom.schemas.structural import Json, StructuralSchema
from batkube.api.validation import field_errors
from batkube.api.validation.field_errors import FieldError


def validate_list_types(schema: StructuralSchema, value: Json, path: str = "") -> list[FieldError]:
    """Return the errors for duplicates in all lists of type `set` or `map`."""
    errors: list[FieldError] = []
    _validate(schema, value, path, errors)
    return errors


def has_list_types(schema: StructuralSchema) -> bool:
    """Return whether the schema has lists of type `set` or `map`; most kinds do not need the walk."""
    return any(node.list_type in ("set", "map") for node in schema.nodes())


def _validate(schema: StructuralSchema, value: Json, path: str, errors: list[FieldError]) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(item, dict | list):
                continue
            part = schema.properties.get(key)
            if part is not None:
                _validate(part, item, f"{path}.{key}" if path else key, errors)
            elif schema.additional is not None:
                _validate(schema.additional, item, f"{path}[{key}]", errors)
    elif isinstance(value, list):
        if schema.list_type == "set":
            errors += [field_errors.duplicate(f"{path}[{index}]", value[index]) for index in _duplicate_indexes(value)]
        elif schema.list_type == "map":
            errors += _validate_map_keys(schema, value, path)
        if schema.items is not None:
            for index, item in enumerate(value):
                if isinstance(item, dict | list):
                    _validate(schema.items, item, f"{path}[{index}]", errors)


def _validate_map_keys(schema: StructuralSchema, value: list[Any], path: str) -> list[FieldError]:
    for index, item in enumerate(value):
        if item is not None and not isinstance(item, dict):
            problem = "must be an object for an array of list-type map"
            return [field_errors.invalid(f"{path}[{index}]", item, problem)]
    keys = [{key: item[key] for key in schema.list_keys if key in item} if item else {} for item in value]
    return [field_errors.duplicate(f"{path}[{index}]", keys[index]) for index in _duplicate_indexes(keys)]


def _duplicate_indexes(items: list[Any]) -> list[int]:
    """Return the index of the second occurrence of each duplicated item."""
    times: dict[tuple[str, str], int] = {}
    second = []
    for index, item in enumerate(items):
        identity = (type(item).__name__, json.dumps(item, sort_keys=True))
        times[identity] = times.get(identity, 0) + 1
        if times[identity] == 2:
            second.append(index)
    return second
