"""Parts of a definition as kube-apiserver quotes them in error messages: structs of its internal Go types.

These types have no JSON tags, so all fields are printed, by their Go names and in Go's order.

Kubernetes: apiextensions-apiserver/pkg/apis/apiextensions, types.go and types_jsonschema.go.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from batkube.api.custom.schemas.structural import Json, RawSchema
from batkube.api.validation.field_errors import GO_ESCAPES, Verbatim

_Row = tuple[str, str, Callable[[Any], Any]]


def go_versions(versions: Sequence[dict[str, Any]]) -> Verbatim:
    """Return `spec.versions` as error messages print it; an empty list is null."""
    return _verbatim([_struct(_VERSION, version) for version in versions] or None)


def go_schema(raw: RawSchema) -> Verbatim:
    """Return a schema as error messages print it."""
    return _verbatim(_schema(raw))


def go_rule(rule: dict[str, Any]) -> Verbatim:
    """Return an entry of x-kubernetes-validations as error messages print it."""
    return _verbatim(_struct(_RULE, rule))


def schema_fields(raw: RawSchema) -> list[str]:
    """Return the Go names of the fields that a schema sets."""
    return [go for key, go, show in _SCHEMA if show(raw.get(key)) != show(None)]


def _verbatim(value: Json) -> Verbatim:
    return Verbatim(json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(GO_ESCAPES))


def _struct(rows: Sequence[_Row], value: dict[str, Any]) -> dict[str, Any]:
    return {go: show(value.get(key)) for key, go, show in rows}


def _or_zero(zero: Json) -> Callable[[Any], Any]:
    return lambda value: zero if value is None else value


_text, _flag, _number, _pointer = _or_zero(""), _or_zero(False), _or_zero(0), _or_zero(None)


def _json(value: Json) -> Json:
    """Return a JSON value of the user with sorted keys."""
    if isinstance(value, dict):
        return {key: _json(value[key]) for key in sorted(value)}
    return [_json(item) for item in value] if isinstance(value, list) else value


def _list(value: Json) -> Json:
    """An unset list is null; so is an empty one, after conversion between versions."""
    return value or None


def _schema(value: Json) -> Json:
    return None if value is None else _struct(_SCHEMA, value)


def _schemas(value: Json) -> Json:
    return [_schema(part) for part in value] if value else None


def _schema_map(value: Json) -> Json:
    return {key: _schema(value[key]) for key in sorted(value)} if value else None


def _schema_or_list(value: Json) -> Json:
    if value is None:
        return None
    is_list = isinstance(value, list)
    return {"Schema": None if is_list else _schema(value), "JSONSchemas": _schemas(value) if is_list else None}


def _schema_or_bool(value: Json) -> Json:
    if value is None:
        return None
    is_schema = isinstance(value, dict)
    return {"Allows": is_schema or value is True, "Schema": _schema(value) if is_schema else None}


def _dependencies(value: Json) -> Json:
    if not value:
        return None
    return {
        key: {
            "Schema": _schema(value[key]) if isinstance(value[key], dict) else None,
            "Property": value[key] if isinstance(value[key], list) else None,
        }
        for key in sorted(value)
    }


def _documentation(value: Json) -> Json:
    return None if value is None else {"Description": value.get("description", ""), "URL": value.get("url", "")}


def _rules(value: Json) -> Json:
    return [_struct(_RULE, rule) for rule in value] if value else None


def _validation(value: Json) -> Json:
    return None if value is None else {"OpenAPIV3Schema": _schema(value.get("openAPIV3Schema"))}


def _subresources(value: Json) -> Json:
    return None if value is None else _struct(_SUBRESOURCES, value)


def _scale(value: Json) -> Json:
    return None if value is None else _struct(_SCALE, value)


def _columns(value: Json) -> Json:
    return [_struct(_COLUMN, column) for column in value] if value else None


def _selectable(value: Json) -> Json:
    return [{"JSONPath": field.get("jsonPath", "")} for field in value] if value else None


_SCHEMA: tuple[_Row, ...] = (
    ("id", "ID", _text),
    ("$schema", "Schema", _text),
    ("$ref", "Ref", _pointer),
    ("description", "Description", _text),
    ("type", "Type", _text),
    ("nullable", "Nullable", _flag),
    ("format", "Format", _text),
    ("title", "Title", _text),
    ("default", "Default", _json),
    ("maximum", "Maximum", _pointer),
    ("exclusiveMaximum", "ExclusiveMaximum", _flag),
    ("minimum", "Minimum", _pointer),
    ("exclusiveMinimum", "ExclusiveMinimum", _flag),
    ("maxLength", "MaxLength", _pointer),
    ("minLength", "MinLength", _pointer),
    ("pattern", "Pattern", _text),
    ("maxItems", "MaxItems", _pointer),
    ("minItems", "MinItems", _pointer),
    ("uniqueItems", "UniqueItems", _flag),
    ("multipleOf", "MultipleOf", _pointer),
    ("enum", "Enum", lambda value: _json(value) or None),
    ("maxProperties", "MaxProperties", _pointer),
    ("minProperties", "MinProperties", _pointer),
    ("required", "Required", _list),
    ("items", "Items", _schema_or_list),
    ("allOf", "AllOf", _schemas),
    ("oneOf", "OneOf", _schemas),
    ("anyOf", "AnyOf", _schemas),
    ("not", "Not", _schema),
    ("properties", "Properties", _schema_map),
    ("additionalProperties", "AdditionalProperties", _schema_or_bool),
    ("patternProperties", "PatternProperties", _schema_map),
    ("dependencies", "Dependencies", _dependencies),
    ("additionalItems", "AdditionalItems", _schema_or_bool),
    ("definitions", "Definitions", _schema_map),
    ("externalDocs", "ExternalDocs", _documentation),
    ("example", "Example", _json),
    ("x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields", _pointer),
    ("x-kubernetes-embedded-resource", "XEmbeddedResource", _flag),
    ("x-kubernetes-int-or-string", "XIntOrString", _flag),
    ("x-kubernetes-list-map-keys", "XListMapKeys", _list),
    ("x-kubernetes-list-type", "XListType", _pointer),
    ("x-kubernetes-map-type", "XMapType", _pointer),
    ("x-kubernetes-validations", "XValidations", _rules),
)
_RULE: tuple[_Row, ...] = (
    ("rule", "Rule", _text),
    ("message", "Message", _text),
    ("messageExpression", "MessageExpression", _text),
    ("reason", "Reason", _pointer),
    ("fieldPath", "FieldPath", _text),
    ("optionalOldSelf", "OptionalOldSelf", _pointer),
)
_SCALE: tuple[_Row, ...] = (
    ("specReplicasPath", "SpecReplicasPath", _text),
    ("statusReplicasPath", "StatusReplicasPath", _text),
    ("labelSelectorPath", "LabelSelectorPath", _pointer),
)
_SUBRESOURCES: tuple[_Row, ...] = (("status", "Status", _pointer), ("scale", "Scale", _scale))
_COLUMN: tuple[_Row, ...] = (
    ("name", "Name", _text),
    ("type", "Type", _text),
    ("format", "Format", _text),
    ("description", "Description", _text),
    ("priority", "Priority", _number),
    ("jsonPath", "JSONPath", _text),
)
_VERSION: tuple[_Row, ...] = (
    ("name", "Name", _text),
    ("served", "Served", _flag),
    ("storage", "Storage", _flag),
    ("deprecated", "Deprecated", _flag),
    ("deprecationWarning", "DeprecationWarning", _pointer),
    ("schema", "Schema", _validation),
    ("subresources", "Subresources", _subresources),
    ("additionalPrinterColumns", "AdditionalPrinterColumns", _columns),
    ("selectableFields", "SelectableFields", _selectable),
)
