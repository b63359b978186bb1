"""Validation of scheduling constraints: affinity, tolerations, topology spread, scheduling gates, node selectors.

Kubernetes: pkg/apis/core/validation (validateAffinity, ValidateTolerations, validateTopologySpreadConstraints …).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from batkube.api.groups.core.node_selectors import check_node_selector, check_node_term
from batkube.api.validation.metadata import check_label_name, check_selector
from batkube.api.validation.names import label_name, label_value, qualified_name
from batkube.api.validation.problems import Problems

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
_UNSATISFIABLE_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_INCLUSION_POLICIES = ("Honor", "Ignore")
_NO_SELECTOR = "must not be specified when labelSelector is not set"


def check_affinity(affinity: Mapping[str, Any], path: str, problems: Problems) -> None:
    """Check node affinity, pod affinity and anti-affinity."""
    if nodes := affinity.get("nodeAffinity"):
        at = f"{path}.nodeAffinity"
        if (selector := nodes.get(_REQUIRED)) is not None:
            check_node_selector(selector, f"{at}.{_REQUIRED}", problems)
        for index, term in enumerate(nodes.get(_PREFERRED, ())):
            here = f"{at}.{_PREFERRED}[{index}]"
            _check_weight(term.get("weight", 0), here, problems)
            check_node_term(term.get("preference", {}), f"{here}.preference", problems, any_value=True)
    for kind in ("podAffinity", "podAntiAffinity"):
        if pods := affinity.get(kind):
            for index, term in enumerate(pods.get(_REQUIRED, ())):
                _check_pod_term(term, f"{path}.{kind}.{_REQUIRED}[{index}]", problems)
            for index, weighted in enumerate(pods.get(_PREFERRED, ())):
                here = f"{path}.{kind}.{_PREFERRED}[{index}]"
                _check_weight(weighted.get("weight", 0), here, problems)
                _check_pod_term(weighted.get("podAffinityTerm", {}), f"{here}.podAffinityTerm", problems)


def _check_weight(weight: int, path: str, problems: Problems) -> None:
    if not 0 < weight <= 100:
        problems.invalid(f"{path}.weight", weight, "must be in the range 1-100")


def _check_pod_term(term: Mapping[str, Any], path: str, problems: Problems) -> None:
    selector = term.get("labelSelector")
    check_selector(selector, f"{path}.labelSelector", problems)
    check_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector", problems)
    for name in term.get("namespaces", ()):
        problems.all_invalid(f"{path}.namespace", name, label_name(name, False))
    _check_label_keys(term.get("matchLabelKeys", ()), term.get("mismatchLabelKeys", ()), selector, path, problems)
    key = term.get("topologyKey", "")
    if not key:
        problems.required(f"{path}.topologyKey", "can not be empty")
    check_label_name(key, f"{path}.topologyKey", problems)


def _check_label_keys(
    match: Sequence[str], mismatch: Sequence[str], selector: Mapping[str, Any] | None, path: str, problems: Problems
) -> None:
    """Check label keys whose values come from the pod (ValidateMatchLabelKeysAndMismatchLabelKeys)."""
    for field, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and selector is None:
            problems.forbidden(f"{path}.{field}", _NO_SELECTOR)
        elif keys:
            for index, key in enumerate(keys):
                check_label_name(key, f"{path}.{field}[{index}]", problems)
    if selector is not None and match:
        positions = {key: index for index, key in enumerate(match)}
        seen = set(selector.get("matchLabels", ()))
        for requirement in selector.get("matchExpressions", ()):
            key = requirement.get("key", "")
            if key in positions and key in seen:
                detail = "exists in both matchLabelKeys and labelSelector"
                problems.invalid(f"{path}[{positions[key]}]", key, detail)
            seen.add(key)
    for index, key in enumerate(match):
        if key in mismatch:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            problems.invalid(f"{path}.matchLabelKeys[{index}]", key, detail)


def check_taint_effect(effect: str, path: str, problems: Problems) -> None:
    """Check the effect of a taint."""
    if effect not in TAINT_EFFECTS:
        problems.not_supported(path, effect, TAINT_EFFECTS)


def check_tolerations(tolerations: Sequence[Mapping[str, Any]], path: str, problems: Problems) -> None:
    """Check tolerations."""
    for index, toleration in enumerate(tolerations):
        _check_toleration(toleration, f"{path}[{index}]", problems)


def _check_toleration(toleration: Mapping[str, Any], path: str, problems: Problems) -> None:
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    effect, value = toleration.get("effect", ""), toleration.get("value", "")
    if key:
        check_label_name(key, f"{path}.key", problems)
    elif operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        problems.invalid(f"{path}.operator", operator, detail)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        problems.invalid(f"{path}.effect", effect, detail)
    if operator in ("Equal", ""):
        if wrong := label_value(value):
            problems.invalid(f"{path}.operator", value, ";".join(wrong))
    elif operator == "Exists":
        if value:
            problems.invalid(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'")
    else:
        problems.not_supported(f"{path}.operator", operator, ("Equal", "Exists"))
    if effect:
        check_taint_effect(effect, f"{path}.effect", problems)


def check_tolerations_only_added(
    new: Sequence[Mapping[str, Any]], old: Sequence[Mapping[str, Any]], path: str, problems: Problems
) -> None:
    """Check that tolerations were only added, or changed only in tolerationSeconds."""
    bare = [_without_toleration_seconds(toleration) for toleration in new]
    if not all(_without_toleration_seconds(toleration) in bare for toleration in old):
        problems.forbidden(path, "existing toleration can not be modified except its tolerationSeconds")
        return
    check_tolerations(new, path, problems)


def _without_toleration_seconds(toleration: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def check_scheduling_gates(gates: Sequence[Mapping[str, Any]], path: str, problems: Problems) -> None:
    """Check scheduling gates."""
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name", "")
        problems.all_invalid(f"{path}[{index}]", name, qualified_name(name))
        if name in seen:
            problems.duplicate(f"{path}[{index}]", name)
        seen.add(name)


def check_gates_only_removed(
    new: Sequence[Mapping[str, Any]], old: Sequence[Mapping[str, Any]], path: str, problems: Problems
) -> None:
    """Check that scheduling gates were only removed."""
    before = {gate.get("name", "") for gate in old}
    added = {gate.get("name", ""): index for index, gate in enumerate(new) if gate.get("name", "") not in before}
    for name, index in added.items():
        detail = f"only deletion is allowed, but found new scheduling gate '{name}'"
        problems.forbidden(f"{path}[{index}].name", detail)


def check_topology_spread(constraints: Sequence[Mapping[str, Any]], path: str, problems: Problems) -> None:
    """Check topology spread constraints."""
    for index, constraint in enumerate(constraints):
        at, key = f"{path}[{index}]", constraint.get("topologyKey", "")
        action, selector = constraint.get("whenUnsatisfiable", ""), constraint.get("labelSelector")
        problems.positive(f"{at}.maxSkew", constraint.get("maxSkew", 0))
        if not key:
            problems.required(f"{at}.topologyKey", "can not be empty")
        if action not in _UNSATISFIABLE_ACTIONS:
            problems.not_supported(f"{at}.whenUnsatisfiable", action, _UNSATISFIABLE_ACTIONS)
        later = constraints[index + 1 :]
        if any((key, action) == (c.get("topologyKey", ""), c.get("whenUnsatisfiable", "")) for c in later):
            problems.duplicate(f"{at}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}")
        if (domains := constraint.get("minDomains")) is not None:
            problems.positive(f"{at}.minDomains", domains)
            if action != "DoNotSchedule":
                detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                problems.invalid(f"{at}.minDomains", domains, detail)
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if (policy := constraint.get(field)) is not None and policy not in _INCLUSION_POLICIES:
                problems.not_supported(f"{at}.{field}", policy, _INCLUSION_POLICIES)
        _check_label_keys(constraint.get("matchLabelKeys", ()), (), selector, at, problems)
        check_selector(selector, f"{at}.labelSelector", problems)
