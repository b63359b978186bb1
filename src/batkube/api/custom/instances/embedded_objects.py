"""Embedded objects (x-kubernetes-embedded-resource): decode and validate their metadata like any other.

Kubernetes: apiextensions-apiserver/pkg/apiserver/schema/objectmeta.
"""

from __future__ import annotations

from typing import Any

from batkube.api.custom.schemas.structural import Json, StructuralSchema
from batkube.api.decoding.objects import DecodeError, decode
from batkube.api.validation import field_errors
from batkube.api.validation.field_errors import FieldError
from batkube.api.validation.metadata import check_metadata
from batkube.api.validation.names import dns_1035_label, path_segment
from batkube.api.validation.problems import Problems
from batkube.cluster.schemas import Schema

_MUST_MATCH = "may have mixed case, but should otherwise match: "


def has_embedded_objects(schema: StructuralSchema) -> bool:
    """Return whether the schema has embedded objects; most kinds do not need the walk."""
    return any(node.embedded for node in schema.nodes())


def decode_embedded(value: Json, schema: StructuralSchema | None, metadata: Schema, path: str = "") -> list[str]:
    """Decode the metadata of embedded objects in place; return the paths of unknown fields.

    Raises DecodeError for malformed metadata.
    """
    unknown: list[str] = []
    if schema is None:
        return unknown
    if isinstance(value, dict):
        if schema.embedded:
            unknown += _decode_metadata(value, metadata, path)
        for key, item in value.items():
            if isinstance(item, dict | list):
                below = f"{path}.{key}" if path and key in schema.properties else _child_path(path, key, schema)
                unknown += decode_embedded(item, schema.child(key), metadata, below)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            unknown += decode_embedded(item, schema.items, metadata, f"{path}[{index}]")
    return sorted(unknown) if not path else unknown


def _child_path(path: str, key: str, schema: StructuralSchema) -> str:
    return f"{path}[{key}]" if path and key not in schema.properties else key


def _decode_metadata(value: dict[str, Any], metadata: Schema, path: str) -> list[str]:
    for key in ("apiVersion", "kind"):
        if key in value and not isinstance(value[key], str):
            error = field_errors.invalid(f"{path}.{key}", value[key], "must be a string")
            raise DecodeError(f"{error.field}: {error.message}")
    if "metadata" not in value:
        return []
    try:
        decoded = decode(value["metadata"], metadata)
    except DecodeError as problem:
        error = field_errors.invalid(f"{path}.metadata", value["metadata"], str(problem))
        raise DecodeError(f"{error.field}: {error.message}") from problem
    value["metadata"] = {key: item for key, item in decoded.object.items() if item is not None}
    return [f"{path}.metadata.{_unknown_field(text)}" for text in decoded.strict_errors]


def _unknown_field(complaint: str) -> str:
    """Return the path in `unknown field "labels.x"`."""
    return complaint.partition('"')[2].rstrip('"')


def validate_embedded(value: Json, schema: StructuralSchema | None, path: str = "") -> list[FieldError]:
    """Validate apiVersion, kind and metadata of embedded objects."""
    problems = Problems()
    _validate(value, schema, path, problems)
    return problems


def _validate(value: Json, schema: StructuralSchema | None, path: str, problems: Problems) -> None:
    if schema is None:
        return
    if isinstance(value, dict):
        if schema.embedded:
            _check_object(value, path, problems)
        for key, item in value.items():
            if isinstance(item, dict | list):
                below = f"{path}.{key}" if key in schema.properties and path else _child_path(path, key, schema)
                _validate(item, schema.child(key), below, problems)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _validate(item, schema.items, f"{path}[{index}]", problems)


def _check_object(value: dict[str, Any], path: str, problems: Problems) -> None:
    for key in ("apiVersion", "kind"):
        if key not in value:
            problems.required(f"{path}.{key}")
        elif not isinstance(value[key], str):
            problems.invalid(f"{path}.{key}", value[key], "must be a string")
        elif not value[key]:
            problems.invalid(f"{path}.{key}", "", "must not be empty")
    version, kind = value.get("apiVersion"), value.get("kind")
    if isinstance(version, str) and version.count("/") > 1:
        problems.invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}")
    if kind and isinstance(kind, str) and (wrong := dns_1035_label(kind.lower())):
        problems.invalid(f"{path}.kind", kind, _MUST_MATCH + ",".join(wrong))
    metadata = value.get("metadata")
    if isinstance(metadata, dict):
        named = metadata if metadata.get("name") else {**metadata, "name": "fakename"}
        check_metadata(named, path_segment, bool(metadata.get("namespace")), problems, f"{path}.metadata")
