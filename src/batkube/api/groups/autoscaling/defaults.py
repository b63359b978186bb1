"""Defaults of HorizontalPodAutoscalers. Kubernetes: pkg/apis/autoscaling/{v1,v2}/defaults.go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from batkube.api.groups.kind_model.defaults import Defaults, ensure_struct, fill_absent

#: The default target utilization of cpu, in percent of the requests.
CPU_UTILISATION_PERCENT = 80

_PREFIX = "autoscaling.alpha.kubernetes.io/"
METRICS = _PREFIX + "metrics"
BEHAVIOR = _PREFIX + "behavior"
CURRENT_METRICS = _PREFIX + "current-metrics"
CONDITIONS = _PREFIX + "conditions"
#: Annotations in which autoscaling/v1 keeps fields of v2; clients cannot set them.
_ROUND_TRIP = (
    METRICS,
    BEHAVIOR,
    CURRENT_METRICS,
    CONDITIONS,
    _PREFIX + "scale-down-tolerance",
    _PREFIX + "scale-up-tolerance",
)

_REPLICAS: Defaults = {"minReplicas": 1}
_SCALE_UP: Defaults = {"stabilizationWindowSeconds": 0, "selectPolicy": "Max"}
_SCALE_DOWN: Defaults = {"selectPolicy": "Max"}


def cpu_metric(percent: int) -> dict[str, Any]:
    """Return the metric with a target utilization of `percent` of the requested cpu."""
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def without_round_trip_annotations(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return metadata without the annotations that hold fields of another version."""
    annotations = metadata.get("annotations")
    if not annotations or not any(name in annotations for name in _ROUND_TRIP):
        return metadata
    remaining = {name: text for name, text in annotations.items() if name not in _ROUND_TRIP}
    others = {name: value for name, value in metadata.items() if name != "annotations"}
    return {**others, "annotations": remaining} if remaining else others


def set_autoscaler_v1_defaults(obj: dict[str, Any]) -> None:
    """Set the default minReplicas."""
    fill_absent(ensure_struct(obj, "spec"), _REPLICAS)


def set_autoscaler_v2_defaults(obj: dict[str, Any]) -> None:
    """Set the defaults of minReplicas, metrics and scaling rules."""
    spec = ensure_struct(obj, "spec")
    fill_absent(spec, _REPLICAS)
    if not spec.get("metrics"):
        spec["metrics"] = [cpu_metric(CPU_UTILISATION_PERCENT)]
    behavior = spec.get("behavior")
    if behavior is not None:
        _set_scaling_rules_defaults(ensure_struct(behavior, "scaleUp"), _SCALE_UP, _scale_up_policies)
        _set_scaling_rules_defaults(ensure_struct(behavior, "scaleDown"), _SCALE_DOWN, _scale_down_policies)
    obj["metadata"] = without_round_trip_annotations(ensure_struct(obj, "metadata"))


def _set_scaling_rules_defaults(
    rules: dict[str, Any], defaults: Defaults, policies: Callable[[], list[dict[str, Any]]]
) -> None:
    fill_absent(rules, defaults)
    if rules.get("policies") is None:
        rules["policies"] = policies()


def _scale_up_policies() -> list[dict[str, Any]]:
    return [{"type": "Pods", "value": 4, "periodSeconds": 15}, *_scale_down_policies()]


def _scale_down_policies() -> list[dict[str, Any]]:
    return [{"type": "Percent", "value": 100, "periodSeconds": 15}]
