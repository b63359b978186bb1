"""Filling in a schema's defaults.

A default is given to a missing property, and to one that is null although it may not be. Defaults are filled in from
the top down, so that the default of an object is completed by those of its own properties (Kubernetes:
apiextensions-apiserver/pkg/apiserver/schema/defaulting/algorithm.go).
"""

from __future__ import annotations

import copy
from typing import Any

from batkube.api.custom.schemas.structural import Json, StructuralSchema


def fill_defaults(value: Json, schema: StructuralSchema | None) -> None:
    """Give `value`, in place, every default that its schema has for it."""
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
