"""ResourceQuotas and LimitRanges. Kubernetes: pkg/apis/core, pkg/registry/core/{resourcequota,limitrange}."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.groups.kind_model.defaults import list_items, round_resource_lists
from batkube.api.groups.kind_model.kind import Kind
from batkube.api.groups.kind_model.strategy import UPSERT, WITH_STATUS
from batkube.api.printing.ages import age
from batkube.api.validation.go_values import go_struct
from batkube.api.validation.metadata import check_built_in_metadata
from batkube.api.validation.names import qualified_name, subdomain_name
from batkube.api.validation.problems import IMMUTABLE, Problems
from batkube.api.validation.quantities import (
    check_resource_quantity,
    container_resource,
    is_overcommit_allowed,
    is_standard_quota_resource,
    quantity,
    quota_resource,
    resource_name,
)
from batkube.api.validation.rules import Object, ValidationRules, validate_metadata_update
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant
from batkube.kernel.quantities import Quantity

_POD_RESOURCES = frozenset(["pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"])
#: The resources that each scope can restrict; other scopes apply to all resources.
_SCOPES = {
    "Terminating": _POD_RESOURCES,
    "NotTerminating": _POD_RESOURCES,
    "NotBestEffort": _POD_RESOURCES,
    "PriorityClass": _POD_RESOURCES,
    "CrossNamespacePodAffinity": _POD_RESOURCES,
    "BestEffort": frozenset({"pods"}),
    "VolumeAttributesClass": frozenset({"persistentvolumeclaims", "requests.storage"}),
}
_OPPOSITES = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
_SCOPES_WITHOUT_VALUES = frozenset(
    {"BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity"}
)
_MUST_EXIST = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
_LIMIT_TYPES = ("Container", "PersistentVolumeClaim", "Pod")


# Defaults


def set_limit_range_defaults(obj: dict[str, Any]) -> None:
    """Set container defaults: the default limit is the maximum, the default request is that limit or the minimum."""
    for item in list_items(obj.get("spec") or {}, "limits"):
        if item.get("type") == "Container":
            default = {**(item.get("max") or {}), **(item.get("default") or {})}
            request = {**(item.get("min") or {}), **default, **(item.get("defaultRequest") or {})}
            if default:
                item["default"] = default
            if request:
                item["defaultRequest"] = request
        round_resource_lists(item, "max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


def set_resource_quota_defaults(obj: dict[str, Any]) -> None:
    """Round quantities up to thousandths, the finest precision that is stored."""
    round_resource_lists(obj.get("spec") or {}, "hard")
    round_resource_lists(obj.get("status") or {}, "hard", "used")


# Validation


def _check_hard(amounts: Mapping[str, Any] | None, path: str, problems: Problems) -> None:
    for name, amount in (amounts or {}).items():
        if wrong := quota_resource(name):
            problems.all_invalid(f"{path}[{name}]", name, wrong)
        check_resource_quantity(name, amount, f"{path}[{name}]", problems)


def _check_spec(spec: Mapping[str, Any], problems: Problems) -> None:
    hard = spec.get("hard") or {}
    _check_hard(hard, "spec.hard", problems)
    if scopes := spec.get("scopes"):
        for scope in scopes:
            if scope not in _SCOPES:
                problems.invalid("spec.scopes", scopes, "unsupported scope")
            _check_scope_fits(scope, hard, "spec.scopes", scopes, problems)
        _check_opposites(scopes, "spec.scopes", spec, problems)
    if (selector := spec.get("scopeSelector")) is not None:
        _check_selector(selector, spec, problems)


def _check_scope_fits(scope: str, hard: Mapping[str, Any], path: str, value: object, problems: Problems) -> None:
    for name in sorted(hard):
        fits = scope not in _SCOPES or name in _SCOPES[scope]
        if is_standard_quota_resource(name) and not fits:
            problems.invalid(path, value, "unsupported scope applied to resource")


def _check_opposites(scopes: list[str], path: str, spec: Mapping[str, Any], problems: Problems) -> None:
    for scope, opposite in _OPPOSITES:
        if scope in scopes and opposite in scopes:
            problems.invalid(path, spec.get("scopes"), "conflicting scopes")


def _check_selector(selector: Mapping[str, Any], spec: Mapping[str, Any], problems: Problems) -> None:
    path, requirements = "spec.scopeSelector.matchExpressions", selector.get("matchExpressions") or ()
    go_text = go_struct("core.ScopeSelector", selector)
    for requirement in requirements:
        scope, operator = requirement.get("scopeName", ""), requirement.get("operator", "")
        values = requirement.get("values") or []
        if scope not in _SCOPES:
            problems.invalid(f"{path}.scopeName", scope, "unsupported scope")
        _check_scope_fits(scope, spec.get("hard") or {}, path, go_text, problems)
        if scope in _SCOPES_WITHOUT_VALUES and operator != "Exists":
            problems.invalid(f"{path}.operator", operator, _MUST_EXIST)
        if operator in ("In", "NotIn"):
            if not values:
                detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                problems.required(f"{path}.values", detail)
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                problems.invalid(f"{path}.values", values, detail)
        else:
            problems.invalid(f"{path}.operator", operator, "not a valid selector operator")
    _check_opposites([requirement.get("scopeName", "") for requirement in requirements], path, spec, problems)


def _check_status(value: Object, problems: Problems) -> None:
    for section in ("hard", "used"):
        _check_hard(value.get("status", {}).get(section), f"status.{section}", problems)


def _validate_quota(value: Object, problems: Problems) -> None:
    check_built_in_metadata(value["metadata"], subdomain_name, True, problems)
    _check_spec(value.get("spec", {}), problems)
    _check_status(value, problems)


def _validate_quota_update(new: Object, old: Object, problems: Problems) -> None:
    validate_metadata_update(new, old, problems)
    _check_spec(new.get("spec", {}), problems)
    scopes = new.get("spec", {}).get("scopes")
    if set(scopes or ()) != set(old.get("spec", {}).get("scopes") or ()):
        problems.invalid("spec.scopes", scopes, IMMUTABLE)


def _validate_quota_status_update(new: Object, old: Object, problems: Problems) -> None:
    validate_metadata_update(new, old, problems)
    _check_status(new, problems)


def _validate_limit_range(value: Object, problems: Problems) -> None:
    check_built_in_metadata(value["metadata"], subdomain_name, True, problems)
    seen: set[str] = set()
    for index, limit in enumerate(value.get("spec", {}).get("limits") or ()):
        path, kind = f"spec.limits[{index}]", limit.get("type", "")
        if wrong := qualified_name(kind):
            problems.all_invalid(f"{path}.type", kind, wrong)
        elif "/" not in kind and kind not in _LIMIT_TYPES:
            problems.invalid(f"{path}.type", kind, "must be a standard limit type or fully qualified")
        if kind in seen:
            problems.duplicate(f"{path}.type", kind)
        seen.add(kind)
        _check_limit(limit, kind, path, problems)


def _check_limit(limit: Mapping[str, Any], kind: str, path: str, problems: Problems) -> None:
    parts = {
        part: limit.get(part) or {} for part in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
    }
    rule = container_resource if kind in ("Pod", "Container") else resource_name
    for part in ("max", "min"):
        _check_names(parts[part], rule, f"{path}.{part}", problems)
    for part in ("default", "defaultRequest"):
        if kind != "Pod":
            _check_names(parts[part], rule, f"{path}.{part}", problems)
        elif parts[part]:
            problems.forbidden(f"{path}.{part}", "may not be specified when `type` is 'Pod'")
            parts[part] = {}
    if kind == "PersistentVolumeClaim" and "storage" not in parts["min"] and "storage" not in parts["max"]:
        detail = "either minimum or maximum storage value is required, but neither was provided"
        problems.required(f"{path}.limits", detail)
    _check_names(parts["maxLimitRequestRatio"], rule, f"{path}.maxLimitRequestRatio", problems)
    for name in dict.fromkeys(name for part in parts.values() for name in part):
        _check_order(name, {part: amounts[name] for part, amounts in parts.items() if name in amounts}, path, problems)


def _check_names(amounts: Mapping[str, Any], rule: Any, path: str, problems: Problems) -> None:  # noqa: ANN401
    for name in amounts:
        problems.all_invalid(f"{path}[{name}]", name, rule(name))


#: Pairs in ascending order: smaller, larger, the field of the error, the quoted value, and the message.
_ORDER_CHECKS = (
    ("min", "max", "min", "min", "min value {0} is greater than max value {1}"),
    (
        "min",
        "defaultRequest",
        "defaultRequest",
        "defaultRequest",
        "min value {0} is greater than default request value {1}",
    ),
    (
        "defaultRequest",
        "max",
        "defaultRequest",
        "defaultRequest",
        "default request value {0} is greater than max value {1}",
    ),
    (
        "defaultRequest",
        "default",
        "defaultRequest",
        "defaultRequest",
        "default request value {0} is greater than default limit value {1}",
    ),
    ("min", "default", "default", "min", "min value {0} is greater than default value {1}"),
    ("default", "max", "default", "max", "default value {0} is greater than max value {1}"),
)


def _check_order(name: str, texts: Mapping[str, str], path: str, problems: Problems) -> None:
    amounts = {part: quantity(text) for part, text in texts.items()}
    for small, large, field, key, message in _ORDER_CHECKS:
        if small in amounts and large in amounts and amounts[small] > amounts[large]:
            detail = message.format(texts[small], texts[large])
            problems.invalid(f"{path}.{field}[{name}]", texts[key], detail)
    ratio, at = amounts.get("maxLimitRequestRatio"), f"{path}.maxLimitRequestRatio[{name}]"
    if ratio is not None:
        text = texts["maxLimitRequestRatio"]
        if ratio < quantity(1):
            problems.invalid(at, text, f"ratio {text} is less than 1")
        if "min" in amounts and "max" in amounts:
            _check_ratio(ratio, amounts["min"], amounts["max"], text, at, problems)
    has_both = "default" in amounts and "defaultRequest" in amounts
    if has_both and not is_overcommit_allowed(name) and amounts["default"] != amounts["defaultRequest"]:
        detail = f"default value {texts['default']} must equal to defaultRequest value {texts['defaultRequest']}"
        problems.invalid(f"{path}.defaultRequest[{name}]", texts["defaultRequest"], f"{detail} in {name}")


def _check_ratio(ratio: Quantity, low: Quantity, high: Quantity, text: str, path: str, problems: Problems) -> None:
    limit = high.milli_value / low.milli_value if low.nanos else float("inf")
    if ratio.milli_value / 1000 > limit:
        problems.invalid(path, text, f"ratio {text} is greater than max/min = {limit:f}")


def _validate_limit_range_update(new: Object, old: Object, problems: Problems) -> None:
    _validate_limit_range(new, problems)


# Columns


def resource_quota_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a ResourceQuota: used and hard amounts, limits separately."""
    status = value.get("status", {})
    used = status.get("used") or {}
    texts: tuple[list[str], list[str]] = ([], [])
    for name, hard in sorted((status.get("hard") or {}).items()):
        texts[name.startswith("limits.")].append(f"{name}: {used.get(name, '0')}/{hard}")
    return [value["metadata"].get("name", ""), *(", ".join(part) for part in texts), age(value, now)]


#: The kinds with special behaviour, by storage name.
KINDS: Mapping[str, Kind] = {
    "limitranges": Kind(
        defaults={"v1": set_limit_range_defaults},
        strategy=UPSERT,
        rules=ValidationRules(_validate_limit_range, _validate_limit_range_update),
    ),
    "resourcequotas": Kind(
        defaults={"v1": set_resource_quota_defaults},
        strategy=WITH_STATUS,
        rules=ValidationRules(_validate_quota, _validate_quota_update, _validate_quota_status_update),
        cells=resource_quota_cells,
    ),
}
