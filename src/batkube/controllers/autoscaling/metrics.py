"""Metric sources of a HorizontalPodAutoscaler, with the status and the errors of each.

Resource metrics of pods and of single containers are supported. The other three sources need an API server for custom
or external metrics, which the simulated cluster does not have. Kubernetes: pkg/controller/podautoscaler/horizontal.go,
computeReplicasForMetric; messages are copied with their peculiarities.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from batkube.cluster.pods.usage import PodUsage
from batkube.cluster.store import KubeObject
from batkube.controllers.autoscaling.replica_calculator import (
    CalculationFailed,
    ReplicaProposal,
    Target,
    calculate_replicas,
)
from batkube.kernel.instants import Instant
from batkube.kernel.quantities import MEMORY, Format, Quantity, parse_quantity

_NANOS_PER_MILLI = 1_000_000
_NO_CUSTOM = "unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered"


class MetricUnavailable(Exception):
    """A metric is not available: reason and message of the condition, and the whole text of the error."""

    def __init__(self, reason: str, message: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason
        self.message = message


class MetricResult(NamedTuple):
    """The replicas that a metric requires, its name, and its entry in currentMetrics."""

    replicas: int
    name: str
    status: KubeObject


def replicas_for_metric(
    spec: KubeObject, namespace: str, pods: Sequence[KubeObject], use: PodUsage, size: int, now: Instant
) -> MetricResult:
    """Return the replicas that one metric requires, given the target's pods. Raises MetricUnavailable."""
    kind = spec["type"]
    field = kind[0].lower() + kind[1:]
    if kind in ("Resource", "ContainerResource"):
        return _resource_metric(spec[field], kind, field, pods, use, size, now)
    raise _unavailable_source(kind, spec[field], namespace)


def _resource_metric(
    source: KubeObject, kind: str, field: str, pods: Sequence[KubeObject], use: PodUsage, size: int, now: Instant
) -> MetricResult:
    name, container = source["name"], source.get("container", "")
    target = _target(source)
    try:
        proposal = calculate_replicas(target, pods, use, size, now)
    except CalculationFailed as failure:
        quantity = "usage" if target.utilisation_percent is None else "utilization"
        message = f"failed to get {name} {quantity}: {failure}"
        subject = f"{container} container metric" if container else f"{name} resource metric"
        raise MetricUnavailable(
            f"FailedGet{kind}Metric", message, f"failed to get {subject} value: {message}"
        ) from failure
    title = f"{name} resource"
    if target.utilisation_percent is not None:
        title = f"{name} {'container ' if container else ''}resource utilization (percentage of request)"
    current = {
        **({"container": container} if container else {}),
        "name": name,
        "current": _current_value(name, proposal),
    }
    return MetricResult(proposal.replicas, title, {"type": kind, field: current})


def _target(source: KubeObject) -> Target:
    """Return the target of a metric; averageValue takes precedence over averageUtilization."""
    target, average = source["target"], source["target"].get("averageValue")
    milli = None if average is None else parse_quantity(average).milli_value
    percent = target.get("averageUtilization") if milli is None else None
    return Target(source["name"], source.get("container", ""), percent, milli)


def _current_value(resource: str, proposal: ReplicaProposal) -> KubeObject:
    form = Format.BINARY_SI if resource == MEMORY else Format.DECIMAL_SI
    average = {"averageValue": str(Quantity(proposal.average * _NANOS_PER_MILLI, form))}
    if proposal.utilisation_percent is None:
        return average
    return {"averageUtilization": proposal.utilisation_percent, **average}


def _unavailable_source(kind: str, source: KubeObject, namespace: str) -> MetricUnavailable:
    """Return the error of a metric whose API does not exist on this cluster."""
    name, has_average = source["metric"]["name"], source["target"].get("averageValue") is not None
    if kind == "Pods":
        message = f"unable to get metric {name}: {_NO_CUSTOM}"
        return MetricUnavailable("FailedGetPodsMetric", message, f"failed to get pods metric value: {message}")
    if kind == "Object":
        described = source["describedObject"]
        # As in Kubernetes' GetObjectMetricReplicas, four of the five arguments of the message are in the wrong order.
        message = f"unable to get metric {name}: {described['kind']} on {namespace} {described['name']}/{_NO_CUSTOM}"
        detail = f"failed to get {name} object metric: " if has_average else ""
        return MetricUnavailable(
            "FailedGetObjectMetric", message, f"failed to get object metric value: {detail}{message}"
        )
    not_found = f"the server could not find the requested resource (get {name}.external.metrics.k8s.io)"
    selector = _selector_text(source["metric"].get("selector"))
    message = f"unable to get external metric {namespace}/{name}/{selector}: "
    message += f"unable to fetch metrics from external metrics API: {not_found}"
    detail = f"failed to get {name} external metric" if has_average else f"failed to get external metric {name}"
    return MetricUnavailable(
        "FailedGetExternalMetric", message, f"failed to get {name} external metric value: {detail}: {message}"
    )


def _selector_text(selector: KubeObject | None) -> str:
    """Format a selector as Go does (Kubernetes: LabelSelector.String, generated)."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    rules = "".join(
        f"LabelSelectorRequirement{{Key:{rule['key']},Operator:{rule['operator']},"
        f"Values:[{' '.join(rule.get('values') or ())}],}},"
        for rule in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{rules}}},}}"
    )
