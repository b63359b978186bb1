"""Validation of metadata on creation and update.

Kubernetes: apimachinery/pkg/api/validation/objectmeta.go, apimachinery/pkg/apis/meta/v1/validation/validation.go and,
for finalizers of built-in kinds, pkg/apis/core/validation (ValidateObjectMeta).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from batkube.api.validation.go_values import go_struct
from batkube.api.validation.names import (
    NameRule,
    byte_length,
    condition_reason,
    dns_label,
    dns_subdomain,
    http_path,
    label_value,
    path_segment,
    qualified_name,
)
from batkube.api.validation.problems import IMMUTABLE, Problems

_ANNOTATIONS_LIMIT = 256 * 1024
_ORPHAN, _FOREGROUND = "orphan", "foregroundDeletion"
_STANDARD_FINALIZERS = frozenset({"kubernetes", _ORPHAN, _FOREGROUND})
_IMMUTABLE_FIELDS = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_MAP_FIELDS = ("labels", "annotations", "ownerReferences")
_OPERATIONS = frozenset({"Apply", "Update"})


def check_metadata(
    meta: Mapping[str, Any], rule: NameRule, namespaced: bool, problems: Problems, path: str = "metadata"
) -> None:
    """Check the metadata of any object, built-in or custom (ValidateObjectMetaAccessor)."""
    check_name(meta, rule, problems, path)
    _check_namespace(meta.get("namespace"), namespaced, path, problems)
    problems.not_negative(f"{path}.generation", meta.get("generation", 0))
    _check_map_fields(meta, path, problems)
    if finalizers := meta.get("finalizers"):
        _check_finalizers(finalizers, f"{path}.finalizers", problems)
    if entries := meta.get("managedFields"):
        check_managed_fields(entries, f"{path}.managedFields", problems)


def check_name(meta: Mapping[str, Any], rule: NameRule, problems: Problems, path: str = "metadata") -> None:
    """Check name and generateName."""
    if prefix := meta.get("generateName"):
        problems.all_invalid(f"{path}.generateName", prefix, rule(prefix, True))
    name = meta.get("name")
    if not name:
        problems.required(f"{path}.name", "name or generateName is required")
    elif wrong := rule(name, False):
        problems.all_invalid(f"{path}.name", name, wrong)


def check_built_in_metadata(
    meta: Mapping[str, Any], rule: NameRule, namespaced: bool, problems: Problems, path: str = "metadata"
) -> None:
    """Check the metadata of a built-in kind, whose finalizers must be known or qualified names."""
    check_metadata(meta, rule, namespaced, problems, path)
    check_kube_finalizers(meta.get("finalizers", ()), f"{path}.finalizers", problems)


def check_metadata_update(
    new: Mapping[str, Any], old: Mapping[str, Any], problems: Problems, path: str = "metadata"
) -> None:
    """Check an update of metadata (ValidateObjectMetaAccessorUpdate).

    The registry checks that an update has a resourceVersion: the stored object does not contain its own.
    """
    if new is problems.validated_metadata:
        return
    _check_immutable_fields(new, old, problems, path)
    # Stored metadata was valid when it was stored, and most updates do not change it.
    if any(new.get(field) != old.get(field) for field in _MAP_FIELDS):
        _check_map_fields(new, path, problems)
    if (entries := new.get("managedFields")) and entries != old.get("managedFields"):
        check_managed_fields(entries, f"{path}.managedFields", problems)


def _check_immutable_fields(new: Mapping[str, Any], old: Mapping[str, Any], problems: Problems, path: str) -> None:
    if "deletionTimestamp" in old:
        added = sorted(set(new.get("finalizers", ())).difference(old.get("finalizers", ())))
        if added:
            names = ", ".join(f'"{name}"' for name in added)
            problems.forbidden(
                f"{path}.finalizers",
                "no new finalizers can be added if the object is being deleted, found new finalizers "
                f"[]string{{{names}}}",
            )
    if (generation := new.get("generation", 0)) < old.get("generation", 0):
        problems.invalid(f"{path}.generation", generation, "must not be decremented")
    for field in _IMMUTABLE_FIELDS:
        if (value := new.get(field)) != old.get(field):
            problems.invalid(f"{path}.{field}", value if value is not None else _go_zero_text(field), IMMUTABLE)


def check_built_in_metadata_update(
    new: Mapping[str, Any], old: Mapping[str, Any], problems: Problems, path: str = "metadata"
) -> None:
    """Check an update of a built-in kind's metadata."""
    check_metadata_update(new, old, problems, path)
    check_kube_finalizers(new.get("finalizers", ()), f"{path}.finalizers", problems)


def check_common_update(new: Mapping[str, Any], old: Mapping[str, Any], namespaced: bool, problems: Problems) -> None:
    """Run the checks of every update that precede those of the kind (rest.validateCommonFields).

    The kind's checks include the metadata again, so its errors are reported twice; valid metadata is checked once.
    """
    check_metadata(new, path_segment, namespaced, problems)
    if problems:
        check_metadata_update(new, old, problems)
        return
    _check_immutable_fields(new, old, problems, "metadata")
    if not problems:
        problems.validated_metadata = new


def _go_zero_text(field: str) -> str | None:
    """Return how Go prints an unset immutable field: strings are empty, times and numbers null."""
    return "" if field in ("name", "namespace", "uid") else None


def _check_namespace(namespace: str | None, namespaced: bool, path: str, problems: Problems) -> None:
    if not namespaced:
        if namespace:
            problems.forbidden(f"{path}.namespace", "not allowed on this type")
    elif not namespace:
        problems.required(f"{path}.namespace")
    elif wrong := dns_label(namespace):
        problems.all_invalid(f"{path}.namespace", namespace, wrong)


def _check_map_fields(meta: Mapping[str, Any], path: str, problems: Problems) -> None:
    if labels := meta.get("labels"):
        check_labels(labels, f"{path}.labels", problems)
    if annotations := meta.get("annotations"):
        check_annotations(annotations, f"{path}.annotations", problems)
    if owners := meta.get("ownerReferences"):
        _check_owners(owners, f"{path}.ownerReferences", problems)


def check_labels(labels: Mapping[str, str], path: str, problems: Problems) -> None:
    """Check labels, or a selector's matchLabels."""
    for key, value in labels.items():
        if wrong := qualified_name(key):
            problems.all_invalid(path, key, wrong)
        if wrong := label_value(value):
            problems.all_invalid(path, value, wrong)


def check_label_name(key: str, path: str, problems: Problems) -> None:
    """Check a label key."""
    if wrong := qualified_name(key):
        problems.all_invalid(path, key, wrong)


def check_annotations(annotations: Mapping[str, str], path: str, problems: Problems) -> None:
    """Check the keys of annotations, ignoring case, and their total size."""
    total = 0
    for key, value in annotations.items():
        if wrong := qualified_name(key.lower()):
            problems.all_invalid(path, key, wrong)
        total += byte_length(key) + byte_length(value)
    if total > _ANNOTATIONS_LIMIT:
        problems.too_long(path, _ANNOTATIONS_LIMIT)


def _check_owners(owners: Sequence[Mapping[str, Any]], path: str, problems: Problems) -> None:
    controller = ""
    for owner in owners:
        version, kind = owner.get("apiVersion", ""), owner.get("kind", "")
        if not version.rpartition("/")[2] or version.count("/") > 1:
            problems.invalid(f"{path}.apiVersion", version, "version must not be empty")
        for field in ("kind", "name", "uid"):
            if not owner.get(field):
                problems.invalid(f"{path}.{field}", "", "must not be empty")
        if version == "v1" and kind == "Event":
            go_text = go_struct("meta.OwnerReference", owner)
            problems.invalid(path, go_text, "/v1, Kind=Event is disallowed from being an owner")
        if owner.get("controller"):
            owner_text = f"{kind}/{owner.get('name', '')}"
            if controller and not problems.is_full:
                problems.invalid(
                    path,
                    go_struct("[]meta.OwnerReference", owners),
                    f'Only one reference can have Controller set to true. Found "true" in references for {controller} '
                    f"and {owner_text}",
                )
            controller = controller or owner_text


def _check_finalizers(finalizers: Sequence[str], path: str, problems: Problems) -> None:
    for finalizer in finalizers:
        if wrong := qualified_name(finalizer):
            problems.all_invalid(path, finalizer, wrong)
    if _ORPHAN in finalizers and _FOREGROUND in finalizers:
        problems.invalid(path, list(finalizers), f"finalizer {_ORPHAN} and {_FOREGROUND} cannot be both set")


def check_kube_finalizers(finalizers: Sequence[str], path: str, problems: Problems) -> None:
    """Check that a finalizer is one of Kubernetes' own or a qualified name."""
    for index, finalizer in enumerate(finalizers):
        check_kube_finalizer(finalizer, f"{path}[{index}]", problems)


def check_kube_finalizer(finalizer: str, path: str, problems: Problems) -> None:
    """Check one finalizer as `check_kube_finalizers` does."""
    if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
        detail = "name is neither a standard finalizer name nor is it fully qualified"
        problems.invalid(path, finalizer, detail)


def check_managed_fields(entries: Sequence[Mapping[str, Any]], path: str, problems: Problems) -> None:
    """Check managedFields."""
    for index, entry in enumerate(entries):
        if entry.get("operation") not in _OPERATIONS:
            problems.invalid(f"{path}[{index}].operation", entry.get("operation", ""), "must be `Apply` or `Update`")
        if (kind := entry.get("fieldsType")) and kind != "FieldsV1":
            problems.invalid(f"{path}[{index}].fieldsType", kind, "must be `FieldsV1`")
        if manager := entry.get("manager"):
            check_field_manager(manager, f"{path}[{index}].manager", problems)
        if byte_length(entry.get("subresource", "")) > 256:
            problems.too_long(f"{path}[{index}].subresource", 256)


def check_field_manager(manager: str, path: str, problems: Problems) -> None:
    """Check the name of a field manager: printable characters, limited length."""
    if byte_length(manager) > 128:
        problems.too_long(path, 128)
    if not manager.isprintable():
        position = 0
        for char in manager:
            if not char.isprintable():
                code_point = f"U+{ord(char):04X}"
                problems.invalid(path, manager, f"invalid character {code_point} (at position {position})")
            position += byte_length(char)


def check_selector(selector: Mapping[str, Any] | None, path: str, problems: Problems, any_value: bool = False) -> None:
    """Check a metav1.LabelSelector; `any_value` allows values in old objects that are not label values."""
    if not selector:
        return
    if labels := selector.get("matchLabels"):
        check_labels(labels, f"{path}.matchLabels", problems)
    for index, requirement in enumerate(selector.get("matchExpressions", ())):
        _check_requirement(requirement, f"{path}.matchExpressions[{index}]", problems, any_value)


def _check_requirement(requirement: Mapping[str, Any], path: str, problems: Problems, any_value: bool) -> None:
    operator, values = requirement.get("operator", ""), requirement.get("values", ())
    check_set_operator(operator, values, path, problems)
    check_label_name(requirement.get("key", ""), f"{path}.key", problems)
    if not any_value:
        for index, value in enumerate(values):
            problems.all_invalid(f"{path}.values[{index}]", value, label_value(value))


def check_set_operator(operator: str, values: Sequence[str], path: str, problems: Problems) -> None:
    """Check that a set operator is supported and has values if and only if it needs them."""
    if operator in ("In", "NotIn"):
        if not values:
            problems.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            problems.forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    else:
        problems.invalid(f"{path}.operator", operator, "not a valid selector operator")


def check_conditions(conditions: Sequence[Mapping[str, Any]], path: str, problems: Problems) -> None:
    """Check a list of metav1.Condition."""
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        at, kind = f"{path}[{index}]", condition.get("type", "")
        if kind in seen:
            problems.duplicate(f"{at}.type", kind)
        seen.add(kind)
        check_label_name(kind, f"{at}.type", problems)
        if (status := condition.get("status", "")) not in ("True", "False", "Unknown"):
            problems.not_supported(f"{at}.status", status, ("False", "True", "Unknown"))
        if (generation := condition.get("observedGeneration", 0)) < 0:
            problems.invalid(f"{at}.observedGeneration", generation, "must be greater than or equal to zero")
        if not condition.get("lastTransitionTime"):
            problems.required(f"{at}.lastTransitionTime")
        reason = condition.get("reason", "")
        if not reason:
            problems.required(f"{at}.reason")
        else:
            problems.all_invalid(f"{at}.reason", reason, condition_reason(reason))
            if byte_length(reason) > 1024:
                problems.too_long(f"{at}.reason", 1024)
        if byte_length(condition.get("message", "")) > 32 * 1024:
            problems.too_long(f"{at}.message", 32 * 1024)


def check_domain_prefixed_path(text: str, path: str, problems: Problems) -> None:
    """Check a domain-prefixed name such as `acme.io/foo`."""
    host, _, rest = text.partition("/")
    if not text:
        problems.required(path)
    elif not host or not rest:
        problems.invalid(path, text, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        problems.all_invalid(path, host, dns_subdomain(host))
        problems.all_invalid(path, rest, http_path(rest))
