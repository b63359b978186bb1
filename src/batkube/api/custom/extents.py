"""How large the values of a schema can become in one request, so that rules about them can be estimated.

Kubernetes: apiserver/pkg/cel/common/schemas.go (SchemaDeclType) and apiserver/pkg/cel/limits.go.
"""

from __future__ import annotations

from batkube.api.cel.extents import Extent
from batkube.api.custom.structural import Structural
from batkube.api.custom.typed import as_resource, escaped

REQUEST_BYTES = 3 * 1024 * 1024
"""How large a request can be (MaxRequestSizeBytes)."""

#: Without its quotation marks, a text takes all of a request.
_TEXT_MOST = REQUEST_BYTES - 2
#: Of texts of a format: how long they are at most, and how many bytes of JSON they take at least.
_FORMATTED = {"duration": (32, 3), "date": (12, 12), "date-time": (32, 21)}
_BYTES_LEAST = {"boolean": 4, "number": 1, "integer": 1}
_TEXT_LEAST = 2
_KEY = Extent(0, _TEXT_LEAST)


def cardinality_most(extent: Extent) -> int:
    """Return how often values can be there in one object, if nothing but the size of a request bounds them."""
    return REQUEST_BYTES // (extent.bytes_least + 1)


def extent_of(schema: Structural, *, is_resource: bool = False) -> Extent | None:
    """Return how large values of a schema can become; None for what expressions cannot see."""
    if schema.int_or_string:
        return Extent(_TEXT_MOST if schema.max_length is None else _characters(schema.max_length), 1)
    if is_resource or schema.embedded:
        schema = as_resource(schema)
    if schema.type == "array":
        return _list(schema)
    if schema.type == "object":
        return _map(schema) if schema.additional is not None else _object(schema)
    if schema.type == "string":
        return _text(schema)
    least = _BYTES_LEAST.get(schema.type)
    return None if least is None else Extent(0, least)


def _characters(length_most: int) -> int:
    """Return how many bytes so many characters can have."""
    return max(0, length_most) * 4


def _list(schema: Structural) -> Extent | None:
    item = extent_of(schema.items) if schema.items is not None else None
    if item is None:
        return None
    most = (REQUEST_BYTES - 2) // (item.bytes_least + 1) if schema.max_items is None else max(0, schema.max_items)
    return Extent(most, 2, item)


def _map(schema: Structural) -> Extent | None:
    assert schema.additional is not None
    value = extent_of(schema.additional)
    if value is None:
        return None
    # Two quotation marks and two characters of a key, a colon and a comma.
    fitting = (REQUEST_BYTES - 2) // (value.bytes_least + 6)
    return Extent(fitting if schema.max_properties is None else max(0, schema.max_properties), 2, value, _KEY)


def _object(schema: Structural) -> Extent:
    fields, least = {}, 2
    for name, part in schema.properties.items():
        extent = extent_of(part)
        if extent is None:
            continue
        escaped_name = escaped(name)
        if escaped_name is not None:
            fields[escaped_name] = extent
        if name in schema.required and part.default is None:
            least += len(name.encode()) + extent.bytes_least + 4
    return Extent(0, least, fields=fields)


def _text(schema: Structural) -> Extent:
    if schema.format in _FORMATTED:
        return Extent(*_FORMATTED[schema.format])
    if schema.max_length is not None:
        # What is encoded has no characters of several bytes.
        is_encoded = schema.format == "byte"
        return Extent(max(0, schema.max_length) if is_encoded else _characters(schema.max_length), _TEXT_LEAST)
    if schema.enum and schema.format != "byte":
        lengths = (len(word.encode()) for word in schema.enum if isinstance(word, str))
        return Extent(max(lengths, default=0), _TEXT_LEAST)
    return Extent(_TEXT_MOST, _TEXT_LEAST)
