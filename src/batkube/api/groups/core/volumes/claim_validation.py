"""Validation of PersistentVolumeClaims, and of claim templates in pods and StatefulSets.

Kubernetes: pkg/apis/core/validation (ValidatePersistentVolumeClaim and its helpers).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.validation.go_values import go_difference
from batkube.api.validation.metadata import (
    check_annotations,
    check_built_in_metadata,
    check_built_in_metadata_update,
    check_labels,
    check_selector,
)
from batkube.api.validation.names import dns_subdomain, label_name, qualified_name, subdomain_name
from batkube.api.validation.problems import IMMUTABLE, Problems
from batkube.api.validation.quantities import (
    check_positive_quantity,
    check_resource_quantity,
    check_whole_quantity,
    is_native_resource,
    quantity,
)
from batkube.api.validation.rules import ValidationRules, create_then_update

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")
_RESIZE_STATUSES = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)
_BETA_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
#: The fields of metadata in the order of the Go type; a template may have labels and annotations only.
_METADATA_FIELDS = (
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "ownerReferences",
    "finalizers",
    "managedFields",
)
_UNNAMED_FIELDS = {"uid": "uID"}


def check_access_modes(modes: list[str], path: str, problems: Problems) -> None:
    """Check access modes; ReadWriteOncePod excludes all others."""
    for mode in modes:
        if mode not in ACCESS_MODES:
            problems.not_supported(path, mode, ACCESS_MODES)
    if "ReadWriteOncePod" in modes and any(mode in ACCESS_MODES[:3] for mode in modes):
        problems.forbidden(path, "may not use ReadWriteOncePod with other access modes")


def check_class_name(name: str | None, path: str, problems: Problems) -> None:
    """Check the name of a StorageClass, if it is set."""
    if name:
        problems.all_invalid(path, name, subdomain_name(name, False))


def check_claim_template(template: Mapping[str, Any], path: str, problems: Problems) -> None:
    """Check the claim template of an ephemeral volume."""
    check_template_metadata(template.get("metadata", {}), f"{path}.metadata", problems)
    check_claim_spec(template.get("spec", {}), f"{path}.spec", problems)


def check_template_metadata(meta: Mapping[str, Any], path: str, problems: Problems) -> None:
    """Check metadata that may contain labels and annotations only (Kubernetes: ValidateTemplateObjectMeta)."""
    check_annotations(meta.get("annotations", {}), f"{path}.annotations", problems)
    check_labels(meta.get("labels", {}), f"{path}.labels", problems)
    for field in _METADATA_FIELDS:
        if meta.get(field) or (field == "deletionGracePeriodSeconds" and field in meta):
            problems.forbidden(f"{path}.{_UNNAMED_FIELDS.get(field, field)}", "cannot be set")


def check_claim_spec(spec: Mapping[str, Any], path: str, problems: Problems) -> None:
    """Check the spec of a claim."""
    modes = spec.get("accessModes", [])
    if not modes:
        problems.required(f"{path}.accessModes", "at least 1 access mode is required")
    check_selector(spec.get("selector"), f"{path}.selector", problems)
    check_access_modes(modes, f"{path}.accessModes", problems)
    storage, at = spec.get("resources", {}).get("requests", {}).get("storage"), f"{path}.resources[storage]"
    if storage is None:
        problems.required(at)
    elif check_positive_quantity(storage, at, problems):
        check_resource_quantity("storage", storage, at, problems)
    check_class_name(spec.get("storageClassName"), f"{path}.storageClassName", problems)
    if (mode := spec.get("volumeMode")) is not None and mode not in VOLUME_MODES:
        problems.not_supported(f"{path}.volumeMode", mode, VOLUME_MODES)
    _check_data_sources(spec.get("dataSource"), spec.get("dataSourceRef"), path, problems)
    check_class_name(spec.get("volumeAttributesClassName"), f"{path}.volumeAttributesClassName", problems)


def _check_data_sources(
    source: Mapping[str, Any] | None, reference: Mapping[str, Any] | None, path: str, problems: Problems
) -> None:
    if source is not None:
        _check_data_source(source, f"{path}.dataSource", problems)
    if reference is None:
        return
    _check_data_source(reference, f"{path}.dataSourceRef", problems)
    namespace = reference.get("namespace")
    if namespace:
        problems.all_invalid(f"{path}.dataSourceRef.namespace", namespace, label_name(namespace, False))
    if source is None:
        return
    # Kubernetes passes the path, a struct without exported fields, as the value.
    if namespace:
        problems.invalid(path, {}, "may not be specified when dataSourceRef.namespace is specified")
    elif any(source.get(field) != reference.get(field) for field in ("apiGroup", "kind", "name")):
        problems.invalid(path, {}, "must match dataSourceRef")


def _check_data_source(source: Mapping[str, Any], path: str, problems: Problems) -> None:
    kind, group = source.get("kind", ""), source.get("apiGroup") or ""
    if not source.get("name"):
        problems.required(f"{path}.name")
    if not kind:
        problems.required(f"{path}.kind")
    if not group and kind != "PersistentVolumeClaim":
        problems.invalid(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")
    if group:
        problems.all_invalid(f"{path}.apiGroup", group, dns_subdomain(group))


def _validate_claim_create(claim: Mapping[str, Any], problems: Problems) -> None:
    check_built_in_metadata(claim["metadata"], subdomain_name, True, problems)
    check_claim_spec(claim.get("spec", {}), "spec", problems)


def _validate_claim_update(new: Mapping[str, Any], old: Mapping[str, Any], problems: Problems) -> None:
    check_built_in_metadata_update(new["metadata"], old["metadata"], problems)
    _validate_claim_create(new, problems)
    before, after = _comparable_specs(new, old, problems)
    if before != after:
        detail = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        )
        difference = go_difference("core.PersistentVolumeClaimSpec", before, after)
        problems.forbidden("spec", f"{detail}\n{difference}")
    _check_size_change(new, old, problems)
    modes = new["spec"].get("volumeMode"), old["spec"].get("volumeMode")
    if modes[0] != modes[1]:
        problems.invalid("volumeMode", modes[0], IMMUTABLE)
    _check_attributes_class(new, old, problems)


def _comparable_specs(
    new: Mapping[str, Any], old: Mapping[str, Any], problems: Problems
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the old and the new spec without the differences that are allowed."""
    before, after = dict(old["spec"]), dict(new["spec"])
    if not before.get("volumeName") and "volumeName" in after:
        before["volumeName"] = after["volumeName"]
    old_notes, new_notes = old["metadata"].get("annotations", {}), new["metadata"].get("annotations", {})
    old_class, new_class = before.get("storageClassName"), after.get("storageClassName")
    noted = old_notes.get(_BETA_CLASS_ANNOTATION)
    if (
        noted is not None
        and old_class is None
        and new_class == noted
        and new_notes.get(_BETA_CLASS_ANNOTATION, noted) == noted
    ):
        after.pop("storageClassName")
    else:
        if new_notes.get(_BETA_CLASS_ANNOTATION, "") != old_notes.get(_BETA_CLASS_ANNOTATION, ""):
            problems.invalid(
                f"metadata.annotations.{_BETA_CLASS_ANNOTATION}", new_notes.get(_BETA_CLASS_ANNOTATION, ""), IMMUTABLE
            )
        if new_class is not None and old_class is None and noted in (None, new_class):
            after.pop("storageClassName")
    if new.get("status", {}).get("phase") == "Bound":
        _restore_field(before, after, "volumeAttributesClassName")
        if (resources := after.get("resources", {})).get("requests"):
            requests = {**resources["requests"]}
            _restore_field(before.get("resources", {}).get("requests", {}), requests, "storage")
            after["resources"] = {**resources, "requests": requests}
    return before, after


def _restore_field(before: Mapping[str, Any], after: dict[str, Any], field: str) -> None:
    after.pop(field, None)
    if field in before:
        after[field] = before[field]


def _check_size_change(new: Mapping[str, Any], old: Mapping[str, Any], problems: Problems) -> None:
    sizes = [quantity(claim["spec"].get("resources", {}).get("requests", {}).get("storage", 0)) for claim in (new, old)]
    held = quantity(old.get("status", {}).get("capacity", {}).get("storage", 0))
    if sizes[0] < sizes[1] and sizes[0] <= held:
        problems.forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")


def _check_attributes_class(new: Mapping[str, Any], old: Mapping[str, Any], problems: Problems) -> None:
    name, before = new["spec"].get("volumeAttributesClassName"), old["spec"].get("volumeAttributesClassName")
    if name == before or old.get("status", {}).get("currentVolumeAttributesClassName") is None:
        return
    if not name:
        target = "nil" if name is None else "empty string"
        problems.forbidden(
            "spec.volumeAttributesClassName",
            f"update to {target} is forbidden when status.currentVolumeAttributesClassName is not nil",
        )


def _validate_claim_status_update(new: Mapping[str, Any], old: Mapping[str, Any], problems: Problems) -> None:
    check_built_in_metadata_update(new["metadata"], old["metadata"], problems)
    status = new.get("status", {})
    if not new.get("spec", {}).get("accessModes"):
        problems.required("Spec.accessModes")
    for name, amount in status.get("capacity", {}).items():
        check_whole_quantity(amount, f"status.capacity[{name}]", problems)
    at = "status.allocatedResourceStatuses"
    for name, word in status.get("allocatedResourceStatuses", {}).items():
        _check_resource_key(name, at, problems)
        if word not in _RESIZE_STATUSES:
            problems.not_supported(at, name, sorted(_RESIZE_STATUSES))
    at = "status.allocatedResources"
    for name, amount in status.get("allocatedResources", {}).items():
        before = len(problems)
        _check_resource_key(name, at, problems)
        if len(problems) == before:
            check_whole_quantity(amount, f"{at}[{name}]", problems)
        if len(problems) == before:
            check_resource_quantity("storage", amount, f"{at}[{name}]", problems)


def _check_resource_key(name: str, path: str, problems: Problems) -> None:
    if wrong := qualified_name(name):
        problems.all_invalid(path, name, wrong)
    elif is_native_resource(name) and name != "storage":
        problems.not_supported(path, name, ("storage",))


PERSISTENT_VOLUME_CLAIM_RULES = ValidationRules(
    _validate_claim_create,
    create_then_update(_validate_claim_create, _validate_claim_update),
    _validate_claim_status_update,
)
