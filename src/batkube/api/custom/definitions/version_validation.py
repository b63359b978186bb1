"""Validation of one version of a definition: schema, defaults, subresources, columns, selectable fields.

Kubernetes: apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go.
"""

from __future__ import annotations

from typing import Any

from batkube.api.custom.definitions.default_validation import validate_defaults
from batkube.api.custom.definitions.go_structs import go_schema, schema_fields
from batkube.api.custom.definitions.rule_validation import validate_rules
from batkube.api.custom.definitions.schema_validation import validate_schema
from batkube.api.custom.definitions.structural_validation import unsupported_keyword, validate_structural
from batkube.api.custom.schemas.field_paths import BadFieldPath, resolve_field_path
from batkube.api.custom.schemas.structural import RawSchema, parse_structural
from batkube.api.validation.problems import Problems

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_SELECTABLE_TYPES = ("string", "boolean", "integer")
_SELECTABLE_FIELDS_MAX = 8
#: The error for selectable fields that are set per version while the schema is shared, or the reverse.
_WITHOUT_SCHEMA = {
    "schema": "may only be set when `version.schema.openAPIV3Schema` is not included",
    "validation": "may only be set when validations.schema is included",
}
_DEPRECATION_WARNING_MAX = 256
#: The fields allowed at the root if the kind has a status subresource, by Go's names and in Go's order.
_ROOT_FIELDS_WITH_STATUS = (
    "Description",
    "Type",
    "Format",
    "Title",
    "Maximum",
    "ExclusiveMaximum",
    "Minimum",
    "ExclusiveMinimum",
    "MaxLength",
    "MinLength",
    "Pattern",
    "MaxItems",
    "MinItems",
    "UniqueItems",
    "MultipleOf",
    "Required",
    "Items",
    "Properties",
    "ExternalDocs",
    "Example",
    "XPreserveUnknownFields",
    "XValidations",
)


def validate_version(version: dict[str, Any], path: str, *, has_status: bool, is_unchanged: bool) -> Problems:
    """Validate the fields that a version does not share with the others; `is_unchanged` refers to its schema."""
    problems = Problems()
    _check_warning(version, f"{path}.deprecationWarning", problems)
    problems += validate_section(version, path, "schema", has_status=has_status, is_unchanged=is_unchanged)
    return problems


def validate_shared_section(shared: dict[str, Any], *, has_status: bool, is_unchanged: bool) -> Problems:
    """Validate the fields that all versions share."""
    return validate_section(shared, "spec", "validation", has_status=has_status, is_unchanged=is_unchanged)


def validate_section(
    section: dict[str, Any], path: str, schema_name: str, *, has_status: bool, is_unchanged: bool
) -> Problems:
    """Validate the schema and the fields that depend on it, of one version or of all."""
    problems = Problems()
    raw = (section.get("schema") or {}).get("openAPIV3Schema")
    if raw is not None:
        schema_path = f"{path}.{schema_name}.openAPIV3Schema"
        problems += _validate_schema(raw, schema_path, has_status=has_status, is_unchanged=is_unchanged)
    _check_scale((section.get("subresources") or {}).get("scale"), f"{path}.subresources.scale", problems)
    for index, column in enumerate(section.get("additionalPrinterColumns") or ()):
        _check_column(column, f"{path}.additionalPrinterColumns[{index}]", problems)
    fields = section.get("selectableFields") or []
    if raw is None:
        if fields:
            problems.invalid(f"{path}.selectableFields", "", _WITHOUT_SCHEMA[schema_name])
    elif fields and not unsupported_keyword(raw):
        _check_selectable(fields, raw, f"{path}.selectableFields", problems)
    return problems


def _check_warning(version: dict[str, Any], path: str, problems: Problems) -> None:
    warning = version.get("deprecationWarning")
    if warning is None:
        return
    if not version.get("deprecated"):
        problems.invalid(path, warning, "can only be set for deprecated versions")
        return
    if len(warning.encode()) > _DEPRECATION_WARNING_MAX:
        problems.invalid(path, warning, "must be <= 256 characters long")
    if not warning:
        problems.invalid(path, warning, "must not be an empty string")
    for index, char in enumerate(warning):
        if not char.isprintable():
            place = len(warning[:index].encode())
            problem = "must only contain printable UTF-8 characters; non-printable character found at index"
            problems.invalid(path, warning, f"{problem} {place}")
            break


def _validate_schema(raw: RawSchema, path: str, *, has_status: bool, is_unchanged: bool) -> Problems:
    problems = Problems()
    if has_status:
        _check_root_with_status(raw, path, problems)
    if raw.get("nullable"):
        problems.forbidden(f"{path}.nullable", "nullable cannot be true at the root")
    unreadable = unsupported_keyword(raw)
    is_structural = False
    if not unreadable:
        wrong = validate_structural(raw, path) or validate_defaults(parse_structural(raw), path)
        is_structural = not wrong
        problems += wrong
    own = validate_schema(raw, path)
    if is_structural and not own:
        own += validate_rules(raw, path, is_unchanged=is_unchanged)
    problems += own
    if unreadable and not problems:
        problems.invalid(path, "", unreadable)
    return problems


def _check_root_with_status(raw: RawSchema, path: str, problems: Problems) -> None:
    for name in schema_fields(raw):
        if name == "Type" and raw["type"] != "object":
            problem = (
                'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
            )
            problems.invalid(f"{path}.type", raw["type"], problem)
            return
        if name not in _ROOT_FIELDS_WITH_STATUS:
            allowed = " ".join(_ROOT_FIELDS_WITH_STATUS)
            problem = (
                f"only [{allowed}] fields are allowed at the root of the schema if the status subresource is enabled"
            )
            problems.invalid(path, go_schema(raw), problem)
            return


def _check_scale(scale: dict[str, Any] | None, path: str, problems: Problems) -> None:
    if scale is None:
        return
    for key, root in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        if not scale.get(key):
            problems.required(f"{path}.{key}")
        elif _check_simple_path(scale[key], f"{path}.{key}", problems) and not scale[key].startswith(f"{root}."):
            problems.invalid(f"{path}.{key}", scale[key], f"should be a json path under {root}")
    selector = scale.get("labelSelectorPath")
    if (
        selector
        and _check_simple_path(selector, f"{path}.labelSelectorPath", problems)
        and not selector.startswith((".spec.", ".status."))
    ):
        problem = "should be a json path under either .spec or .status"
        problems.invalid(f"{path}.labelSelectorPath", selector, problem)


def _check_simple_path(json_path: str, path: str, problems: Problems) -> bool:
    if json_path.startswith("."):
        return True
    problems.invalid(path, json_path, "must be a simple json path starting with .")
    return False


def _check_column(column: dict[str, Any], path: str, problems: Problems) -> None:
    if not column.get("name"):
        problems.required(f"{path}.name")
    kind, form = column.get("type") or "", column.get("format") or ""
    if not kind:
        problems.required(f"{path}.type", f"must be one of {','.join(_COLUMN_TYPES)}")
    elif kind not in _COLUMN_TYPES:
        problems.invalid(f"{path}.type", kind, f"must be one of {','.join(_COLUMN_TYPES)}")
    if form and form not in _COLUMN_FORMATS:
        problems.invalid(f"{path}.format", form, f"must be one of {','.join(_COLUMN_FORMATS)}")
    if not column.get("jsonPath"):
        problems.required(f"{path}.JSONPath")
    else:
        _check_simple_path(column["jsonPath"], f"{path}.JSONPath", problems)


def _check_selectable(fields: list[dict[str, Any]], raw: RawSchema, path: str, problems: Problems) -> None:
    schema = parse_structural(raw)
    seen: list[str] = []
    for index, field in enumerate(fields):
        field_path, json_path = f"{path}[{index}].jsonPath", field.get("jsonPath") or ""
        if not json_path:
            problems.required(field_path)
            continue
        try:
            target = resolve_field_path(json_path, schema, brackets=False)
        except BadFieldPath as problem:
            problems.invalid(field_path, json_path, f"is an invalid path: {problem}")
            continue
        if target.steps[:1] == ("metadata",):
            problems.invalid(field_path, json_path, "must not point to fields in metadata")
        if target.schema.type not in _SELECTABLE_TYPES:
            problems.invalid(
                field_path,
                json_path,
                "must point to a field of type string, boolean or integer. Enum string fields and strings with formats "
                "are allowed.",
            )
        if target.text in seen:
            problems.duplicate(field_path, json_path)
        else:
            seen.append(target.text)
    if len(seen) > _SELECTABLE_FIELDS_MAX:
        problems.too_many(path, len(seen), _SELECTABLE_FIELDS_MAX)
