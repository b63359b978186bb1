"""Conversion of HorizontalPodAutoscalers between autoscaling/v1 and v2.

Version 1 has a target for cpu only. All other metrics, the behavior, the conditions and the current metrics are kept in
annotations, as JSON written by Go. They have the types of v1, except for the behavior, which has the internal type and
therefore capitalized names.

Kubernetes: pkg/apis/autoscaling/v1/conversion.go.
"""

from __future__ import annotations

import json
from typing import Any

from batkube.api.groups.autoscaling.defaults import (
    BEHAVIOR,
    CONDITIONS,
    CPU_UTILISATION_PERCENT,
    CURRENT_METRICS,
    METRICS,
    cpu_metric,
    without_round_trip_annotations,
)
from batkube.api.groups.autoscaling.metric_conversion import metric_from_v1, metric_to_v1, status_from_v1, status_to_v1
from batkube.cluster.store import KubeObject

_SPEC = ("scaleTargetRef", "minReplicas", "maxReplicas")
_COMMON_STATUS = ("observedGeneration", "lastScaleTime")
_RULES = ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")
_POLICY = ("type", "value", "periodSeconds")
_CONDITION = ("type", "status", "lastTransitionTime", "reason", "message")


def to_v1(scaler: KubeObject) -> dict[str, Any]:
    """Convert an autoscaler of autoscaling/v2, possibly with pruned fields, to v1."""
    spec, status = scaler.get("spec") or {}, scaler.get("status") or {}
    metrics = spec.get("metrics") or []
    other_metrics = [metric_to_v1(metric) for metric in metrics if _cpu_percent(metric) is None]
    new_spec = {name: spec[name] for name in _SPEC if name in spec}
    percents = [percent for metric in metrics if (percent := _cpu_percent(metric)) is not None]
    if percents:
        new_spec["targetCPUUtilizationPercentage"] = percents[0]
    annotations: dict[str, Any] = {}
    if other_metrics:
        annotations[METRICS] = other_metrics
    if status.get("currentMetrics"):
        annotations[CURRENT_METRICS] = [status_to_v1(metric) for metric in status["currentMetrics"]]
    if spec.get("behavior") is not None:
        annotations[BEHAVIOR] = {
            _capitalized(way): _rules_to_go_fields(spec["behavior"].get(way)) for way in ("scaleUp", "scaleDown")
        }
    if status.get("conditions"):
        annotations[CONDITIONS] = [_pick_in_order(condition, _CONDITION) for condition in status["conditions"]]
    metadata = dict(without_round_trip_annotations(scaler.get("metadata") or {}))
    if annotations:
        texts = {name: _go_json(value) for name, value in annotations.items()}
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **texts}
    return {**scaler, "metadata": metadata, "spec": new_spec, "status": _status_to_v1(status)}


def from_v1(scaler: KubeObject) -> dict[str, Any]:
    """Convert an autoscaler of autoscaling/v1 to v2; without any metric, the target is 80 % of the requested cpu."""
    spec, status = scaler.get("spec") or {}, scaler.get("status") or {}
    metadata = scaler.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    metrics = [metric_from_v1(metric) for metric in _read_list_annotation(annotations, METRICS)]
    if spec.get("targetCPUUtilizationPercentage") is not None:
        metrics.append(cpu_metric(spec["targetCPUUtilizationPercentage"]))
    new_spec = {name: spec[name] for name in _SPEC if name in spec}
    new_spec["metrics"] = metrics or [cpu_metric(CPU_UTILISATION_PERCENT)]
    behavior = _read_annotation(annotations, BEHAVIOR)
    if isinstance(behavior, dict):
        rules = {
            direction: _rules_from_go_fields(behavior.get(_capitalized(direction)))
            for direction in ("scaleUp", "scaleDown")
        }
        if any(rules.values()):
            new_spec["behavior"] = {direction: rule for direction, rule in rules.items() if rule}
    new_status = _status_from_v1(status)
    current = [status_from_v1(metric) for metric in _read_list_annotation(annotations, CURRENT_METRICS)]
    if current:
        new_status["currentMetrics"] = current
    conditions = _read_list_annotation(annotations, CONDITIONS)
    if conditions:
        new_status["conditions"] = conditions
    return {**scaler, "metadata": without_round_trip_annotations(metadata), "spec": new_spec, "status": new_status}


def _cpu_percent(metric: dict[str, Any]) -> int | None:
    """Return the target utilization of a cpu metric; None for other metrics."""
    source = metric.get("resource") or {}
    if metric.get("type") != "Resource" or source.get("name") != "cpu":
        return None
    percent: int | None = (source.get("target") or {}).get("averageUtilization")
    return percent


def _status_to_v1(status: dict[str, Any]) -> dict[str, Any]:
    new: dict[str, Any] = {name: status[name] for name in _COMMON_STATUS if name in status}
    new["currentReplicas"] = status.get("currentReplicas", 0)
    new["desiredReplicas"] = status.get("desiredReplicas", 0)
    for metric in status.get("currentMetrics") or ():
        source = metric.get("resource") or {}
        percent = (source.get("current") or {}).get("averageUtilization")
        if metric.get("type") == "Resource" and source.get("name") == "cpu" and percent is not None:
            new["currentCPUUtilizationPercentage"] = percent
    return new


def _status_from_v1(status: dict[str, Any]) -> dict[str, Any]:
    new: dict[str, Any] = {name: status[name] for name in _COMMON_STATUS if name in status}
    if status.get("currentReplicas"):
        new["currentReplicas"] = status["currentReplicas"]
    new["desiredReplicas"] = status.get("desiredReplicas", 0)
    percent = status.get("currentCPUUtilizationPercentage")
    if percent is None:
        new["currentMetrics"] = None
    else:
        current = {"name": "cpu", "current": {"averageUtilization": percent}}
        new["currentMetrics"] = [{"type": "Resource", "resource": current}]
    return new


def _rules_to_go_fields(rules: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return scaling rules with the capitalized field names of the internal type, in Go's order."""
    if rules is None:
        return None
    written = {_capitalized(name): rules.get(name) for name in _RULES}
    if rules.get("policies") is not None:
        written["Policies"] = [
            {_capitalized(name): policy.get(name) for name in _POLICY} for policy in rules["policies"]
        ]
    return written


def _rules_from_go_fields(rules: dict[str, Any] | None) -> dict[str, Any]:
    if not isinstance(rules, dict):
        return {}
    read = {name: rules[_capitalized(name)] for name in _RULES if rules.get(_capitalized(name)) is not None}
    if "policies" in read:
        read["policies"] = [{name: policy.get(_capitalized(name)) for name in _POLICY} for policy in read["policies"]]
    return read


def _capitalized(name: str) -> str:
    return name[0].upper() + name[1:]


def _pick_in_order(value: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value[name] for name in names if name in value}


def _read_annotation(annotations: dict[str, str], name: str) -> Any:  # noqa: ANN401 - any JSON
    """Return the JSON in an annotation; None if it is missing or malformed, which kube-apiserver ignores."""
    try:
        return json.loads(annotations[name]) if name in annotations else None
    except ValueError:
        return None


def _read_list_annotation(annotations: dict[str, str], name: str) -> list[dict[str, Any]]:
    value = _read_annotation(annotations, name)
    return value if isinstance(value, list) and all(isinstance(item, dict) for item in value) else []


def _go_json(value: Any) -> str:  # noqa: ANN401 - any JSON
    """Encode JSON as Go's encoding/json does: compact, with HTML characters escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text
