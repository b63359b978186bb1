"""Schemas of built-in kinds: one compact line per Go struct in a file of `kind_tables` becomes a `Schema` on first use.

A field is written `[type, protobuf number, markers]`. Types have this grammar, close to Go's own:

    *T                a pointer             []T              a list          map[K]T      a map
    v1.Phase=string   a type with a name    any=io.k8s.X     free-form JSON with a Go type of its own
    io.k8s.X          another definition    string, int32, bool, quantity, time, …   a value

A definition may contain itself (JSONSchemaProps does), so a schema is cached before its fields are read.
"""

from __future__ import annotations

from typing import Any

from batkube.cluster.schemas import Field, Schema, Shape

#: The scalar types, with their names in Go's error messages.
_VALUE_TYPES = {
    "string": (Shape.STRING, "string"),
    "int32": (Shape.INTEGER, "int32"),
    "int64": (Shape.INTEGER, "int64"),
    "float64": (Shape.NUMBER, "float64"),
    "bool": (Shape.BOOLEAN, "bool"),
    "bytes": (Shape.BYTES, "[]uint8"),
    "quantity": (Shape.QUANTITY, "resource.Quantity"),
    "int-or-string": (Shape.INT_OR_STRING, "intstr.IntOrString"),
    "time": (Shape.TIME, "v1.Time"),
    "micro-time": (Shape.MICRO_TIME, "v1.MicroTime"),
    "duration": (Shape.DURATION, "v1.Duration"),
}
#: How protobuf writes a field of each shape; all others are length-delimited ("bytes").
_WIRE_TYPES = {Shape.INTEGER: "varint", Shape.BOOLEAN: "varint", Shape.NUMBER: "fixed64"}
_ZEROS = {Shape.STRING: "", Shape.INTEGER: 0, Shape.NUMBER: 0, Shape.BOOLEAN: False}
_NO_MARKERS: dict[str, Any] = {}
_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
#: Free-form JSON types whose elements may be schemas of a CustomResourceDefinition.
_MAY_HOLD_SCHEMAS = tuple(_EXTENSIONS + "JSONSchemaPropsOr" + other for other in ("Array", "Bool", "StringArray"))


def go_name(definition: str) -> str:
    """Return a type's name as Go prints it: `io.k8s.api.core.v1.Pod` is `v1.Pod`."""
    return ".".join(definition.rsplit(".", 2)[1:])


class Definitions:
    """The structs of the table, parsed on demand."""

    def __init__(self, raw: dict[str, Any]) -> None:
        #: The compact lines by OpenAPI name.
        self._raw = raw
        #: Every schema parsed so far: definitions by name, other types by their expression.
        self._schemas: dict[str, Schema] = {}

    def names(self) -> list[str]:
        """Return the OpenAPI names of all definitions, sorted."""
        return list(self._raw)

    def schema(self, name: str) -> Schema:
        """Return the schema of a definition; raise KeyError if there is none."""
        return self._schemas.get(name) or self._read_struct(name)

    def _read_struct(self, name: str) -> Schema:
        raw = self._raw[name]
        schema = Schema(Shape.STRUCT, go=go_name(name), name=name, fields={}, atomic=raw.get("atomic", False))
        self._schemas[name] = schema
        for field, line in raw["fields"].items():
            schema.fields[field] = self._field(field, *line)
        return schema

    def _field(self, name: str, expression: str, number: int, markers: dict[str, Any] = _NO_MARKERS) -> Field:
        pointer = expression[0] == "*"
        schema = self._type_with_markers(expression[1:] if pointer else expression, markers)
        if not markers:
            return Field(name, schema, pointer=pointer, number=number, wire=_wire_type(schema))
        return Field(
            name,
            schema,
            required=markers.get("required", False),
            omit_empty=not markers.get("always", False),
            omit_zero=markers.get("omit_zero", False),
            pointer=pointer,
            default=markers["default"] if "default" in markers else _implied_default(schema, pointer, markers),
            patch_strategy=tuple(markers.get("patch", ())),
            patch_merge_key=markers.get("merge_key", ""),
            number=number,
            wire=_wire_type(schema),
            within=tuple(markers.get("within", ())),
        )

    def _type_with_markers(self, expression: str, markers: dict[str, Any]) -> Schema:
        """Return the schema of a type, extended by the markers of its field (enum values, list type, …)."""
        schema = self._type(expression)
        if "enum" in markers:
            if schema.items is not None:
                return _copy_with(
                    schema, items=_copy_with(schema.items, enum=tuple(markers["enum"])), **_merge_options(markers)
                )
            return _copy_with(schema, enum=tuple(markers["enum"]))
        merging = _merge_options(markers)
        return _copy_with(schema, **merging) if merging else schema

    def _type(self, expression: str) -> Schema:
        schema = self._schemas.get(expression)
        if schema is None:
            schema = self._read_struct(expression) if expression in self._raw else self._parse_type(expression)
            self._schemas[expression] = schema
        return schema

    def _parse_type(self, expression: str) -> Schema:
        if expression in _VALUE_TYPES:
            shape, go = _VALUE_TYPES[expression]
            return Schema(shape, go=go)
        if expression.startswith("[]"):
            items = self._type(expression[2:].lstrip("*"))
            return Schema(Shape.LIST, go="[]" + items.go, items=items)
        if expression.startswith("map["):
            key, _, value = expression[4:].partition("]")
            items = self._type(value.lstrip("*"))
            return Schema(Shape.MAP, go=f"map[{key.partition('=')[0]}]{items.go}", items=items)
        name, _, meaning = expression.partition("=")
        if name == "any":
            items_schema = self._type(_EXTENSIONS + "JSONSchemaProps") if meaning in _MAY_HOLD_SCHEMAS else None
            return Schema(Shape.ANY, go=go_name(meaning), name=meaning, items=items_schema)
        return _copy_with(self._type(meaning), go=name)


def _implied_default(schema: Schema, pointer: bool, markers: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON
    """Return Go's zero value as the default of a field without `omitempty` (kube-openapi: pkg/generators)."""
    return _ZEROS.get(schema.shape) if markers.get("always") and not pointer else None


def _wire_type(schema: Schema) -> str:
    value = schema.items if schema.shape is Shape.LIST and schema.items is not None else schema
    return _WIRE_TYPES.get(value.shape, "bytes")


def _merge_options(markers: dict[str, Any]) -> dict[str, Any]:
    """Return the merge strategy that the markers give a list or map, as arguments of a Schema."""
    merging: dict[str, Any] = {}
    if "list" in markers:
        merging = {"list_type": markers["list"], "list_keys": tuple(markers.get("keys", ()))}
    if "atomic" in markers or "granular" in markers:
        # The marker of a field overrides that of its type.
        merging["atomic"] = "atomic" in markers
    return merging


def _copy_with(schema: Schema, **changes: Any) -> Schema:  # noqa: ANN401 - any attribute of a Schema
    """Return a copy with `changes`. A struct shares its fields, which may not be complete yet."""
    values = {name: getattr(schema, name) for name in Schema.__struct_fields__}
    return Schema(**{**values, "decoder": None, **changes})
