"""Validation of HorizontalPodAutoscalers (Kubernetes: pkg/apis/autoscaling/validation)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.validation.metadata import check_built_in_metadata
from batkube.api.validation.names import dns_label, path_segment, subdomain_name
from batkube.api.validation.problems import Problems
from batkube.api.validation.quantities import check_container_resource, quantity
from batkube.api.validation.rules import Object, ValidationRules, validate_metadata_update

#: The field that holds each type of metric, in the order of the checks.
_METRICS = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
_SELECT_POLICIES = ("Disabled", "Max", "Min")
_VALUE_OR_UTILIZATION_REQUIRED = "must set either a target raw value or a target utilization"
_VALUE_AND_UTILIZATION_FORBIDDEN = "may not set both a target raw value and a target utilization"


def _check_spec(spec: Mapping[str, Any], old: Mapping[str, Any] | None, problems: Problems) -> None:
    low, high = spec.get("minReplicas"), spec.get("maxReplicas", 0)
    if low is not None and low < 1:
        problems.invalid("spec.minReplicas", low, "must be greater than or equal to 1")
    if high < 1:
        problems.invalid("spec.maxReplicas", high, "must be greater than 0")
    if low is not None and high < low:
        problems.invalid("spec.maxReplicas", high, "must be greater than or equal to `minReplicas`")
    target, before = spec.get("scaleTargetRef", {}), (old or {}).get("scaleTargetRef")
    same = before is not None and all(target.get(key) == before.get(key) for key in ("apiVersion", "kind"))
    is_core = target.get("kind") == "ReplicationController"
    _check_target(target, "spec.scaleTargetRef", problems, any_group=is_core, any_version=same)
    metrics = spec.get("metrics") or ()
    for index, metric in enumerate(metrics):
        _check_metric(metric, f"spec.metrics[{index}]", problems)
    if low == 0 and not any(metric.get("type") in ("Object", "External") for metric in metrics):
        detail = "must specify at least one Object or External metric to support scaling to zero replicas"
        problems.forbidden("spec.metrics", detail)
    for direction in ("scaleUp", "scaleDown"):
        rules = (spec.get("behavior") or {}).get(direction)
        if rules is not None:
            _check_scaling_rules(rules, f"spec.behavior.{direction}", problems)


def _check_target(
    target: Mapping[str, Any], path: str, problems: Problems, *, any_group: bool, any_version: bool = False
) -> None:
    for field in ("kind", "name"):
        if not (text := target.get(field)):
            problems.required(f"{path}.{field}")
        else:
            problems.all_invalid(f"{path}.{field}", text, path_segment(text, False))
    version = target.get("apiVersion", "")
    if any_version:
        return
    if version.count("/") > 1:
        problems.invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}")
    elif not any_group and not version.rpartition("/")[0]:
        problems.invalid(f"{path}.apiVersion", version, "apiVersion must specify API group")


def _check_metric(metric: Mapping[str, Any], path: str, problems: Problems) -> None:
    kind = metric.get("type", "")
    kinds = sorted(_METRICS)
    if not kind:
        problems.required(f"{path}.type", "must specify a metric source type")
    if kind not in _METRICS:
        problems.not_supported(f"{path}.type", kind, kinds)
    present = [field for field in _METRICS.values() if metric.get(field) is not None]
    if present:
        _check_source(present[0], metric[present[0]], f"{path}.{present[0]}", problems)
    if kind not in _METRICS:
        problems.not_supported(f"{path}.type", kind, kinds)
    elif _METRICS[kind] not in present:
        detail = "must populate information for the given metric source"
        problems.required(f"{path}.{_METRICS[kind]}", detail)
    if len(present) != 1:
        for field in present:
            if field != _METRICS.get(kind):
                problems.forbidden(f"{path}.{field}", "must populate the given metric source only")


def _check_source(kind: str, source: Mapping[str, Any], path: str, problems: Problems) -> None:
    target = source.get("target", {})
    value, average, share = (target.get(field) for field in ("value", "averageValue", "averageUtilization"))
    if kind == "object":
        _check_target(source.get("describedObject", {}), f"{path}.describedObject", problems, any_group=True)
    if kind in ("object", "external", "pods"):
        _check_identifier(source.get("metric", {}), f"{path}.metric", problems)
    else:
        _check_resource(kind, source, path, problems)
    _check_metric_target(target, f"{path}.target", problems)
    at = f"{path}.target.averageValue"
    if kind == "object" and value is None and average is None:
        problems.required(at, "must set either a target value or averageValue")
    elif kind == "external" and value is None and average is None:
        problems.required(at, "must set either a target value for metric or a per-pod target")
    elif kind == "external" and value is not None and average is not None:
        detail = "may not set both a target value for metric and a per-pod target"
        problems.forbidden(f"{path}.target.value", detail)
    elif kind == "pods" and average is None:
        problems.required(at, "must specify a positive target averageValue")
    elif kind in ("resource", "containerResource"):
        if share is None and average is None:
            problems.required(f"{path}.target.averageUtilization", _VALUE_OR_UTILIZATION_REQUIRED)
        if share is not None and average is not None:
            problems.forbidden(at, _VALUE_AND_UTILIZATION_FORBIDDEN)


def _check_resource(kind: str, source: Mapping[str, Any], path: str, problems: Problems) -> None:
    name = source.get("name", "")
    if not name:
        problems.required(f"{path}.name", "must specify a resource name")
    elif kind == "containerResource":
        check_container_resource(name, f"{path}.name", problems)
    if kind == "containerResource":
        if not (container := source.get("container")):
            problems.required(f"{path}.container", "must specify a container")
        else:
            problems.all_invalid(f"{path}.container", container, dns_label(container))


def _check_identifier(metric: Mapping[str, Any], path: str, problems: Problems) -> None:
    if not (name := metric.get("name")):
        problems.required(f"{path}.name", "must specify a metric name")
    else:
        problems.all_invalid(f"{path}.name", name, path_segment(name, False))


def _check_metric_target(target: Mapping[str, Any], path: str, problems: Problems) -> None:
    kind = target.get("type", "")
    if not kind:
        problems.required(f"{path}.type", "must specify a metric target type")
    if kind not in ("Utilization", "Value", "AverageValue"):
        problems.invalid(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue")
    for field in ("value", "averageValue"):
        amount = target.get(field)
        if amount is not None and quantity(amount).nanos <= 0:
            problems.invalid(f"{path}.{field}", str(amount), "must be positive")
    share = target.get("averageUtilization")
    if share is not None and share < 1:
        problems.invalid(f"{path}.averageUtilization", share, "must be greater than 0")


def _check_scaling_rules(rules: Mapping[str, Any], path: str, problems: Problems) -> None:
    window, at = rules.get("stabilizationWindowSeconds"), f"{path}.stabilizationWindowSeconds"
    if window is not None and window < 0:
        problems.invalid(at, window, "must be greater than or equal to zero")
    if window is not None and window > 3600:
        problems.invalid(at, window, "must be less than or equal to 3600")
    if (policy := rules.get("selectPolicy")) is not None and policy not in _SELECT_POLICIES:
        problems.not_supported(f"{path}.selectPolicy", policy, _SELECT_POLICIES)
    policies = rules.get("policies") or ()
    if not policies:
        problems.required(f"{path}.policies", "must specify at least one Policy")
    for index, policy in enumerate(policies):
        _check_scaling_policy(policy, f"{path}.policies[{index}]", problems)
    tolerance = rules.get("tolerance")
    if tolerance is not None and quantity(tolerance).nanos < 0:
        problems.invalid(f"{path}.tolerance", str(tolerance), "must be greater than or equal to 0")


def _check_scaling_policy(policy: Mapping[str, Any], path: str, problems: Problems) -> None:
    kind, period = policy.get("type", ""), policy.get("periodSeconds", 0)
    if kind not in ("Percent", "Pods"):
        problems.not_supported(f"{path}.type", kind, ("Percent", "Pods"))
    problems.positive(f"{path}.value", policy.get("value", 0))
    problems.positive(f"{path}.periodSeconds", period)
    if period > 1800:
        problems.invalid(f"{path}.periodSeconds", period, "must be less than or equal to 1800")


def _validate_autoscaler_create(value: Object, problems: Problems) -> None:
    check_built_in_metadata(value["metadata"], subdomain_name, True, problems)
    _check_spec(value.get("spec", {}), None, problems)


def _validate_autoscaler_update(new: Object, old: Object, problems: Problems) -> None:
    validate_metadata_update(new, old, problems)
    _check_spec(new.get("spec", {}), old.get("spec", {}), problems)


def _validate_autoscaler_status_update(new: Object, old: Object, problems: Problems) -> None:
    validate_metadata_update(new, old, problems)
    for field in ("currentReplicas", "desiredReplicas"):
        problems.not_negative(f"status.{field}", new.get("status", {}).get(field, 0))


HORIZONTAL_POD_AUTOSCALER_RULES = ValidationRules(
    _validate_autoscaler_create, _validate_autoscaler_update, _validate_autoscaler_status_update
)
