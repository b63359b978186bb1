"""Decode objects to their canonical form: what Go prints after decoding them into its structs.

kube-apiserver decodes all bodies into Go structs. This drops unknown fields, nulls and empty values with `omitempty`,
adds zero values without `omitempty` (`status: {}`), and fails on values of the wrong type. `decode` does the same with
plain dictionaries and Go's error messages. A decoder is compiled once per schema, since every write uses it.

A value of the wrong type does not stop Go's decoder, which reports the first one at the end. An invalid value of a type
with its own UnmarshalJSON (a quantity, a time) stops it at once and takes precedence over earlier errors
(sigs.k8s.io/json, decode.go: saveError and UnmarshalJSON).
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from batkube.api.decoding.json_parser import parse_json
from batkube.api.decoding.json_syntax import ParseError
from batkube.api.decoding.state import DecodeError, Decoder, DecodingState, StructField
from batkube.api.decoding.stored_quantities import InvalidQuantity
from batkube.api.decoding.value_decoders import alternatives_decoder, value_decoder
from batkube.api.decoding.yaml_parser import parse_yaml, strict_warnings
from batkube.cluster.schemas import Field, Schema, Shape
from batkube.cluster.store import KubeObject
from batkube.text.go_times import InvalidTime

__all__ = ["DecodeError", "Decoded", "ParseError", "decode", "parse_json", "parse_yaml", "strict_warnings", "zero"]


class Decoded(NamedTuple):
    """An object in canonical form, and the errors of strict decoding."""

    object: KubeObject
    #: Such as `unknown field "spec.bogus"`.
    strict_errors: list[str]


def decode(value: Any, schema: Schema) -> Decoded:  # noqa: ANN401 - any JSON
    """Return `value` in canonical form; null becomes the zero object. Raises DecodeError."""
    state = DecodingState()
    try:
        decoded = zero(schema) if value is None else decoder_of(schema)(value, state)
    except (InvalidQuantity, InvalidTime) as problem:
        raise DecodeError(str(problem)) from None
    except RecursionError:
        raise DecodeError("exceeded max depth") from None
    if state.error:
        raise DecodeError(state.error)
    return Decoded(decoded, state.unknown)


# Zero values

_ZEROS = {
    Shape.STRING: "",
    Shape.INTEGER: 0,
    Shape.NUMBER: 0,
    Shape.BOOLEAN: False,
    Shape.QUANTITY: "0",
    Shape.INT_OR_STRING: 0,
    Shape.DURATION: "0s",
}
#: Shapes that are structs in Go, which `omitempty` never omits.
_GO_STRUCT_SHAPES = frozenset(
    (Shape.STRUCT, Shape.QUANTITY, Shape.INT_OR_STRING, Shape.TIME, Shape.MICRO_TIME, Shape.DURATION, Shape.ANY)
)


def zero(schema: Schema) -> Any:  # noqa: ANN401 - any JSON
    """Return the zero value of a type as Go prints it."""
    if schema.shape is Shape.STRUCT:
        return {field.name: _absent_value(field) for field in schema.fields.values() if _always_written(field)}
    return _ZEROS.get(schema.shape)


def _always_written(field: Field) -> bool:
    """Return whether Go prints the field even if it is unset."""
    if field.omit_zero:
        return False
    return not field.omit_empty or (field.schema.shape in _GO_STRUCT_SHAPES and not field.pointer)


def _absent_value(field: Field) -> Any:  # noqa: ANN401 - any JSON
    return None if field.pointer else zero(field.schema)


# Compilation


def decoder_of(schema: Schema) -> Decoder:
    """Return the decoder of non-null values of `schema`, compiled once."""
    if schema.decoder is None:
        compile_one = _COMPILERS.get(schema.shape)
        schema.decoder = value_decoder(schema) if compile_one is None else compile_one(schema)
    return schema.decoder


#: Types that kube-apiserver stores in etcd as JSON instead of protobuf.
_STORED_AS_JSON_PREFIXES = ("io.k8s.apiextensions-apiserver.", "io.k8s.kube-aggregator.")


class _FieldDecoder(NamedTuple):
    """How to decode a field of a struct."""

    #: The Python type whose values are already canonical; None if there is none.
    plain_type: type | None
    keeps_empty: bool
    decode: Decoder
    #: Whether an empty list or map becomes null: protobuf, in which etcd stores it, does not distinguish them.
    nil_if_empty: bool
    path_part: StructField


def _field_decoder(field: Field, owner: Schema) -> _FieldDecoder:
    shape = field.schema.shape
    return _FieldDecoder(
        str if shape is Shape.STRING else bool if shape is Shape.BOOLEAN else None,
        field.pointer or _always_written(field),
        decoder_of(field.schema),
        shape in (Shape.LIST, Shape.MAP) and not owner.name.startswith(_STORED_AS_JSON_PREFIXES),
        StructField(field.name, owner.go.rpartition(".")[2]),
    )


def _struct_decoder(schema: Schema) -> Decoder:
    slots: dict[str, _FieldDecoder] = {}
    fillings: list[tuple[str, Callable[[], Any]]] = []

    def decode_struct(value: Any, state: DecodingState) -> Any:  # noqa: ANN401 - any JSON
        if type(value) is not dict:
            state.record_type_mismatch(value, schema.go)
            return {}
        out: dict[str, Any] = {}
        path = state.path
        for key, item in value.items():
            slot = slots.get(key)
            if slot is None:
                state.record_unknown_field(key)
                continue
            plain, keeps_empty, decode_item, nil_if_empty, path_part = slot
            if type(item) is plain:
                if item or keeps_empty:
                    out[key] = item
            elif item is not None:
                path.append(path_part)
                decoded = decode_item(item, state)
                path.pop()
                if decoded:
                    out[key] = decoded
                elif keeps_empty:
                    out[key] = None if nil_if_empty else decoded
        for name, fresh in fillings:
            if name not in out:
                out[name] = fresh()
        return out

    # Set before the fields are compiled, since a struct may be recursive.
    schema.decoder = decode_struct
    for field in schema.fields.values():
        slots[field.name] = _field_decoder(field, schema)
        if _always_written(field):
            fillings.append((field.name, _copier(_absent_value(field))))
    return decode_struct


def _copier(template: Any) -> Callable[[], Any]:  # noqa: ANN401 - any JSON
    """Return a function that copies `template`."""
    return dict if template == {} else functools.partial(copy.deepcopy, template)


def _item_decoding(schema: Schema) -> tuple[Decoder, Any, Callable[[], Any]]:
    """Return the decoder of elements, the Python type that needs no decoding, and a function that replaces null."""
    items = schema.items
    assert items is not None, f"{schema.go} has no elements"
    # Null bytes become empty bytes once they were stored in etcd.
    absent = str if items.shape is Shape.BYTES else functools.partial(zero, items)
    return decoder_of(items), str if items.shape is Shape.STRING else None, absent


def _list_decoder(schema: Schema) -> Decoder:
    decode_item, plain, absent = _item_decoding(schema)

    def decode_list(value: Any, state: DecodingState) -> Any:  # noqa: ANN401 - any JSON
        if type(value) is not list:
            state.record_type_mismatch(value, schema.go)
            return []
        out = []
        path = state.path
        path.append(0)
        for index, item in enumerate(value):
            if type(item) is plain:
                out.append(item)
            elif item is None:
                out.append(absent())
            else:
                path[-1] = index
                out.append(decode_item(item, state))
        path.pop()
        return out

    return decode_list


def _map_decoder(schema: Schema) -> Decoder:
    decode_item, plain, absent = _item_decoding(schema)

    def decode_map(value: Any, state: DecodingState) -> Any:  # noqa: ANN401 - any JSON
        if type(value) is not dict:
            state.record_type_mismatch(value, schema.go)
            return {}
        out = {}
        path = state.path
        path.append("")
        for key, item in value.items():
            if type(item) is plain:
                out[key] = item
            elif item is None:
                out[key] = absent()
            else:
                path[-1] = key
                out[key] = decode_item(item, state)
        path.pop()
        return out

    return decode_map


def _any_decoder(schema: Schema) -> Decoder:
    props = schema.items
    if props is None:
        return value_decoder(schema)
    element = Schema(Shape.STRING, go="string") if schema.go.endswith("OrStringArray") else props
    return alternatives_decoder(
        schema, decoder_of(props), decoder_of(Schema(Shape.LIST, go=f"[]{element.go}", items=element))
    )


_COMPILERS: dict[Shape, Callable[[Schema], Decoder]] = {
    Shape.STRUCT: _struct_decoder,
    Shape.LIST: _list_decoder,
    Shape.MAP: _map_decoder,
    Shape.ANY: _any_decoder,
}
