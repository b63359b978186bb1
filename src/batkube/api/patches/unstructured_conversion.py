"""What is wrong with the types of a patched object, in the words that only strategic merge patches and applies get.

The real server turns their results straight into Go structs, without JSON in between, and that converter complains in
its own way, and takes numbers that JSON would refuse (Kubernetes: apimachinery/pkg/runtime/converter.go,
fromUnstructured). Decoding finds out whether there is a problem at all; this finds the words for it.
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
"""Decodes an object, and lists the fields in it that its kind does not have."""


def from_unstructured(document: Json, schema: Schema, decode: Decode) -> tuple[KubeObject, list[str]]:
    """Return what the converter makes of an object; raises DecodeError with its words."""
    try:
        return decode(document)
    except DecodeError as problem:
        words = conversion_problem(document, schema)
        if words is not None:
            raise DecodeError(words) from problem
    try:
        return decode(truncate_integers(document, schema))
    except DecodeError as problem:
        prefix = "error decoding from json: " if "base64" in str(problem) else ""
        raise DecodeError(prefix + str(problem)) from problem


def conversion_problem(value: Json, schema: Schema) -> str | None:
    """Return the first thing that keeps `value` from being what `schema` says; None if the converter has no words."""
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
    """Say what types say that read JSON themselves."""
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
    """Compare as Go's reflection does: a number can be made into a text, but the converter refuses to."""
    wanted = _SCALARS.get(schema.shape)
    if wanted is None or type(value) is wanted or (wanted is float and type(value) is int):
        return None
    if type(value) is float and wanted is int and value.is_integer():
        return None
    if (type(value), wanted) in ((int, str), (float, int)):
        return f"cannot convert {kind} to {schema.go.removeprefix('*')}"
    return f"unrecognized type: {_go_kind(schema)}"


def _go_kind(schema: Schema) -> str:
    """Return the basic Go type: that of a named one is what its shape says."""
    go = schema.go.removeprefix("*")
    if "." not in go:
        return go
    return {Shape.STRING: "string", Shape.BOOLEAN: "bool", Shape.INTEGER: "int32"}.get(schema.shape, "float64")


def truncate_integers(value: Json, schema: Schema) -> Json:
    """Return `value` with integers as the converter makes them: it takes `2.0` for 2, and of too many bits the last."""
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
