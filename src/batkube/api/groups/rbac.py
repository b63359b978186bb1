"""Roles and role bindings. Kubernetes: pkg/apis/rbac and pkg/registry/rbac."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.groups.kind_model.defaults import ensure_struct, fill_empty, list_items
from batkube.api.groups.kind_model.kind import Kind
from batkube.api.groups.kind_model.strategy import UPSERT
from batkube.api.printing.ages import age
from batkube.api.validation.go_values import go_struct
from batkube.api.validation.metadata import check_built_in_metadata, check_built_in_metadata_update, check_selector
from batkube.api.validation.names import ErrorMessages, path_segment, subdomain_name
from batkube.api.validation.problems import Problems
from batkube.api.validation.rules import Object, ValidateCreate, ValidateUpdate, ValidationRules, create_then_update
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

_GROUP = "rbac.authorization.k8s.io"
_RBAC = "rbac.authorization.k8s.io"


# Defaults


def set_role_binding_defaults(obj: dict[str, Any]) -> None:
    """Set the API group of the role and of users and groups (RBAC's), and of service accounts (core)."""
    fill_empty(ensure_struct(obj, "roleRef"), {"apiGroup": _RBAC})
    for subject in list_items(obj, "subjects"):
        if subject.get("kind") in ("User", "Group"):
            fill_empty(subject, {"apiGroup": _RBAC})


# Validation


def _any_name_rule(name: str, prefix: bool) -> ErrorMessages:
    """Check the name of a role or binding: it must be a valid path segment of a URL."""
    return path_segment(name, False)


def _check_rules(role: Object, namespaced: bool, problems: Problems) -> None:
    for index, rule in enumerate(role.get("rules") or ()):
        path, urls = f"rules[{index}]", rule.get("nonResourceURLs")
        if not rule.get("verbs"):
            problems.required(f"{path}.verbs", "verbs must contain at least one value")
        if urls:
            if namespaced:
                detail = "namespaced rules cannot apply to non-resource URLs"
                problems.invalid(f"{path}.nonResourceURLs", urls, detail)
            if any(rule.get(field) for field in ("apiGroups", "resources", "resourceNames")):
                detail = "rules cannot apply to both regular resources and non-resource URLs"
                problems.invalid(f"{path}.nonResourceURLs", urls, detail)
            continue
        if not rule.get("apiGroups"):
            problems.required(f"{path}.apiGroups", "resource rules must supply at least one api group")
        if not rule.get("resources"):
            problems.required(f"{path}.resources", "resource rules must supply at least one resource")


def _validate_role(value: Object, problems: Problems) -> None:
    check_built_in_metadata(value["metadata"], _any_name_rule, True, problems)
    _check_rules(value, True, problems)


def _validate_cluster_role(value: Object, problems: Problems) -> None:
    check_built_in_metadata(value["metadata"], _any_name_rule, False, problems)
    _check_rules(value, False, problems)
    if (aggregation := value.get("aggregationRule")) is None:
        return
    path, selectors = "aggregationRule.clusterRoleSelectors", aggregation.get("clusterRoleSelectors") or ()
    if not selectors:
        detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        problems.required(path, detail)
    for index, selector in enumerate(selectors):
        before = len(problems)
        check_selector(selector, f"{path}[{index}]", problems)
        if len(problems) > before:
            problems.invalid(f"{path}[{index}]", None, "invalid label selector.")


def _check_binding(value: Object, namespaced: bool, problems: Problems) -> None:
    check_built_in_metadata(value["metadata"], _any_name_rule, namespaced, problems)
    role = value.get("roleRef", {})
    if (group := role.get("apiGroup", "")) != _GROUP:
        problems.not_supported("roleRef.apiGroup", group, (_GROUP,))
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    if (kind := role.get("kind", "")) not in kinds:
        problems.not_supported("roleRef.kind", kind, kinds)
    if not (name := role.get("name", "")):
        problems.required("roleRef.name")
    else:
        problems.all_invalid("roleRef.name", name, path_segment(name, False))
    for index, subject in enumerate(value.get("subjects") or ()):
        _check_subject(subject, namespaced, f"subjects[{index}]", problems)


def _check_subject(subject: Mapping[str, Any], namespaced: bool, path: str, problems: Problems) -> None:
    name, kind, group = subject.get("name", ""), subject.get("kind", ""), subject.get("apiGroup", "")
    if not name:
        problems.required(f"{path}.name")
    if kind == "ServiceAccount":
        if name:
            problems.all_invalid(f"{path}.name", name, subdomain_name(name, False))
        if group:
            problems.not_supported(f"{path}.apiGroup", group, ("",))
        if not namespaced and not subject.get("namespace"):
            problems.required(f"{path}.namespace")
    elif kind in ("User", "Group"):
        if group != _GROUP:
            problems.not_supported(f"{path}.apiGroup", group, (_GROUP,))
    else:
        problems.not_supported(f"{path}.kind", kind, ("ServiceAccount", "User", "Group"))


def _validate_role_binding(value: Object, problems: Problems) -> None:
    _check_binding(value, True, problems)


def _validate_cluster_role_binding(value: Object, problems: Problems) -> None:
    _check_binding(value, False, problems)


def _update_validator(check: ValidateCreate) -> ValidateUpdate:
    """Return the check of an update: the metadata is checked twice, as in kube-apiserver."""

    def update(new: Object, old: Object, problems: Problems) -> None:
        check(new, problems)
        check_built_in_metadata_update(new["metadata"], old["metadata"], problems)
        role = new.get("roleRef")
        if role != old.get("roleRef"):
            problems.invalid("roleRef", go_struct("rbac.RoleRef", role), "cannot change roleRef")

    return create_then_update(check, update)


# Columns


def role_binding_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a RoleBinding or ClusterRoleBinding."""
    role = value.get("roleRef", {})
    names: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in value.get("subjects") or ():
        kind, name = subject.get("kind", ""), subject.get("name", "")
        if kind in names:
            names[kind].append(f"{subject.get('namespace', '')}/{name}" if kind == "ServiceAccount" else name)
    return [
        value["metadata"].get("name", ""),
        f"{role.get('kind', '')}/{role.get('name', '')}",
        age(value, now),
        *(", ".join(part) for part in names.values()),
    ]


def _role_kind(validate: ValidateCreate) -> Kind:
    return Kind(strategy=UPSERT, rules=ValidationRules(validate, _update_validator(validate)))


def _binding_kind(validate: ValidateCreate) -> Kind:
    return Kind(
        defaults={"v1": set_role_binding_defaults},
        strategy=UPSERT,
        rules=ValidationRules(validate, _update_validator(validate)),
        cells=role_binding_cells,
    )


#: The kinds with special behaviour, by storage name.
KINDS: Mapping[str, Kind] = {
    "clusterrolebindings.rbac.authorization.k8s.io": _binding_kind(_validate_cluster_role_binding),
    "clusterroles.rbac.authorization.k8s.io": _role_kind(_validate_cluster_role),
    "rolebindings.rbac.authorization.k8s.io": _binding_kind(_validate_role_binding),
    "roles.rbac.authorization.k8s.io": _role_kind(_validate_role),
}
