"""What Go's JSON calls the types of values, in what it says of those that do not fit."""

from __future__ import annotations

_GO_JSON_TYPES = {dict: "object", list: "array", str: "string", bool: "bool"}


def go_json_type(value: object) -> str:
    """Return what Go's JSON calls the type of a value."""
    return _GO_JSON_TYPES.get(type(value), "number")
