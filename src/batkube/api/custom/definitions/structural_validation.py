"""Validation that a schema is structural: every value has one type, specified outside anyOf, allOf, oneOf and not.

Only structural schemas can be pruned, defaulted and published, so the server rejects all others.

Kubernetes: apiextensions-apiserver/pkg/apiserver/schema/validation.go and complete.go.
"""

from __future__ import annotations

from batkube.api.cel.functions import regex
from batkube.api.custom.schemas.structural import RawSchema, subschema
from batkube.api.validation.field_errors import FieldError
from batkube.api.validation.problems import Problems

_ROOT, _ITEM, _FIELD = "at the root", "for specified array items", "for specified object fields"
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]

#: Keywords that are forbidden inside anyOf and the like, and the error message for each.
_FORBIDDEN_INSIDE = (
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
)
#: Fields that are set even if they are empty.
_POINTER_FIELDS = ("default", "x-kubernetes-list-type", "x-kubernetes-map-type")
#: Keywords that no schema may have, by their name in the error message.
_UNSUPPORTED = {
    "id": "id",
    "$schema": "schema",
    "$ref": "$ref",
    "patternProperties": "patternProperties",
    "dependencies": "dependencies",
    "additionalItems": "additionalItems",
    "definitions": "definitions",
}


def unsupported_keyword(raw: RawSchema) -> str:
    """Return why a schema cannot be parsed as structural at all, or ""."""
    for key, name in _UNSUPPORTED.items():
        if raw.get(key) or (key == "additionalItems" and raw.get(key) is not None):
            return f"OpenAPIV3Schema '{name}' is not supported"
    if raw.get("x-kubernetes-preserve-unknown-fields") is False:
        return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
    if isinstance(raw.get("items"), list):
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    return next((problem for part in _direct_subschemas(raw) if (problem := unsupported_keyword(part))), "")


def _direct_subschemas(raw: RawSchema) -> list[RawSchema]:
    parts = [part for key in ("allOf", "anyOf", "oneOf") for part in raw.get(key) or ()]
    parts += [part for key in ("not", "items", "additionalProperties") if isinstance(part := raw.get(key), dict)]
    return parts + list((raw.get("properties") or {}).values())


def validate_structural(raw: RawSchema, path: str) -> list[FieldError]:
    """Return why a schema is not structural, sorted as in kube-apiserver."""
    problems = Problems()
    _check_invariants(raw, _ROOT, path, problems)
    _check_completeness(raw, raw, path, path, problems)
    return sorted(problems, key=lambda error: f"{error.field}: {error.message}")


def _check_invariants(raw: RawSchema, level: str, path: str, problems: Problems) -> None:
    """Check a schema and all schemas below it (validateStructuralInvariants)."""
    kind, items = raw.get("type") or "", subschema(raw, "items")
    additional = raw.get("additionalProperties")
    if kind == "array" and items is None:
        problems.required(f"{path}.items", "must be specified")
    if items is not None:
        _check_invariants(items, _ITEM, f"{path}.items", problems)
    for name, part in (raw.get("properties") or {}).items():
        _check_invariants(part, _FIELD, f"{path}.properties[{name}]", problems)
    if additional is not None and level is _ROOT:
        problems.forbidden(f"{path}.additionalProperties", "must not be used at the root")
    if isinstance(additional, dict):
        _check_invariants(additional, _FIELD, f"{path}.additionalProperties", problems)
    _check_extensions(raw, path, problems)
    _check_value_validation(raw, path, problems, may_be_either=True)
    _check_type(raw, kind, level, path, problems)
    _check_metadata(raw, level, path, problems)


def _check_extensions(raw: RawSchema, path: str, problems: Problems) -> None:
    if raw.get("x-kubernetes-int-or-string"):
        for extension in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
            if raw.get(extension):
                problems.invalid(f"{path}.{extension}", True, "must be false if x-kubernetes-int-or-string is true")


def _check_type(raw: RawSchema, kind: str, level: str, path: str, problems: Problems) -> None:
    embedded = raw.get("x-kubernetes-embedded-resource")
    keeps = raw.get("x-kubernetes-preserve-unknown-fields")
    if embedded and kind != "object":
        problem = "must be object if x-kubernetes-embedded-resource is true"
        if kind:
            problems.invalid(f"{path}.type", kind, problem)
        else:
            problems.required(f"{path}.type", problem)
    elif not kind and not raw.get("x-kubernetes-int-or-string") and not keeps:
        problems.required(f"{path}.type", f"must not be empty {level}")
    if embedded and raw.get("additionalProperties") is not None:
        problems.forbidden(f"{path}.additionalProperties", "must not be used if x-kubernetes-embedded-resource is set")
    if level is _ROOT and kind and kind != "object":
        problems.invalid(f"{path}.type", kind, "must be object at the root")
    if embedded and not keeps and not raw.get("properties"):
        problems.required(
            f"{path}.properties",
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        )


def _check_metadata(raw: RawSchema, level: str, path: str, problems: Problems) -> None:
    """Check the schemas of apiVersion, kind and metadata, which the server itself defines."""
    properties = raw.get("properties") or {}
    is_resource = level is _ROOT or raw.get("x-kubernetes-embedded-resource")
    for name in ("kind", "apiVersion"):
        if is_resource and name in properties and properties[name].get("type") != "string":
            kind = properties[name].get("type") or ""
            problems.invalid(f"{path}.properties[{name}].type", kind, "must be string")
    metadata = properties.get("metadata")
    if metadata is None:
        return
    if is_resource and metadata.get("type") != "object":
        problems.invalid(f"{path}.properties[metadata].type", metadata.get("type") or "", "must be object")
    if level is _ROOT:
        restricted = set(metadata.get("properties") or {}) - {"name", "generateName"}
        other_keys = [key for key, value in metadata.items() if key not in ("type", "properties", "default") and value]
        if restricted or other_keys:
            problems.forbidden(
                f"{path}.properties[metadata]",
                "must not specify anything other than name and generateName, but metadata is implicitly specified",
            )


def _check_value_validation(raw: RawSchema, path: str, problems: Problems, *, may_be_either: bool) -> None:
    """Check the schemas under anyOf and the like, where int-or-string may set its types (validateValueValidation)."""
    any_of, all_of = raw.get("anyOf") or [], raw.get("allOf") or []
    if not (may_be_either and any_of == _INT_OR_STRING):
        for index, part in enumerate(any_of):
            _check_nested_validation(part, f"{path}.anyOf[{index}]", problems)
    for index, part in enumerate(all_of):
        either = may_be_either and index == 0 and part.get("anyOf") == _INT_OR_STRING
        _check_nested_validation(part, f"{path}.allOf[{index}]", problems, may_be_either=either)
    for index, part in enumerate(raw.get("oneOf") or []):
        _check_nested_validation(part, f"{path}.oneOf[{index}]", problems)
    if raw.get("not") is not None:
        _check_nested_validation(raw["not"], f"{path}.not", problems)
    if raw.get("pattern"):
        try:
            regex.compile_pattern(raw["pattern"])
        except regex.BadPattern as problem:
            text = f"must be a valid regular expression, but isn't: {problem}"
            problems.invalid(f"{path}.pattern", raw["pattern"], text)


def _check_nested_validation(raw: RawSchema, path: str, problems: Problems, *, may_be_either: bool = False) -> None:
    _check_value_validation(raw, path, problems, may_be_either=may_be_either)
    if (items := subschema(raw, "items")) is not None:
        _check_nested_validation(items, f"{path}.items", problems)
    for name, part in (raw.get("properties") or {}).items():
        _check_nested_validation(part, f"{path}.properties[{name}]", problems)
    if raw.get("type"):
        problems.forbidden(f"{path}.type", "must be empty to be structural")
    if raw.get("additionalProperties") not in (None, False):
        problems.forbidden(f"{path}.additionalProperties", "must be undefined to be structural")
    for key, problem in _FORBIDDEN_INSIDE:
        if raw.get(key) or (key in _POINTER_FIELDS and raw.get(key) is not None):
            problems.forbidden(f"{path}.{key}", problem)
    if "metadata" in (raw.get("properties") or {}):
        problems.forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _check_completeness(raw: RawSchema, spine: RawSchema, spine_path: str, path: str, problems: Problems) -> None:
    """Check that every field with validations inside anyOf and the like is also specified outside."""
    groups = [(f"{path}.not", raw["not"])] if raw.get("not") is not None else []
    for key in ("allOf", "anyOf", "oneOf"):
        groups += [(f"{path}.{key}[{index}]", part) for index, part in enumerate(raw.get(key) or [])]
    for part_path, part in groups:
        _check_described(part, spine, spine_path, part_path, problems)


def _check_described(raw: RawSchema, spine: RawSchema | None, spine_path: str, path: str, problems: Problems) -> None:
    if spine is None:
        problems.required(spine_path, f"because it is defined in {path}")
        return
    _check_completeness(raw, spine, spine_path, path, problems)
    if (items := subschema(raw, "items")) is not None:
        _check_described(items, subschema(spine, "items"), f"{spine_path}.items", f"{path}.items", problems)
    for name, part in (raw.get("properties") or {}).items():
        below = (spine.get("properties") or {}).get(name)
        _check_described(part, below, f"{spine_path}.properties[{name}]", f"{path}.properties[{name}]", problems)
