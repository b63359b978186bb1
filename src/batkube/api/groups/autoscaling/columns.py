"""Cells of HorizontalPodAutoscalers and Scales (Kubernetes: pkg/printers/internalversion/printers.go)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.printing.ages import UNKNOWN, age
from batkube.api.printing.cell_texts import NONE, UNSET, join_first
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

#: Go's text of a nil quantity.
_NIL = "<nil>"
#: By metric type: the field with its source, and whether its text starts with the resource name.
_METRIC_SOURCES = {
    "External": ("external", False),
    "Pods": ("pods", False),
    "Object": ("object", False),
    "Resource": ("resource", True),
    "ContainerResource": ("containerResource", True),
}


def scale_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a Scale."""
    replicas = [value.get(section, {}).get("replicas", 0) for section in ("spec", "status")]
    return [value["metadata"].get("name", ""), *replicas, age(value, now)]


def autoscaler_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a HorizontalPodAutoscaler in autoscaling/v1 or v2."""
    spec, status = value.get("spec", {}), value.get("status", {})
    target = spec.get("scaleTargetRef", {})
    return [
        value["metadata"].get("name", ""),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        _metrics_text(spec, status),
        str(spec["minReplicas"]) if spec.get("minReplicas") is not None else UNSET,
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        age(value, now),
    ]


def _metrics_text(spec: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    """Return current and target values of the first two metrics (Kubernetes: formatHPAMetrics)."""
    metrics = spec.get("metrics") or ()
    current = status.get("currentMetrics") or ()
    if not metrics and spec.get("targetCPUUtilizationPercentage") is not None:
        target_percent, seen = spec["targetCPUUtilizationPercentage"], status.get("currentCPUUtilizationPercentage")
        return f"cpu: {UNKNOWN if seen is None else f'{seen}%'}/{target_percent}%"
    parts = [_metric_text(metric, current[i] if i < len(current) else {}) for i, metric in enumerate(metrics)]
    return join_first(parts, 2, ", ") or NONE


def _metric_text(metric: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    if metric.get("type") not in _METRIC_SOURCES:
        return "<unknown type>"
    field, is_resource = _METRIC_SOURCES[metric["type"]]
    source = metric.get(field, {})
    target, own_status = source.get("target", {}), status.get(field)
    seen = (own_status or {}).get("current", {})
    # A missing value of an existing metric is printed as Go's nil, that of a missing metric as unknown.
    missing = UNKNOWN if own_status is None else _NIL
    is_average = target.get("averageValue") is not None
    if is_resource:
        name = source.get("name", "")
        if is_average:
            return f"{name}: {seen.get('averageValue', missing)}/{target['averageValue']}"
        return f"{name}: {_percent(seen, UNKNOWN)}/{_percent(target, '<auto>')}"
    if field == "pods":
        return f"{seen.get('averageValue', missing)}/{target.get('averageValue', _NIL)}"
    if is_average:
        return f"{seen.get('averageValue', UNKNOWN)}/{target['averageValue']} (avg)"
    return f"{seen.get('value', missing)}/{target.get('value', _NIL)}"


def _percent(value: Mapping[str, Any], default: str) -> str:
    percent = value.get("averageUtilization")
    return default if percent is None else f"{percent}%"
