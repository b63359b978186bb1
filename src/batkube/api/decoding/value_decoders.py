"""Decoders of single values: numbers, bytes, quantities, times, and arbitrary JSON.

Each takes a non-null value and returns its canonical form (see `objects.py`).
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable
from typing import Any

from batkube.api.decoding.state import DecodeError, Decoder, DecodingState, NumberWithText, number_text
from batkube.api.decoding.stored_quantities import stored_quantity
from batkube.cluster.schemas import Schema, Shape
from batkube.text.go_times import normalize_duration, normalize_micro_time, normalize_time

_INT_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
_INT32_MIN, _INT32_MAX = _INT_RANGES["int32"]
_BASE64_DIGITS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_CORRUPT_BASE64 = "illegal base64 data at input byte {}"
#: Whole floats below this are written without a fraction, by Go and by us.
_WHOLE_NUMBER_LIMIT = 1e21


def value_decoder(schema: Schema) -> Decoder:
    """Return the decoder of a schema that is not a struct, list or map."""
    return _COMPILERS[schema.shape](schema)


def _exact_type_decoder(kind: type, zero: Any) -> Callable[[Schema], Decoder]:  # noqa: ANN401 - a string or a bool
    def compiled(schema: Schema) -> Decoder:
        go = schema.go

        def decode(value: Any, state: DecodingState) -> Any:  # noqa: ANN401 - any JSON
            if type(value) is kind:
                return value
            state.record_type_mismatch(value, go)
            return zero

        return decode

    return compiled


def _integer_decoder(schema: Schema) -> Decoder:
    go = schema.go
    # Named integer types count as int64.
    minimum, maximum = _INT_RANGES.get(go, _INT_RANGES["int64"])

    def decode(value: Any, state: DecodingState) -> Any:  # noqa: ANN401 - any JSON
        if type(value) is int and minimum <= value <= maximum:
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            state.record_out_of_range(value, go)
        else:
            state.record_type_mismatch(value, go)
        return 0

    return decode


def _number_decoder(schema: Schema) -> Decoder:
    def decode(value: Any, state: DecodingState) -> Any:  # noqa: ANN401 - any JSON
        if isinstance(value, int | float) and not isinstance(value, bool):
            number = _to_float(value)
            if not math.isfinite(number):
                state.record_out_of_range(value, schema.go)
            return int(number) if abs(number) < _WHOLE_NUMBER_LIMIT and number.is_integer() else number
        state.record_type_mismatch(value, schema.go)
        return 0

    return decode


def _to_float(number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _bytes_decoder(schema: Schema) -> Decoder:
    def decode(value: Any, state: DecodingState) -> Any:  # noqa: ANN401 - any JSON
        if type(value) is str:
            text = value.replace("\r", "").replace("\n", "")
            if _BASE64.fullmatch(text) is None:
                state.error = state.error or _base64_problem(value.encode())
                return ""
            # Encode again if there is padding, which may contain non-zero bits.
            return base64.b64encode(base64.b64decode(text)).decode() if text.endswith("=") else text
        if type(value) is list:
            # Go also decodes a list of numbers as bytes.
            return _bytes_from_list(value, state)
        state.record_type_mismatch(value, schema.go)
        return ""

    return decode


def _bytes_from_list(value: list[Any], state: DecodingState) -> str:
    octets = bytearray()
    for item in value:
        if type(item) is int and 0 <= item <= 255:
            octets.append(item)
        elif isinstance(item, int | float) and not isinstance(item, bool):
            state.record_out_of_range(item, "uint8")
        elif item is not None:
            state.record_type_mismatch(item, "uint8")
    return base64.b64encode(octets).decode()


def _base64_problem(data: bytes) -> str:
    """Return Go's error for invalid base64 (encoding/base64, decodeQuantum)."""
    digits = 0
    for position, octet in enumerate(data):
        if octet in b"\r\n":
            continue
        if octet == ord("="):
            return _CORRUPT_BASE64.format(_corrupt_padding(data, position, digits % 4))
        if octet not in _BASE64_DIGITS:
            return _CORRUPT_BASE64.format(position)
        digits += 1
    return _CORRUPT_BASE64.format(len(data) - digits % 4)


def _corrupt_padding(data: bytes, position: int, digits: int) -> int:
    """Return the byte that Go's error names for padding at `position`, after `digits` digits of a group of four."""
    if digits < 2:
        return position
    rest = [number for number in range(position, len(data)) if data[number] not in b"\r\n"]
    if digits == 3:
        return rest[1]
    if len(rest) < 2:
        return len(data)
    return rest[1] - 1 if data[rest[1]] != ord("=") else rest[2]


def _quantity_decoder(_schema: Schema) -> Decoder:
    def decode(value: Any, state: DecodingState) -> Any:  # noqa: ANN401 - any JSON
        if type(value) is str:
            return stored_quantity(value if value.isalnum() else value.strip())
        if isinstance(value, int | float) and not isinstance(value, bool):
            return stored_quantity(number_text(value))
        # Go parses the JSON text of other values, which is never a quantity.
        return stored_quantity("?")

    return decode


def _int_or_string_decoder(_schema: Schema) -> Decoder:
    def decode(value: Any, state: DecodingState) -> Any:  # noqa: ANN401 - any JSON
        if type(value) is str or (type(value) is int and _INT32_MIN <= value <= _INT32_MAX):
            return value
        state.fail(value, "int32")

    return decode


def _text_decoder(read: Callable[[str], str | None]) -> Callable[[Schema], Decoder]:
    def compiled(_schema: Schema) -> Decoder:
        def decode(value: Any, state: DecodingState) -> Any:  # noqa: ANN401 - any JSON
            if type(value) is not str:
                state.fail(value, "string")
            return read(value)

        return decode

    return compiled


def _any_decoder(schema: Schema) -> Decoder:
    def decode(value: Any, _state: DecodingState) -> Any:  # noqa: ANN401 - any JSON
        return value if only_names and _is_empty_tree(value) else _plain_json(value)

    # Fast path for managedFields, which are in most updates and consist of nested objects only.
    only_names = schema.go == "v1.FieldsV1"
    return decode


def _is_empty_tree(value: Any) -> bool:  # noqa: ANN401 - any JSON
    """Return whether `value` consists of objects only."""
    if type(value) is not dict:
        return False
    for item in value.values():  # noqa: SIM110 - twice as fast as `all`, and in every patch
        if item and not _is_empty_tree(item):
            return False
    return True


def _plain_json(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return JSON with plain numbers instead of `NumberWithText`."""
    if type(value) is NumberWithText:
        if not math.isfinite(value):
            raise DecodeError(f"json: cannot unmarshal number {value.text} into Go value of type float64")
        return float(value)
    if type(value) is dict:
        return {key: _plain_json(item) for key, item in value.items()}
    return [_plain_json(item) for item in value] if type(value) is list else value


def alternatives_decoder(schema: Schema, read_object: Decoder, read_list: Decoder) -> Decoder:
    """Return the decoder of JSONSchemaPropsOrBool, OrArray and OrStringArray, which have their own UnmarshalJSON.

    Kubernetes: apiextensions-apiserver/pkg/apis/apiextensions/v1/marshal.go.
    """
    bool_allowed = schema.go.endswith("OrBool")

    def decode(value: Any, state: DecodingState) -> Any:  # noqa: ANN401 - any JSON
        inside = DecodingState(within=state)
        decoded = None
        if type(value) is dict:
            decoded = read_object(value, inside)
        elif bool_allowed:
            if type(value) is not bool:
                raise DecodeError("boolean or JSON schema expected")
            decoded = value
        elif type(value) is list:
            decoded = read_list(value, inside)
        if inside.error:
            raise DecodeError(inside.error)
        return decoded

    return decode


_COMPILERS: dict[Shape, Callable[[Schema], Decoder]] = {
    Shape.STRING: _exact_type_decoder(str, ""),
    Shape.BOOLEAN: _exact_type_decoder(bool, False),
    Shape.INTEGER: _integer_decoder,
    Shape.NUMBER: _number_decoder,
    Shape.BYTES: _bytes_decoder,
    Shape.QUANTITY: _quantity_decoder,
    Shape.INT_OR_STRING: _int_or_string_decoder,
    Shape.TIME: _text_decoder(normalize_time),
    Shape.MICRO_TIME: _text_decoder(normalize_micro_time),
    Shape.DURATION: _text_decoder(normalize_duration),
    Shape.ANY: _any_decoder,
}
