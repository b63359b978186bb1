"""Generate OpenAPI schemas in version 2 (Swagger) and version 3 from the schemas of the table of kinds.

Version 3 wraps references in `allOf`, so that defaults and extensions can be added, and uses `oneOf` for types such as
IntOrString; version 2 supports neither (Kubernetes: kube-openapi). The table has no descriptions; they are passed in if
they are available.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.decoding.objects import zero
from batkube.cluster.schemas import Field, Schema, Shape

Document = dict[str, Any]
Descriptions = Mapping[str, Mapping[str, str]]
"""Descriptions of fields by definition name and field name; the field "" stands for the type itself."""

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
PATCH_DEFINITION = _META + "Patch"
#: Shapes that have a definition of their own, with its name.
_NAMED_SHAPES = {
    Shape.QUANTITY: "io.k8s.apimachinery.pkg.api.resource.Quantity",
    Shape.INT_OR_STRING: "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
    Shape.TIME: _META + "Time",
    Shape.MICRO_TIME: _META + "MicroTime",
    Shape.DURATION: _META + "Duration",
}
#: Shapes that have a default as elements of lists and maps.
_WITH_DEFAULT = (Shape.STRUCT, Shape.STRING, Shape.INTEGER, Shape.BOOLEAN)
_SHAPE_SCHEMAS: dict[str, Document] = {
    "string": {"type": "string"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "float64": {"type": "number", "format": "double"},
    "bool": {"type": "boolean"},
    "[]uint8": {"type": "string", "format": "byte"},
}
#: Definitions that are not structs in version 2; `_OPAQUE_TYPES_V3` has those that differ in version 3.
_OPAQUE_TYPES: dict[str, Document] = {
    _NAMED_SHAPES[Shape.QUANTITY]: {"type": "string"},
    _NAMED_SHAPES[Shape.INT_OR_STRING]: {"type": "string", "format": "int-or-string"},
    _NAMED_SHAPES[Shape.TIME]: {"type": "string", "format": "date-time"},
    _NAMED_SHAPES[Shape.MICRO_TIME]: {"type": "string", "format": "date-time"},
    _NAMED_SHAPES[Shape.DURATION]: {"type": "string"},
    PATCH_DEFINITION: {"type": "object"},
    _META + "FieldsV1": {"type": "object"},
    "io.k8s.apimachinery.pkg.runtime.RawExtension": {"type": "object"},
}
_OPAQUE_TYPES_V3: dict[str, Document] = {
    _NAMED_SHAPES[Shape.QUANTITY]: {"oneOf": [{"type": "string"}, {"type": "number"}]},
    _NAMED_SHAPES[Shape.INT_OR_STRING]: {
        "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
    },
}


class SchemaWriter:
    """Generates schemas in one version of OpenAPI, and collects the definitions that they refer to."""

    def __init__(self, version: int, descriptions: Descriptions) -> None:
        self._version = version
        self.descriptions = descriptions
        self._prefix = "#/components/schemas/" if version == 3 else "#/definitions/"
        #: The definitions generated so far, by name.
        self.definitions: dict[str, Document] = {}

    def reference(self, schema: Schema) -> Document:
        """Return a reference to the definition of a struct; generate the definition if it is new."""
        if schema.name not in self.definitions:
            self.definitions[schema.name] = {}
            self.definitions[schema.name] = self._struct(schema)
        return {"$ref": self._prefix + schema.name}

    def named_reference(self, name: str, document: Document | None = None) -> Document:
        """Return a reference to a definition: to `document` if given, else to the opaque type `name`."""
        if name not in self.definitions:
            plain = {**_OPAQUE_TYPES, **(_OPAQUE_TYPES_V3 if self._version == 3 else {})}
            self.definitions[name] = (
                document if document is not None else {**self._description(name), **plain.get(name, {})}
            )
        return {"$ref": self._prefix + name}

    def _struct(self, schema: Schema) -> Document:
        document: Document = {**self._description(schema.name), "type": "object"}
        required = [field.name for field in schema.fields.values() if field.required]
        if required:
            document["required"] = required
        if schema.fields:
            document["properties"] = {
                field.name: self._property(field, self._description(schema.name, field.name))
                for field in schema.fields.values()
            }
        if schema.atomic:
            document["x-kubernetes-map-type"] = "atomic"
        return document

    def _description(self, name: str, field: str = "") -> Document:
        """Return the `description` of a definition or of one of its fields; an empty document if there is none."""
        text = self.descriptions.get(name, {}).get(field)
        return {"description": text} if text else {}

    def _property(self, field: Field, siblings: Document) -> Document:
        document = self._value_schema(field.schema)
        default = self._default(field)
        if default is not None:
            siblings["default"] = default
        if field.schema.shape is Shape.LIST and field.schema.list_type != "atomic":
            siblings["x-kubernetes-list-type"] = field.schema.list_type
            if field.schema.list_keys:
                siblings["x-kubernetes-list-map-keys"] = list(field.schema.list_keys)
        if field.schema.shape is Shape.MAP and field.schema.atomic:
            siblings["x-kubernetes-map-type"] = "atomic"
        if field.patch_merge_key:
            siblings["x-kubernetes-patch-merge-key"] = field.patch_merge_key
        if field.patch_strategy:
            siblings["x-kubernetes-patch-strategy"] = ",".join(field.patch_strategy)
        return self._with_siblings(document, siblings)

    def _default(self, field: Field) -> Any:  # noqa: ANN401 - any JSON
        """Return the default that OpenAPI states, or None."""
        if self._version == 2:
            return None
        return {} if field.schema.shape is Shape.STRUCT and not field.pointer else field.default

    def _value_schema(self, schema: Schema) -> Document:
        """Return the schema of a value, without the keywords of its field."""
        if schema.shape is Shape.STRUCT:
            return self.reference(schema)
        if schema.shape is Shape.ANY:
            return self.named_reference(schema.name)
        if schema.shape in _NAMED_SHAPES:
            return self.named_reference(_NAMED_SHAPES[schema.shape])
        if schema.items is None:
            document = dict(_SHAPE_SCHEMAS.get(schema.go) or _SHAPE_SCHEMAS[_underlying_go_type(schema.shape)])
            return {**document, "enum": list(schema.enum)} if schema.enum else document
        if schema.shape is Shape.LIST:
            return {"type": "array", "items": self._item_schema(schema.items)}
        return {"type": "object", "additionalProperties": self._item_schema(schema.items)}

    def _item_schema(self, schema: Schema) -> Document:
        document = self._value_schema(schema)
        if self._version == 2 or schema.shape not in _WITH_DEFAULT:
            return document
        return self._with_siblings(document, {"default": {} if schema.shape is Shape.STRUCT else zero(schema)})

    def _with_siblings(self, document: Document, siblings: Document) -> Document:
        """Add keywords to a schema; version 3 does not allow any next to a reference."""
        if "$ref" in document and self._version == 3:
            return {"allOf": [document], **siblings} if siblings else document
        return {**document, **siblings}


def _underlying_go_type(shape: Shape) -> str:
    """Return the underlying type of a named Go type, such as `string` of `v1.Protocol`."""
    return {Shape.STRING: "string", Shape.BOOLEAN: "bool", Shape.NUMBER: "float64"}.get(shape, "int32")
