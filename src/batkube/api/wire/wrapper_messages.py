"""Values that protobuf wraps in a message of their own and JSON does not.

A list of strings with its own Go type is a message with a list. A union such as JSONSchemaPropsOrBool is a message with
a field per alternative. Both are encoded as the equivalent struct.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from batkube.cluster.schemas import Field, Schema, Shape

_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
#: Go's names of lists that are messages: `message ExtraValue { repeated string items = 1; }`.
_WRAPPED_LISTS = ("v1.ExtraValue", "v1.Verbs")


class WrapperMessage(NamedTuple):
    """The equivalent struct of a value, with conversions in both directions."""

    schema: Schema
    wrap: Callable[[Any], dict[str, Any]]
    unwrap: Callable[[dict[str, Any]], Any]


def wrapper_of(schema: Schema) -> WrapperMessage | None:
    """Return the wrapper message of a schema in protobuf, or None if it has none."""
    if schema.shape is Shape.LIST and schema.go in _WRAPPED_LISTS:
        plain = Schema(Shape.LIST, items=schema.items)
        return WrapperMessage(
            _schema_reference(_wrapper_field("items", 1, plain)), lambda value: {"items": value}, _unwrap_items
        )
    if schema.shape is not Shape.ANY or schema.items is None:
        return None
    either = _wrapper_field("schema", 1, schema.items, pointer=True)
    match schema.name.removeprefix(_EXTENSIONS):
        case "JSONSchemaPropsOrBool":
            allows = _wrapper_field("allows", 1, Schema(Shape.BOOLEAN))
            return WrapperMessage(
                _schema_reference(allows, _wrapper_field("schema", 2, schema.items, pointer=True)),
                _wrap_schema_or_bool,
                _unwrap_schema_or_bool,
            )
        case "JSONSchemaPropsOrArray":
            return WrapperMessage(
                _schema_reference(either, _wrapped_list("jSONSchemas", schema.items)),
                _wrap_schema_or("jSONSchemas"),
                _unwrap_schema_or_list,
            )
        case "JSONSchemaPropsOrStringArray":
            texts = _wrapped_list("property", Schema(Shape.STRING))
            return WrapperMessage(_schema_reference(either, texts), _wrap_schema_or("property"), _unwrap_schema_or_list)
    return None


def _wrapper_field(name: str, number: int, schema: Schema, pointer: bool = False) -> Field:
    return Field(name, schema, pointer=pointer, number=number)


def _wrapped_list(name: str, items: Schema) -> Field:
    return _wrapper_field(name, 2, Schema(Shape.LIST, items=items))


def _schema_reference(*fields: Field) -> Schema:
    return Schema(Shape.STRUCT, fields={field.name: field for field in fields})


def _unwrap_items(value: dict[str, Any]) -> list[Any]:
    items: list[Any] = value.get("items", [])
    return items


def _wrap_schema_or_bool(value: bool | dict[str, Any]) -> dict[str, Any]:
    return {"allows": value} if isinstance(value, bool) else {"allows": True, "schema": value}


def _unwrap_schema_or_bool(value: dict[str, Any]) -> bool | dict[str, Any]:
    schema: bool | dict[str, Any] = value.get("schema", value.get("allows", False))
    return schema


def _wrap_schema_or(name: str) -> Callable[[Any], dict[str, Any]]:
    return lambda value: {name: value} if isinstance(value, list) else {"schema": value}


def _unwrap_schema_or_list(value: dict[str, Any]) -> list[Any] | dict[str, Any] | None:
    return value.get("jSONSchemas") or value.get("property") or value.get("schema")
