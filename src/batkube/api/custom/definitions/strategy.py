"""The strategy of CustomResourceDefinitions: defaults, fields reset on write, and validation.

kube-apiserver validates a definition in an internal form, which moves the fields that are equal in all versions
(schema, subresources, columns, selectable fields) to the top of the spec. Its error messages name the paths in that
form, and so do ours.

Kubernetes: apiextensions-apiserver/pkg/apis/apiextensions/v1/{defaults,conversion}.go, validation/validation.go and
pkg/registry/customresourcedefinition/strategy.go.
"""

from __future__ import annotations

from typing import Any

from batkube.api.cel.functions.string_formats import find_format_check
from batkube.api.custom.definitions import api_approval
from batkube.api.custom.definitions.conversion_validation import validate_conversion
from batkube.api.custom.definitions.go_structs import go_versions
from batkube.api.custom.definitions.version_validation import validate_shared_section, validate_version
from batkube.api.custom.schemas.structural import raw_subschemas
from batkube.api.validation.field_errors import FieldError
from batkube.api.validation.metadata import check_common_update, check_metadata, check_metadata_update
from batkube.api.validation.names import ErrorMessages, NameRule, dns_1035_label, dns_subdomain, subdomain_name
from batkube.api.validation.problems import Problems
from batkube.cluster.store import KubeObject

_SHARED_FIELDS = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")
"""The fields that the internal form moves to the top if all versions agree."""

_REQUIRED_NAMES = ("plural", "singular", "kind", "listKind")
_MUST_MATCH = "may have mixed case, but should otherwise match: "


# Defaults and preparation


def set_definition_defaults(value: KubeObject) -> None:
    """Set the defaults of singular, listKind, the conversion strategy and the stored versions (SetDefaults_…)."""
    spec: dict[str, Any] = value.setdefault("spec", {})
    names: dict[str, Any] = spec.setdefault("names", {})
    kind = names.get("kind") or ""
    if kind and not names.get("singular"):
        names["singular"] = kind.lower()
    if kind and not names.get("listKind"):
        names["listKind"] = kind + "List"
    conversion = spec.setdefault("conversion", {"strategy": "None"})
    service = ((conversion.get("webhook") or {}).get("clientConfig") or {}).get("service")
    if service is not None:
        service.setdefault("port", 443)
    status: dict[str, Any] = value.setdefault("status", {})
    if not status.get("storedVersions"):
        status["storedVersions"] = _storage_versions(spec) or None


def _storage_versions(spec: dict[str, Any]) -> list[str]:
    return [version.get("name", "") for version in spec.get("versions") or () if version.get("storage")][:1]


def prepare_definition_create(value: KubeObject) -> None:
    """Reset the status on creation, except for the storage version."""
    value["metadata"]["generation"] = 1
    value["status"] = _empty_status(_storage_versions(value["spec"]))


def _empty_status(stored: list[str]) -> dict[str, Any]:
    """Return a status without accepted names; Go writes these fields even if they are empty."""
    return {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored or None}


def prepare_definition_update(value: KubeObject, old: KubeObject) -> None:
    """Keep the old status, increment the generation, and add a new storage version to `storedVersions`."""
    status = dict(old["status"])
    if value["spec"] != old["spec"]:
        value["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
    stored = list(status.get("storedVersions") or [])
    for version in _storage_versions(value["spec"]):
        if version not in stored:
            stored.append(version)
    status["storedVersions"] = stored
    value["status"] = status


def prepare_definition_status_update(value: KubeObject, old: KubeObject) -> None:
    """Reset everything but the status in a write to the status subresource."""
    value["spec"] = old["spec"]


# Validation


def validate_definition(value: KubeObject, old: KubeObject | None) -> list[FieldError]:
    """Validate a definition on creation (`old` is None) or update."""
    problems = Problems()
    spec = value.get("spec") or {}
    if old is None:
        check_metadata(value["metadata"], _name_rule(spec), False, problems)
    else:
        check_common_update(value["metadata"], old["metadata"], False, problems)
        check_metadata_update(value["metadata"], old["metadata"], problems)
    _check_spec(spec, _schemas_by_version(old["spec"]) if old is not None else {}, problems)
    if old is not None:
        _check_immutable_fields(value, old, problems)
    status = value.get("status") or {}
    _check_names(status.get("acceptedNames") or {}, "status.acceptedNames", problems)
    _check_stored_versions(status.get("storedVersions"), spec.get("versions") or [], problems)
    api_approval.check_approval(value, old, problems)
    if spec.get("preserveUnknownFields") and not (old and old["spec"].get("preserveUnknownFields")):
        problems.invalid(
            "spec.preserveUnknownFields",
            True,
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        )
    return problems


def validate_definition_status_update(value: KubeObject, old: KubeObject) -> list[FieldError]:
    """Validate a write to the status subresource."""
    problems = Problems()
    check_common_update(value["metadata"], old["metadata"], False, problems)
    check_metadata_update(value["metadata"], old["metadata"], problems)
    names = (value.get("status") or {}).get("acceptedNames") or {}
    _check_names(names, "status.acceptedNames", problems)
    return problems


def definition_warnings(value: KubeObject, old: KubeObject | None) -> list[str]:
    """Return the warnings for a definition: new formats that the server does not check."""
    before = _unknown_formats(old) if old is not None else []
    return [f'unrecognized format "{name}"' for name in _unknown_formats(value) if name not in before]


def _unknown_formats(value: KubeObject) -> list[str]:
    versions, shared = internal_versions(value["spec"])
    schemas = [(part.get("schema") or {}).get("openAPIV3Schema") or {} for part in (shared, *versions)]
    return [
        part["format"]
        for schema in schemas
        for part in raw_subschemas(schema)
        if part.get("format") and part.get("type") == "string" and find_format_check(part["format"]) is None
    ]


def _name_rule(spec: dict[str, Any]) -> NameRule:
    required = f"{(spec.get('names') or {}).get('plural', '')}.{spec.get('group', '')}"

    def rule(name: str, is_prefix: bool) -> ErrorMessages:
        mismatch = () if name == required else ('must be spec.names.plural+"."+spec.group',)
        return (*subdomain_name(name, is_prefix), *mismatch)

    return rule


def internal_versions(spec: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the versions without their shared fields, and the shared fields."""
    versions = spec.get("versions") or []
    if not versions:
        return [], {}
    shared = {
        key: versions[0].get(key)
        for key in _SHARED_FIELDS
        if all((version.get(key) or None) == (versions[0].get(key) or None) for version in versions)
    }
    return [{key: part for key, part in version.items() if key not in shared} for version in versions], shared


def _schemas_by_version(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the schemas of a definition by version name."""
    return {version.get("name", ""): version.get("schema") or {} for version in spec.get("versions") or ()}


def _check_spec(spec: dict[str, Any], schemas_before: dict[str, Any], problems: Problems) -> None:
    unchanged = {name for name, schema in _schemas_by_version(spec).items() if schemas_before.get(name) == schema}
    _check_group_and_scope(spec, problems)
    versions, shared = internal_versions(spec)
    shared_schema = (shared.get("schema") or {}).get("openAPIV3Schema")
    if shared_schema is None:
        for index, version in enumerate(versions):
            if (version.get("schema") or {}).get("openAPIV3Schema") is None:
                problems.required(f"spec.versions[{index}].schema.openAPIV3Schema")
    if spec.get("preserveUnknownFields") and _has_defaults(spec):
        problems.invalid("spec.preserveUnknownFields", True, "must be false in order to use defaults in the schema")
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        name = version.get("name", "")
        if wrong := dns_1035_label(name):
            problems.invalid(f"{path}.name", name, ",".join(wrong))
        subresources = shared.get("subresources", version.get("subresources")) or {}
        has_status = subresources.get("status") is not None
        problems += validate_version(version, path, has_status=has_status, is_unchanged=name in unchanged)
    _check_version_list(versions, problems)
    names = spec.get("names") or {}
    for key in _REQUIRED_NAMES:
        if not names.get(key):
            problems.required(f"spec.names.{key}")
    _check_names(names, "spec.names", problems)
    has_status = any(
        (version.get("subresources") or {}).get("status") is not None for version in spec.get("versions") or ()
    )
    # The shared fields are validated as part of the first version.
    is_unchanged = bool(versions) and versions[0].get("name", "") in unchanged
    problems += validate_shared_section(shared, has_status=has_status, is_unchanged=is_unchanged)
    problems += validate_conversion(spec)


def _has_defaults(spec: dict[str, Any]) -> bool:
    schemas = [(version.get("schema") or {}).get("openAPIV3Schema") or {} for version in spec.get("versions") or ()]
    return any(part.get("default") is not None for schema in schemas for part in raw_subschemas(schema))


def _check_group_and_scope(spec: dict[str, Any], problems: Problems) -> None:
    group, scope = spec.get("group", ""), spec.get("scope", "")
    if not group:
        problems.required("spec.group")
    elif wrong := dns_subdomain(group):
        problems.invalid("spec.group", group, ",".join(wrong))
    elif "." not in group:
        problems.invalid("spec.group", group, "should be a domain with at least one dot")
    if not scope:
        problems.required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        problems.not_supported("spec.scope", scope, ("Cluster", "Namespaced"))


def _check_version_list(versions: list[dict[str, Any]], problems: Problems) -> None:
    names = [version.get("name", "") for version in versions]
    if len(set(names)) < len(names):
        problems.invalid("spec.versions", go_versions(versions), "must contain unique version names")
    if sum(1 for version in versions if version.get("storage")) != 1:
        problem = "must have exactly one version marked as storage version"
        problems.invalid("spec.versions", go_versions(versions), problem)
    # The internal form repeats the first version's name in a field of its own.
    if names and names[0] and (wrong := dns_1035_label(names[0])):
        problems.invalid("spec.version", names[0], ",".join(wrong))


def _check_names(names: dict[str, Any], path: str, problems: Problems) -> None:
    for key in ("plural", "singular"):
        name = names.get(key) or ""
        if name and (wrong := dns_1035_label(name)):
            problems.invalid(f"{path}.{key}", name, ",".join(wrong))
    for key in ("kind", "listKind"):
        name = names.get(key) or ""
        if name and (wrong := dns_1035_label(name.lower())):
            problems.invalid(f"{path}.{key}", name, _MUST_MATCH + ",".join(wrong))
    for index, name in enumerate(names.get("shortNames") or ()):
        if wrong := dns_1035_label(name):
            problems.invalid(f"{path}.shortNames[{index}]", name, ",".join(wrong))
    kind = names.get("kind")
    if kind and kind == names.get("listKind"):
        problems.invalid(f"{path}.listKind", kind, "kind and listKind may not be the same")
    for index, name in enumerate(names.get("categories") or ()):
        if wrong := dns_1035_label(name):
            problems.invalid(f"{path}.categories[{index}]", name, ",".join(wrong))


def _check_stored_versions(stored: list[str] | None, versions: list[dict[str, Any]], problems: Problems) -> None:
    path = "status.storedVersions"
    if not stored:
        problems.invalid(path, stored, "must have at least one stored version")
        return
    names = [version.get("name", "") for version in versions]
    for version in versions:
        if version.get("storage") and version.get("name", "") not in stored:
            problems.invalid(path, stored, f"must have the storage version {version.get('name', '')}")
    for index, name in enumerate(stored):
        if name not in names:
            problems.invalid(
                f"{path}[{index}]",
                name,
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from status.storedVersions",
            )


def _check_immutable_fields(value: KubeObject, old: KubeObject, problems: Problems) -> None:
    """Check fields on which stored objects depend: once established, even scope and kind are immutable."""
    spec, before = value["spec"], old["spec"]
    conditions = (old.get("status") or {}).get("conditions") or ()
    if any(condition["type"] == "Established" and condition["status"] == "True" for condition in conditions):
        problems.unchanged("spec.scope", spec.get("scope"), before.get("scope"))
        problems.unchanged("spec.names.kind", spec["names"].get("kind"), before["names"].get("kind"))
    problems.unchanged("spec.group", spec.get("group"), before.get("group"))
    problems.unchanged("spec.names.plural", spec["names"].get("plural"), before["names"].get("plural"))
