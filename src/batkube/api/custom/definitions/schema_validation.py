"""Validation of a definition's schema, keyword by keyword.

Kubernetes: apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go,
ValidateCustomResourceDefinitionOpenAPISchema.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from batkube.api.custom.definitions.structural_validation import unsupported_keyword
from batkube.api.custom.schemas.field_paths import BadFieldPath, resolve_field_path
from batkube.api.custom.schemas.structural import META_FIELDS, RawSchema, parse_structural
from batkube.api.validation.problems import Problems, mark_repeats

TYPES = ("array", "boolean", "integer", "number", "object", "string")
_RULE_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_UNSUPPORTED_KEYWORDS = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_has_newline = re.compile(r"[\n\r]").search


class _SchemaContext(msgspec.Struct, frozen=True):
    """Restrictions that depend on the position of a schema."""

    #: Why a default is forbidden here; "" if it is allowed.
    defaults_forbidden: str = ""
    inside_metadata: bool = False


def validate_schema(raw: RawSchema, path: str) -> Problems:
    """Validate the whole schema of a version."""
    problems = Problems()
    _check_schema(raw, path, _SchemaContext(), problems, is_root=True)
    return problems


def _check_schema(
    raw: RawSchema, path: str, context: _SchemaContext, problems: Problems, *, is_root: bool = False
) -> None:
    _check_keywords(raw, path, context, problems)
    if raw.get("uniqueItems"):
        problems.forbidden(
            f"{path}.uniqueItems", "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        )
    _check_additional_properties(raw, path, context, problems)
    for name, part in (raw.get("properties") or {}).items():
        below = context
        if (is_root or raw.get("x-kubernetes-embedded-resource")) and name in META_FIELDS:
            reason = f"in top-level {name}" if is_root else context.defaults_forbidden
            below = _SchemaContext(defaults_forbidden=reason, inside_metadata=True)
        _check_schema(part, f"{path}.properties[{name}]", below, problems)
    _check_subschemas(raw, path, context, problems)
    if raw.get("x-kubernetes-preserve-unknown-fields") is False:
        problems.invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
    _check_map_type(raw, path, problems)
    _check_list_type(raw, path, problems)
    if raw.get("x-kubernetes-list-type") == "map":
        _check_map_list(raw, path, problems)
    _check_key_rules(raw, path, problems)
    for index, rule in enumerate(raw.get("x-kubernetes-validations") or ()):
        _check_rule(raw, rule, f"{path}.x-kubernetes-validations[{index}]", problems)


def _check_keywords(raw: RawSchema, path: str, context: _SchemaContext, problems: Problems) -> None:
    """Check against OpenAPI v3 as Kubernetes supports it (specStandardValidatorV3)."""
    kind = raw.get("type") or ""
    if kind and kind not in TYPES:
        problems.not_supported(f"{path}.type", kind, TYPES)
    if raw.get("default") is not None and context.defaults_forbidden:
        problems.forbidden(f"{path}.default", f"must not be set {context.defaults_forbidden}")
    for key in _UNSUPPORTED_KEYWORDS:
        if raw.get(key) or (key in ("additionalItems", "dependencies", "$ref") and raw.get(key) is not None):
            problems.forbidden(f"{path}.{key}", f"{key} is not supported")
    if kind == "null":
        problems.forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    if isinstance(raw.get("items"), list):
        problems.forbidden(f"{path}.items", "items must be a schema object and not an array")
    if context.inside_metadata and raw.get("x-kubernetes-embedded-resource"):
        problems.forbidden(f"{path}.x-kubernetes-embedded-resource", "must not be used inside of resource meta")


def _check_additional_properties(raw: RawSchema, path: str, context: _SchemaContext, problems: Problems) -> None:
    additional = raw.get("additionalProperties")
    if additional is None:
        return
    if raw.get("properties") and additional is not True:
        problems.forbidden(f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive")
    if isinstance(additional, dict):
        if context.inside_metadata:
            context = _SchemaContext("inside additionalProperties applying to object metadata", inside_metadata=True)
        _check_schema(additional, f"{path}.additionalProperties", context, problems)


def _check_subschemas(raw: RawSchema, path: str, context: _SchemaContext, problems: Problems) -> None:
    if raw.get("not") is not None:
        _check_schema(raw["not"], f"{path}.not", context, problems)
    for key in ("allOf", "oneOf", "anyOf"):
        for index, part in enumerate(raw.get(key) or ()):
            _check_schema(part, f"{path}.{key}[{index}]", context, problems)
    for name, part in (raw.get("definitions") or {}).items():
        _check_schema(part, f"{path}.definitions[{name}]", context, problems)
    items = raw.get("items")
    if isinstance(items, dict):
        _check_schema(items, f"{path}.items", context, problems)
    for index, part in enumerate(items if isinstance(items, list) else ()):
        _check_schema(part, f"{path}.items[{index}]", context, problems)
    for name, part in (raw.get("dependencies") or {}).items():
        if isinstance(part, dict):
            _check_schema(part, f"{path}.dependencies[{name}]", context, problems)


def _require_type(kind: str, extension: str, raw: RawSchema, path: str, problems: Problems) -> bool:
    own = raw.get("type") or ""
    if own == kind:
        return True
    problem = f"must be {kind} if {extension} is specified"
    if own:
        problems.invalid(f"{path}.type", own, problem)
    else:
        problems.required(f"{path}.type", problem)
    return False


def _check_map_type(raw: RawSchema, path: str, problems: Problems) -> None:
    map_type = raw.get("x-kubernetes-map-type")
    if map_type is None:
        return
    _require_type("object", "x-kubernetes-map-type", raw, path, problems)
    if map_type not in ("atomic", "granular"):
        problems.not_supported(f"{path}.x-kubernetes-map-type", map_type, ("atomic", "granular"))


def _check_list_type(raw: RawSchema, path: str, problems: Problems) -> None:
    list_type = raw.get("x-kubernetes-list-type")
    if list_type is not None:
        is_array = _require_type("array", "x-kubernetes-list-type", raw, path, problems)
        if is_array and list_type == "set" and isinstance(raw.get("items"), dict):
            _check_set_items(raw["items"], f"{path}.items", problems)
        if list_type not in ("atomic", "set", "map"):
            problems.not_supported(f"{path}.x-kubernetes-list-type", list_type, ("atomic", "set", "map"))
    if raw.get("x-kubernetes-list-map-keys"):
        problem = "must be map if x-kubernetes-list-map-keys is non-empty"
        if list_type is None:
            problems.required(f"{path}.x-kubernetes-list-type", problem)
        elif list_type != "map":
            problems.invalid(f"{path}.x-kubernetes-list-type", list_type, problem)


def _check_set_items(items: RawSchema, path: str, problems: Problems) -> None:
    """Check that the items of a set are scalars or atomic; both messages quote the items' list type."""
    problem = "must be atomic as item of a list with x-kubernetes-list-type=set"
    list_type = items.get("x-kubernetes-list-type")
    if items.get("type") == "array" and list_type not in (None, "atomic"):
        problems.invalid(f"{path}.x-kubernetes-list-type", list_type, problem)
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        problems.invalid(f"{path}.x-kubernetes-map-type", list_type, problem)


def _check_map_list(raw: RawSchema, path: str, problems: Problems) -> None:
    keys, items = raw.get("x-kubernetes-list-map-keys") or [], raw.get("items")
    if not keys:
        problems.required(f"{path}.x-kubernetes-list-map-keys", "must not be empty if x-kubernetes-list-type is map")
    if items is None:
        problems.required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
    if not isinstance(items, dict):
        return
    if items.get("type") != "object":
        problem = "must be object if parent array's x-kubernetes-list-type is map"
        problems.invalid(f"{path}.items.type", items.get("type") or "", problem)
        return
    properties = items.get("properties") or {}
    for key, is_repeated in zip(keys, mark_repeats(keys), strict=True):
        if key not in properties:
            problems.invalid(f"{path}.x-kubernetes-list-map-keys", keys, "entries must all be names of item properties")
        elif properties[key].get("type") in ("array", "object"):
            problem = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            problems.invalid(f"{path}.items.properties[{key}].type", "object", problem)
        if is_repeated:
            problems.invalid(f"{path}.x-kubernetes-list-map-keys", keys, "must not contain duplicate entries")


def _check_key_rules(raw: RawSchema, path: str, problems: Problems) -> None:
    """Check that sets and maps declare items, and that map keys are always set (validateMapListKeysMapSet)."""
    list_type, items = raw.get("x-kubernetes-list-type"), raw.get("items")
    if not isinstance(items, dict) or list_type not in ("set", "map"):
        return
    if items.get("nullable"):
        problem = f"cannot be nullable when x-kubernetes-list-type is {list_type}"
        problems.forbidden(f"{path}.items.nullable", problem)
    if list_type == "set":
        return
    property_text = "this property is in x-kubernetes-list-map-keys, so it"
    for key in raw.get("x-kubernetes-list-map-keys") or ():
        part: Any = (items.get("properties") or {}).get(key)
        if part is None:
            continue
        below = f"{path}.items.properties[{key}]"
        if key not in (items.get("required") or ()) and part.get("default") is None:
            problems.required(f"{below}.default", f"{property_text} must have a default or be a required property")
        if part.get("nullable"):
            problems.forbidden(f"{below}.nullable", f"{property_text} cannot be nullable")


def _check_rule(raw: RawSchema, rule: dict[str, Any], path: str, problems: Problems) -> None:
    """Check the fields of a CEL rule other than its expression."""
    text, message = (rule.get("rule") or "").strip(), (rule.get("message") or "").strip()
    if not text:
        problems.required(f"{path}.rule", "rule is not specified")
    elif rule.get("message") and not message:
        problems.invalid(f"{path}.message", rule["message"], "must be non-empty if specified")
    elif _has_newline(message):
        problems.invalid(f"{path}.message", rule["message"], "must not contain line breaks")
    elif _has_newline(text) and not message:
        problems.required(f"{path}.message", "message must be specified if rule contains line breaks")
    expression = rule.get("messageExpression")
    if expression and not expression.strip():
        problems.required(f"{path}.messageExpression", "messageExpression must be non-empty if specified")
    reason = rule.get("reason")
    if reason is not None and reason not in _RULE_REASONS:
        problems.not_supported(f"{path}.reason", reason, _RULE_REASONS)
    _check_rule_path(raw, rule.get("fieldPath") or "", f"{path}.fieldPath", problems)


def _check_rule_path(raw: RawSchema, field_path: str, path: str, problems: Problems) -> None:
    if not field_path:
        return
    if not field_path.strip():
        problems.invalid(path, field_path, "must be non-empty if specified")
    if _has_newline(field_path):
        problems.invalid(path, field_path, "must not contain line breaks")
    if unsupported_keyword(raw):
        return
    try:
        resolve_field_path(field_path, parse_structural(raw))
    except BadFieldPath:
        problems.invalid(path, field_path, "must be a valid path")
