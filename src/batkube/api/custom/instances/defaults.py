"""Defaulting by a schema.

A property gets its default if it is missing, or null but not nullable. Defaulting works top down, so that the default
of an object gets the defaults of its own properties.

Kubernetes: apiextensions-apiserver/pkg/apiserver/schema/defaulting/algorithm.go.
"""

from __future__ import annotations

import copy
from typing import Any

from batkube.api.custom.schemas.structural import Json, StructuralSchema


def fill_defaults(value: Json, schema: StructuralSchema | None) -> None:
    """Set the schema's defaults in `value`, in place."""
    if schema is None:
        return
    if isinstance(value, dict):
        _fill_object(value, schema)
    elif isinstance(value, list) and schema.items is not None:
        _fill_list(value, schema.items)


def _fill_object(value: dict[str, Any], schema: StructuralSchema) -> None:
    properties, additional = schema.properties, schema.additional
    for name, part in properties.items():
        if part.default is not None and (name not in value or (value[name] is None and not part.nullable)):
            value[name] = copy.deepcopy(part.default)
    for key, item in value.items():
        below = properties.get(key)
        if below is None:
            if additional is None:
                continue
            below = additional
            if item is None and not below.nullable:
                item = value[key] = copy.deepcopy(below.default)
        if isinstance(item, dict | list):
            fill_defaults(item, below)


def _fill_list(value: list[Any], items: StructuralSchema) -> None:
    for index, item in enumerate(value):
        if item is None and not items.nullable:
            item = value[index] = copy.deepcopy(items.default)
        if isinstance(item, dict | list):
            fill_defaults(item, items)
