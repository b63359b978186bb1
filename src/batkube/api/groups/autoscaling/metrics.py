"""The metrics of autoscalers, between autoscaling/v2 and the JSON that v1 keeps in annotations.

Version 2 has a metric, what it is about and a target; in version 1 all of it lies side by side. Kubernetes:
pkg/apis/autoscaling/v1/conversion.go. Fields are written in the order of Go's types, since the text is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Source = dict[str, Any]

#: The field of a metric that its type names, in the order in which Go writes them.
_FIELDS = {
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "External": "external",
}
_OBJECT = ("kind", "name", "apiVersion")


def metric_to_v1(metric: Source) -> Source:
    """Return the metric of a specification as v1 keeps it."""
    return _each(metric, _SPEC_TO_V1)


def metric_from_v1(metric: Source) -> Source:
    """Return the metric of a specification that v1 kept."""
    return _each(metric, _SPEC_FROM_V1)


def status_to_v1(metric: Source) -> Source:
    """Return the metric of a status as v1 keeps it."""
    return _each(metric, _STATUS_TO_V1)


def status_from_v1(metric: Source) -> Source:
    """Return the metric of a status that v1 kept."""
    return _each(metric, _STATUS_FROM_V1)


def _each(metric: Source, conversions: Mapping[str, Callable[[Source], Source]]) -> Source:
    converted: Source = {"type": metric.get("type", "")}
    for field in _FIELDS.values():
        if metric.get(field) is not None:
            converted[field] = conversions[field](metric[field])
    return converted


def _fields(**fields: Any) -> Source:  # noqa: ANN401 - any JSON
    """Return the fields that are there."""
    return {name: value for name, value in fields.items() if value is not None}


def _reference(value: Source | None) -> Source:
    return {name: (value or {}).get(name, "") for name in _OBJECT if name != "apiVersion" or (value or {}).get(name)}


def _identifier(name: str, selector: Source | None) -> Source:
    return {"name": name, **_fields(selector=selector)}


def _selector(metric: Source) -> Source | None:
    """Return the selector of a metric with its labels in the order in which Go writes a map."""
    selector: Source | None = metric.get("selector")
    if selector is None:
        return None
    labels, expressions = selector.get("matchLabels"), selector.get("matchExpressions")
    return _fields(matchLabels=dict(sorted(labels.items())) if labels else None, matchExpressions=expressions)


def _measured(source: Source, field: str) -> tuple[Source, Source]:
    """Return what is measured and the values of it."""
    return source.get("metric") or {}, source.get(field) or {}


def _object_to_v1(source: Source) -> Source:
    metric, target = _measured(source, "target")
    return {
        "target": _reference(source.get("describedObject")),
        "metricName": metric.get("name", ""),
        "targetValue": target.get("value", "0"),
        **_fields(selector=_selector(metric), averageValue=target.get("averageValue")),
    }


def _object_from_v1(source: Source) -> Source:
    average = source.get("averageValue")
    return {
        "describedObject": _reference(source.get("target")),
        "target": {
            "type": "Value" if average is None else "AverageValue",
            "value": source.get("targetValue", "0"),
            **_fields(averageValue=average),
        },
        "metric": _identifier(source.get("metricName", ""), source.get("selector")),
    }


def _pods_to_v1(source: Source) -> Source:
    metric, target = _measured(source, "target")
    return {
        "metricName": metric.get("name", ""),
        "targetAverageValue": target.get("averageValue", "0"),
        **_fields(selector=_selector(metric)),
    }


def _pods_from_v1(source: Source) -> Source:
    return {
        "metric": _identifier(source.get("metricName", ""), source.get("selector")),
        "target": {"type": "AverageValue", "averageValue": source.get("targetAverageValue", "0")},
    }


def _resource_to_v1(source: Source) -> Source:
    target = source.get("target") or {}
    return {
        "name": source.get("name", ""),
        **_fields(
            targetAverageUtilization=target.get("averageUtilization"),
            targetAverageValue=target.get("averageValue"),
            container=source.get("container"),
        ),
    }


def _resource_from_v1(source: Source) -> Source:
    percent = source.get("targetAverageUtilization")
    return {
        "name": source.get("name", ""),
        "target": {
            "type": "AverageValue" if percent is None else "Utilization",
            **_fields(averageValue=source.get("targetAverageValue"), averageUtilization=percent),
        },
        **_fields(container=source.get("container")),
    }


def _external_to_v1(source: Source) -> Source:
    metric, target = _measured(source, "target")
    return {
        "metricName": metric.get("name", ""),
        **_fields(
            metricSelector=_selector(metric),
            targetValue=target.get("value"),
            targetAverageValue=target.get("averageValue"),
        ),
    }


def _external_from_v1(source: Source) -> Source:
    value = source.get("targetValue")
    return {
        "metric": _identifier(source.get("metricName", ""), source.get("metricSelector")),
        "target": {
            "type": "AverageValue" if value is None else "Value",
            **_fields(value=value, averageValue=source.get("targetAverageValue")),
        },
    }


def _object_status_to_v1(source: Source) -> Source:
    metric, current = _measured(source, "current")
    return {
        "target": _reference(source.get("describedObject")),
        "metricName": metric.get("name", ""),
        "currentValue": current.get("value", "0"),
        **_fields(selector=_selector(metric), averageValue=current.get("averageValue")),
    }


def _object_status_from_v1(source: Source) -> Source:
    return {
        "metric": _identifier(source.get("metricName", ""), source.get("selector")),
        "current": {"value": source.get("currentValue", "0"), **_fields(averageValue=source.get("averageValue"))},
        "describedObject": _reference(source.get("target")),
    }


def _pods_status_to_v1(source: Source) -> Source:
    metric, current = _measured(source, "current")
    return {
        "metricName": metric.get("name", ""),
        "currentAverageValue": current.get("averageValue", "0"),
        **_fields(selector=_selector(metric)),
    }


def _pods_status_from_v1(source: Source) -> Source:
    return {
        "metric": _identifier(source.get("metricName", ""), source.get("selector")),
        "current": {"averageValue": source.get("currentAverageValue", "0")},
    }


def _resource_status_to_v1(source: Source) -> Source:
    current = source.get("current") or {}
    return {
        "name": source.get("name", ""),
        **_fields(currentAverageUtilization=current.get("averageUtilization")),
        "currentAverageValue": current.get("averageValue", "0"),
        **_fields(container=source.get("container")),
    }


def _resource_status_from_v1(source: Source) -> Source:
    return {
        "name": source.get("name", ""),
        "current": {
            "averageValue": source.get("currentAverageValue", "0"),
            **_fields(averageUtilization=source.get("currentAverageUtilization")),
        },
        **_fields(container=source.get("container")),
    }


def _external_status_to_v1(source: Source) -> Source:
    metric, current = _measured(source, "current")
    return {
        "metricName": metric.get("name", ""),
        **_fields(metricSelector=_selector(metric)),
        "currentValue": current.get("value", "0"),
        **_fields(currentAverageValue=current.get("averageValue")),
    }


def _external_status_from_v1(source: Source) -> Source:
    return {
        "metric": _identifier(source.get("metricName", ""), source.get("metricSelector")),
        "current": {
            "value": source.get("currentValue", "0"),
            **_fields(averageValue=source.get("currentAverageValue")),
        },
    }


_SPEC_TO_V1 = {
    "object": _object_to_v1,
    "pods": _pods_to_v1,
    "resource": _resource_to_v1,
    "containerResource": _resource_to_v1,
    "external": _external_to_v1,
}
_SPEC_FROM_V1 = {
    "object": _object_from_v1,
    "pods": _pods_from_v1,
    "resource": _resource_from_v1,
    "containerResource": _resource_from_v1,
    "external": _external_from_v1,
}
_STATUS_TO_V1 = {
    "object": _object_status_to_v1,
    "pods": _pods_status_to_v1,
    "resource": _resource_status_to_v1,
    "containerResource": _resource_status_to_v1,
    "external": _external_status_to_v1,
}
_STATUS_FROM_V1 = {
    "object": _object_status_from_v1,
    "pods": _pods_status_from_v1,
    "resource": _resource_status_from_v1,
    "containerResource": _resource_status_from_v1,
    "external": _external_status_from_v1,
}
