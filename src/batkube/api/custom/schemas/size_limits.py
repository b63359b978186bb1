"""How large the values of a schema can become in one request, so that rules about them can be estimated.

Kubernetes: apiserver/pkg/cel/common/schemas.go (SchemaDeclType) and apiserver/pkg/cel/limits.go.
"""

from __future__ import annotations

from batkube.api.cel.estimation.sizes import SizeLimits
from batkube.api.custom.schemas.cel_types import as_resource, escape_name
from batkube.api.custom.schemas.structural import StructuralSchema

REQUEST_BYTES = 3 * 1024 * 1024
"""How large a request can be (MaxRequestSizeBytes)."""

#: Without its quotation marks, a text takes all of a request.
_STRING_MAX = REQUEST_BYTES - 2
#: Of texts of a format: how long they are at most, and how many bytes of JSON they take at least.
_FORMAT_LIMITS = {"duration": (32, 3), "date": (12, 12), "date-time": (32, 21)}
_BYTES_MIN = {"boolean": 4, "number": 1, "integer": 1}
_STRING_BYTES_MIN = 2
_MAP_KEY = SizeLimits(0, _STRING_BYTES_MIN)


def cardinality_max(extent: SizeLimits) -> int:
    """Return how often values can be there in one object, if nothing but the size of a request bounds them."""
    return REQUEST_BYTES // (extent.bytes_min + 1)


def size_limits(schema: StructuralSchema, *, is_resource: bool = False) -> SizeLimits | None:
    """Return how large values of a schema can become; None for what expressions cannot see."""
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
    """Return how many bytes so many characters can have."""
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
    # Two quotation marks and two characters of a key, a colon and a comma.
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
        # What is encoded has no characters of several bytes.
        is_encoded = schema.format == "byte"
        return SizeLimits(
            max(0, schema.max_length) if is_encoded else _utf8_bytes_max(schema.max_length), _STRING_BYTES_MIN
        )
    if schema.enum and schema.format != "byte":
        lengths = (len(word.encode()) for word in schema.enum if isinstance(word, str))
        return SizeLimits(max(lengths, default=0), _STRING_BYTES_MIN)
    return SizeLimits(_STRING_MAX, _STRING_BYTES_MIN)
