"""Conversion of autoscaler metrics between autoscaling/v2 and the JSON in v1's annotations.

Version 2 nests a metric's identifier, object and target; in version 1 all fields are flat. The tables map v2 fields to
v1 fields, in the order in which Go writes those of v1, since the resulting text is compared.

Kubernetes: pkg/apis/autoscaling/v1/conversion.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

Source = dict[str, Any]


class _MetricField(NamedTuple):
    """A field of a metric source, in both versions."""

    v1: str
    #: Its path in v2.
    v2: str
    #: Its zero value if it is not set; None if the field is omitted.
    zero: str | None = None


_NAME = _MetricField("metricName", "metric.name", "")
_SELECTOR = _MetricField("selector", "metric.selector")
_OBJECT = _MetricField("target", "describedObject", "")
_RESOURCE = _MetricField("name", "name", "")
_CONTAINER = _MetricField("container", "container")

_Table = Mapping[str, Sequence[_MetricField]]
#: By the field that holds the metric, in the order in which Go writes them.
_SPEC: _Table = {
    "object": (
        _OBJECT,
        _NAME,
        _MetricField("targetValue", "target.value", "0"),
        _SELECTOR,
        _MetricField("averageValue", "target.averageValue"),
    ),
    "pods": (_NAME, _MetricField("targetAverageValue", "target.averageValue", "0"), _SELECTOR),
    **dict.fromkeys(
        ("resource", "containerResource"),
        (
            _RESOURCE,
            _MetricField("targetAverageUtilization", "target.averageUtilization"),
            _MetricField("targetAverageValue", "target.averageValue"),
            _CONTAINER,
        ),
    ),
    "external": (
        _NAME,
        _MetricField("metricSelector", "metric.selector"),
        _MetricField("targetValue", "target.value"),
        _MetricField("targetAverageValue", "target.averageValue"),
    ),
}
_STATUS: _Table = {
    "object": (
        _OBJECT,
        _NAME,
        _MetricField("currentValue", "current.value", "0"),
        _SELECTOR,
        _MetricField("averageValue", "current.averageValue"),
    ),
    "pods": (_NAME, _MetricField("currentAverageValue", "current.averageValue", "0"), _SELECTOR),
    **dict.fromkeys(
        ("resource", "containerResource"),
        (
            _RESOURCE,
            _MetricField("currentAverageUtilization", "current.averageUtilization"),
            _MetricField("currentAverageValue", "current.averageValue", "0"),
            _CONTAINER,
        ),
    ),
    "external": (
        _NAME,
        _MetricField("metricSelector", "metric.selector"),
        _MetricField("currentValue", "current.value", "0"),
        _MetricField("currentAverageValue", "current.averageValue"),
    ),
}


def metric_to_v1(metric: Source) -> Source:
    """Convert a metric in a spec to v1."""
    return _convert_source(metric, _SPEC, _to_v1)


def metric_from_v1(metric: Source) -> Source:
    """Convert a metric in a spec from v1."""
    converted = _convert_source(metric, _SPEC, _from_v1)
    for name in _SPEC:
        if name in converted:
            target = converted[name].setdefault("target", {})
            target["type"] = _target_type(name, target)
    return converted


def status_to_v1(metric: Source) -> Source:
    """Convert a metric in a status to v1."""
    return _convert_source(metric, _STATUS, _to_v1)


def status_from_v1(metric: Source) -> Source:
    """Convert a metric in a status from v1."""
    return _convert_source(metric, _STATUS, _from_v1)


def _convert_source(
    metric: Source, table: _Table, convert: Callable[[Source, Sequence[_MetricField]], Source]
) -> Source:
    sources = {name: convert(metric[name], fields) for name, fields in table.items() if metric.get(name) is not None}
    return {"type": metric.get("type", ""), **sources}


def _to_v1(source: Source, fields: Sequence[_MetricField]) -> Source:
    converted: Source = {}
    for field in fields:
        parent, _, name = field.v2.rpartition(".")
        value = ((source.get(parent) or {}) if parent else source).get(name, field.zero)
        if field is _OBJECT:
            value = _object_reference(value)
        if value is not None:
            converted[field.v1] = _sort_selector(value) if name == "selector" else value
    return converted


def _from_v1(source: Source, fields: Sequence[_MetricField]) -> Source:
    converted: Source = {}
    for field in fields:
        parent, _, name = field.v2.rpartition(".")
        value = source.get(field.v1, field.zero)
        if field is _OBJECT:
            value = _object_reference(value)
        if value is not None:
            (converted.setdefault(parent, {}) if parent else converted)[name] = value
    return converted


def _target_type(name: str, target: Source) -> str:
    """Return the type of a target, which v1 does not have, by the field that is set."""
    if name == "object":
        return "AverageValue" if "averageValue" in target else "Value"
    if "averageUtilization" in target:
        return "Utilization"
    return "Value" if "value" in target else "AverageValue"


def _object_reference(value: Source | None) -> Source:
    """Return the reference of an object metric; apiVersion is omitted if it is not set."""
    return {
        name: (value or {}).get(name, "")
        for name in ("kind", "name", "apiVersion")
        if name != "apiVersion" or (value or {}).get(name)
    }


def _sort_selector(selector: Source) -> Source:
    """Return a selector whose labels are sorted, as Go writes a map."""
    labels, expressions = selector.get("matchLabels"), selector.get("matchExpressions")
    fields = {"matchLabels": dict(sorted(labels.items())) if labels else None, "matchExpressions": expressions}
    return {name: value for name, value in fields.items() if value is not None}
