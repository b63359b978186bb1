"""CEL types and CEL values of JSON values, by their schema.

CEL expressions can only access fields whose schema has a type; property names that are not CEL identifiers are escaped.
The schema determines the type of numbers, dates and the like, however they are written in JSON.

Kubernetes: apiserver/pkg/cel/common/{schemas,valuesunstructured}.go, apiserver/pkg/cel/escaping.go.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any

import msgspec

from batkube.api.cel.functions import times
from batkube.api.cel.syntax.lexer import Value
from batkube.api.cel.types import DYN, CelType, list_type, map_type
from batkube.api.cel.values import CelError, CelObject, MapList, SetList
from batkube.api.custom.schemas.structural import StructuralSchema

_KEYWORDS = frozenset(
    [
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"),
        *("let", "loop", "package", "namespace", "return", "var", "void", "while"),
    ]
)
_find_special = re.compile("__|[-./]|[^a-zA-Z0-9_]")
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}

STRING_SCHEMA = StructuralSchema(types=("string",), type="string")
_METADATA = StructuralSchema(
    types=("object",), type="object", properties={"name": STRING_SCHEMA, "generateName": STRING_SCHEMA}
)
_TYPE_AND_METADATA = {"apiVersion": STRING_SCHEMA, "kind": STRING_SCHEMA, "metadata": _METADATA}


def escape_name(name: str) -> str | None:
    """Return the name of a property in CEL expressions, None if it cannot be escaped."""
    if not name or name[0].isdigit():
        return None
    if name in _KEYWORDS:
        return f"__{name}__"
    parts = _find_special.findall(name)
    if any(part not in _ESCAPES for part in parts):
        return None
    return _find_special.sub(lambda match: _ESCAPES[match[0]], name)


def as_resource(schema: StructuralSchema) -> StructuralSchema:
    """Return the schema of a whole object, with the implicit fields apiVersion, kind and metadata."""
    return msgspec.structs.replace(schema, properties={**schema.properties, **_TYPE_AND_METADATA})


_CEL_TYPES = {"string": "string", "boolean": "bool", "number": "double", "integer": "int"}
_FORMAT_CEL_TYPES = {
    "byte": "bytes",
    "duration": "duration",
    "date": "timestamp",
    "date-time": "timestamp",
}


def cel_type(schema: StructuralSchema, *, is_resource: bool = False) -> CelType | None:
    """Return the CEL type of a schema's values; None if expressions cannot access them."""
    if schema.int_or_string:
        return DYN
    if is_resource or schema.embedded:
        schema = as_resource(schema)
    kind = schema.type
    if kind == "array":
        items = cel_type(schema.items) if schema.items is not None else None
        return None if items is None else list_type(items)
    if kind != "object":
        name = _FORMAT_CEL_TYPES.get(schema.format, "string") if kind == "string" else _CEL_TYPES.get(kind)
        return None if name is None else CelType(name)
    if schema.additional is not None:
        values = cel_type(schema.additional)
        return None if values is None else map_type(values)
    fields = {}
    for name, part in schema.properties.items():
        escaped_name, field_type = escape_name(name), cel_type(part)
        if escaped_name is not None and field_type is not None:
            fields[escaped_name] = field_type
    return CelType("object", fields=fields)


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise CelError(f"Invalid byte formatted string {text}") from None


_FORMAT_READERS: dict[str, Callable[[str], Any]] = {
    "byte": _bytes,
    "duration": times.parse_worded_duration,
    "date": times.parse_date,
    "date-time": times.parse_timestamp,
}


def cel_value(value: Value, schema: StructuralSchema, *, is_resource: bool = False) -> Value:
    """Convert a JSON value to its CEL value."""
    if is_resource or schema.embedded:
        schema = as_resource(schema)
    if isinstance(value, dict):
        return _object(value, schema)
    if isinstance(value, list):
        items = [cel_value(item, schema.items) for item in value] if schema.items is not None else []
        if schema.list_type == "set":
            return SetList(items)
        return MapList(items, schema.list_keys) if schema.list_type == "map" else items
    if isinstance(value, str) and schema.format in _FORMAT_READERS:
        try:
            return _FORMAT_READERS[schema.format](value)
        except CelError:
            # A malformed value matters only if an expression uses it, and then the expression fails on the string.
            return value
    if isinstance(value, int) and not isinstance(value, bool) and schema.types == ("number",):
        return float(value)
    return value


def _object(value: dict[str, Any], schema: StructuralSchema) -> Value:
    if schema.additional is not None and not schema.properties:
        return {key: cel_value(item, schema.additional) for key, item in value.items()}
    record = CelObject()
    for name, part in schema.properties.items():
        if value.get(name) is not None:
            escaped_name = escape_name(name)
            if escaped_name is not None:
                record[escaped_name] = cel_value(value[name], part)
    return record
