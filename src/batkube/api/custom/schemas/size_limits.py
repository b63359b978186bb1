"""Upper bounds on the size of a schema's values in one request, for the cost estimates of CEL rules.

Kubernetes: apiserver/pkg/cel/common/schemas.go (SchemaDeclType) and apiserver/pkg/cel/limits.go.
"""

from __future__ import annotations

from batkube.api.cel.estimation.sizes import SizeLimits
from batkube.api.custom.schemas.cel_types import as_resource, escape_name
from batkube.api.custom.schemas.structural import StructuralSchema

REQUEST_BYTES = 3 * 1024 * 1024
"""The maximum size of a request (MaxRequestSizeBytes)."""

#: A string can fill the whole request, apart from its quotation marks.
_STRING_MAX = REQUEST_BYTES - 2
#: By string format: the maximum length, and the minimum number of bytes as JSON.
_FORMAT_LIMITS = {"duration": (32, 3), "date": (12, 12), "date-time": (32, 21)}
_BYTES_MIN = {"boolean": 4, "number": 1, "integer": 1}
_STRING_BYTES_MIN = 2
_MAP_KEY = SizeLimits(0, _STRING_BYTES_MIN)


def cardinality_max(extent: SizeLimits) -> int:
    """Return the maximum number of values in one object, limited only by the request size."""
    return REQUEST_BYTES // (extent.bytes_min + 1)


def size_limits(schema: StructuralSchema, *, is_resource: bool = False) -> SizeLimits | None:
    """Return the size limits of a schema's values; None if CEL expressions cannot access them."""
    if schema.int_or_string:
        return SizeLimits(_STRING_MAX if schema.max_length is None else _utf8_bytes_max(schema.max_length), 1)
    if is_resource or schema.embedded:
        schema = as_resource(schema)
    if schema.type == "array":
        return _list_limits(schema)
    if schema.type == "object":
        return _map_limits(schema) if schema.additional is not None else _object_limits(schema)
    if schema.type == "string":
        return _string_limits(schema)
    least = _BYTES_MIN.get(schema.type)
    return None if least is None else SizeLimits(0, least)


def _utf8_bytes_max(length_most: int) -> int:
    """Return the maximum number of UTF-8 bytes of a string of this length."""
    return max(0, length_most) * 4


def _list_limits(schema: StructuralSchema) -> SizeLimits | None:
    item = size_limits(schema.items) if schema.items is not None else None
    if item is None:
        return None
    most = (REQUEST_BYTES - 2) // (item.bytes_min + 1) if schema.max_items is None else max(0, schema.max_items)
    return SizeLimits(most, 2, item)


def _map_limits(schema: StructuralSchema) -> SizeLimits | None:
    assert schema.additional is not None
    value = size_limits(schema.additional)
    if value is None:
        return None
    # Per entry: two quotation marks, a key of two characters, a colon and a comma.
    fitting = (REQUEST_BYTES - 2) // (value.bytes_min + 6)
    return SizeLimits(fitting if schema.max_properties is None else max(0, schema.max_properties), 2, value, _MAP_KEY)


def _object_limits(schema: StructuralSchema) -> SizeLimits:
    fields, least = {}, 2
    for name, part in schema.properties.items():
        extent = size_limits(part)
        if extent is None:
            continue
        escaped_name = escape_name(name)
        if escaped_name is not None:
            fields[escaped_name] = extent
        if name in schema.required and part.default is None:
            least += len(name.encode()) + extent.bytes_min + 4
    return SizeLimits(0, least, fields=fields)


def _string_limits(schema: StructuralSchema) -> SizeLimits:
    if schema.format in _FORMAT_LIMITS:
        return SizeLimits(*_FORMAT_LIMITS[schema.format])
    if schema.max_length is not None:
        # Base64 has no multi-byte characters.
        is_encoded = schema.format == "byte"
        return SizeLimits(
            max(0, schema.max_length) if is_encoded else _utf8_bytes_max(schema.max_length), _STRING_BYTES_MIN
        )
    if schema.enum and schema.format != "byte":
        lengths = (len(word.encode()) for word in schema.enum if isinstance(word, str))
        return SizeLimits(max(lengths, default=0), _STRING_BYTES_MIN)
    return SizeLimits(_STRING_MAX, _STRING_BYTES_MIN)
