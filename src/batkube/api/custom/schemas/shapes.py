"""The schema of a custom kind, in the form that field ownership and discovery use.

It follows the conversion for server-side apply: an object with properties has exactly these fields, an object without
properties is free-form, and x-kubernetes-preserve-unknown-fields allows unknown fields at every level below it.

Kubernetes: kube-openapi/pkg/schemaconv/openapi.go.
"""

from __future__ import annotations

from batkube.api.custom.schemas.structural import META_FIELDS, StructuralSchema
from batkube.cluster.schemas import Field, Schema, Shape

_STRING = Schema(Shape.STRING, go="string")
_ANY = Schema(Shape.ANY)
_SCALARS = {
    "string": _STRING,
    "integer": Schema(Shape.INTEGER, go="int64"),
    "number": Schema(Shape.NUMBER, go="float64"),
    "boolean": Schema(Shape.BOOLEAN, go="bool"),
}
_INT_OR_STRING = Schema(Shape.INT_OR_STRING)


def custom_object_schema(schema: StructuralSchema | None, metadata: Schema) -> Schema:
    """Return the schema of a custom object; `metadata` is the schema of its metadata."""
    if schema is None:
        shape = Schema(Shape.STRUCT, keeps_unknown=True)
    else:
        shape = _object_schema(schema, schema.preserves_unknown, metadata)
    shape.fields = {**_type_meta_fields(metadata), **{k: v for k, v in shape.fields.items() if k not in META_FIELDS}}
    return shape


def _type_meta_fields(metadata: Schema) -> dict[str, Field]:
    return {
        "apiVersion": Field("apiVersion", _STRING),
        "kind": Field("kind", _STRING),
        "metadata": Field("metadata", metadata, omit_empty=False),
    }


def _to_schema(schema: StructuralSchema, keeps_unknown: bool, metadata: Schema) -> Schema:
    keeps_unknown = keeps_unknown or schema.preserves_unknown
    if schema.int_or_string:
        return _INT_OR_STRING
    kind = schema.type
    if kind == "object":
        return _object_schema(schema, keeps_unknown, metadata)
    if kind == "array":
        items = schema.items
        return Schema(
            Shape.LIST,
            items=_ANY if items is None else _to_schema(items, keeps_unknown, metadata),
            list_type=schema.list_type or "atomic",
            list_keys=schema.list_keys,
        )
    return _SCALARS.get(kind, _ANY)


def _object_schema(schema: StructuralSchema, keeps_unknown: bool, metadata: Schema) -> Schema:
    atomic = schema.map_type == "atomic"
    if schema.additional is not None and not schema.properties:
        return Schema(Shape.MAP, items=_to_schema(schema.additional, keeps_unknown, metadata), atomic=atomic)
    if schema.additional_allowed and not schema.properties:
        return Schema(Shape.MAP, items=_ANY, atomic=atomic)
    fields = {
        name: Field(
            name, _to_schema(part, keeps_unknown, metadata), required=name in schema.required, default=part.default
        )
        for name, part in schema.properties.items()
    }
    if schema.embedded:
        fields = {**fields, **_type_meta_fields(metadata)}
    is_free = not schema.properties and schema.additional_allowed is None
    return Schema(Shape.STRUCT, fields=fields, atomic=atomic, keeps_unknown=keeps_unknown or is_free)
