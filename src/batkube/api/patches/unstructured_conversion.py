"""Type errors of patched objects, with the messages of strategic merge patches and server-side apply.

kube-apiserver converts these objects directly to Go structs, without JSON in between. That converter has error messages
of its own, and accepts numbers that JSON decoding rejects. Decoding decides whether there is an error; this module
finds the converter's message for it.

Kubernetes: apimachinery/pkg/runtime/converter.go, fromUnstructured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from batkube.api.decoding.json_type_names import go_json_type
from batkube.api.decoding.objects import DecodeError
from batkube.api.patches.json_patches import Json
from batkube.cluster.schemas import Schema, Shape
from batkube.cluster.store import KubeObject

_GO_KINDS = {str: "string", int: "int64", float: "float64", bool: "bool", dict: "map", list: "slice"}
_SCALARS = {Shape.STRING: str, Shape.INTEGER: int, Shape.NUMBER: float, Shape.BOOLEAN: bool}


Decode = Callable[[Json], tuple[KubeObject, list[str]]]
"""Decodes an object, and returns it with the fields that its kind does not have."""


def from_unstructured(document: Json, schema: Schema, decode: Decode) -> tuple[KubeObject, list[str]]:
    """Convert an object as kube-apiserver's converter does; raises DecodeError with its message."""
    try:
        return decode(document)
    except DecodeError as problem:
        message = conversion_problem(document, schema)
        if message is not None:
            raise DecodeError(message) from problem
    try:
        return decode(truncate_integers(document, schema))
    except DecodeError as problem:
        prefix = "error decoding from json: " if "base64" in str(problem) else ""
        raise DecodeError(prefix + str(problem)) from problem


def conversion_problem(value: Json, schema: Schema) -> str | None:
    """Return the first type error of `value` under `schema`; None if the converter has no message for it."""
    if value is None:
        return None
    kind = _GO_KINDS[type(value)]
    match schema.shape:
        case Shape.STRUCT:
            return _struct_problem(value, schema) if kind == "map" else f"cannot restore struct from: {kind}"
        case Shape.MAP:
            return _first_item_problem(value.values(), schema) if kind == "map" else f"cannot restore map from {kind}"
        case Shape.LIST:
            return _first_item_problem(value, schema) if kind == "slice" else f"cannot restore slice from {kind}"
        case Shape.BYTES:
            return None if kind in ("string", "slice") else f"cannot restore slice from {kind}"
        case Shape.TIME | Shape.MICRO_TIME | Shape.DURATION:
            return None if kind == "string" else _json_type_message(value, "string")
        case Shape.INT_OR_STRING:
            if type(value) is float or (type(value) is int and not -(2**31) <= value < 2**31):
                return f"json: cannot unmarshal number {value} into Go value of type int32"
            return None if kind in ("string", "int64") else _json_type_message(value, "int32")
        case _:
            return _scalar_problem(value, kind, schema)


def _json_type_message(value: Json, go: str) -> str:
    """Return the message of types that decode their own JSON."""
    return f"json: cannot unmarshal {go_json_type(value)} into Go value of type {go}"


def _struct_problem(value: dict[str, Json], schema: Schema) -> str | None:
    for name, field in schema.fields.items():
        problem = conversion_problem(value.get(name), field.schema)
        if problem is not None:
            return problem
    return None


def _first_item_problem(values: Iterable[Json], schema: Schema) -> str | None:
    assert schema.items is not None
    for value in values:
        problem = conversion_problem(value, schema.items)
        if problem is not None:
            return problem
    return None


def _scalar_problem(value: Json, kind: str, schema: Schema) -> str | None:
    """Check a scalar as Go's reflection does; Go can convert a number to a string, but the converter rejects it."""
    expected = _SCALARS.get(schema.shape)
    if expected is None or type(value) is expected or (expected is float and type(value) is int):
        return None
    if type(value) is float and expected is int and value.is_integer():
        return None
    if (type(value), expected) in ((int, str), (float, int)):
        return f"cannot convert {kind} to {schema.go.removeprefix('*')}"
    return f"unrecognized type: {_go_kind(schema)}"


def _go_kind(schema: Schema) -> str:
    """Return the underlying Go type of a schema."""
    go = schema.go.removeprefix("*")
    if "." not in go:
        return go
    return {Shape.STRING: "string", Shape.BOOLEAN: "bool", Shape.INTEGER: "int32"}.get(schema.shape, "float64")


def truncate_integers(value: Json, schema: Schema) -> Json:
    """Return `value` with integers as the converter makes them: `2.0` becomes 2, overflowing ones are cut off."""
    if schema.shape is Shape.INTEGER:
        if type(value) is float and value.is_integer():
            value = int(value)
        if type(value) is int and schema.go.removeprefix("*") == "int32":
            return (value + 2**31) % 2**32 - 2**31
        return value
    if isinstance(value, dict):
        fields = schema.fields
        if schema.shape is Shape.MAP and schema.items is not None:
            return {key: truncate_integers(item, schema.items) for key, item in value.items()}
        return {
            key: truncate_integers(item, fields[key].schema) if key in fields else item for key, item in value.items()
        }
    if isinstance(value, list) and schema.items is not None:
        return [truncate_integers(item, schema.items) for item in value]
    return value
