"""Names of JSON types in Go's error messages (encoding/json, UnmarshalTypeError)."""

from __future__ import annotations

#: Go's name of the type into which kind and apiVersion are decoded first (apimachinery: SimpleMetaFactory.Interpret).
GO_TYPE_META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
_GO_JSON_TYPES = {dict: "object", list: "array", str: "string", bool: "bool"}


def go_json_type(value: object) -> str:
    """Return the name of a JSON value's type in Go's error messages."""
    return _GO_JSON_TYPES.get(type(value), "number")
