"""The errors of objects that are created, as kube-apiserver lists them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.api.groups.object_updates import OBJECTS, changed, filled, resource_of

from batkube.api.groups.scheme import validation


def errors(name: str, change: Mapping[str, object] | None = None) -> list[tuple[str, str]]:
    """Return the errors of a valid object (`OBJECTS`) with some fields changed, by dotted path."""
    value: dict[str, Any] = filled(OBJECTS[name])
    for path, field in (change or {}).items():
        value = changed(value, path, field)
    return [(error.field, error.message) for error in validation.validate_create(resource_of(value), value)]


def fields(name: str, change: Mapping[str, object]) -> list[str]:
    """Return the fields with an error."""
    return [field for field, _ in errors(name, change)]
