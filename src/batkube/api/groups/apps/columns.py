"""What `kubectl get` prints of the kinds that make pods: apps, batch, autoscaling, policy.

Kubernetes: pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from batkube.api.printing.ages import UNKNOWN, age, between, since
from batkube.api.printing.texts import NONE, UNSET, container_cells, cut, labels, selector, selector_or_none, truth
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

#: The words of a job's status, the first condition that holds wins; a deletion comes between the two groups.
_JOB_ENDS = ("Complete", "Failed")
_JOB_STATES = ("Suspended", "FailureTarget", "SuccessCriteriaMet")


def deployment_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a Deployment."""
    spec, status = value.get("spec", {}), value.get("status", {})
    return [
        value["metadata"].get("name", ""),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age(value, now),
        *container_cells(spec.get("template")),
        selector(spec.get("selector")),
    ]


def replica_set_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a ReplicaSet."""
    spec = value.get("spec", {})
    return [*_replica_cells(value, now), selector_or_none(spec.get("selector"))]


def replication_controller_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a ReplicationController, whose selector is a plain set of labels."""
    return [*_replica_cells(value, now), labels(value.get("spec", {}).get("selector"))]


def _replica_cells(value: KubeObject, now: Instant) -> list[Any]:
    spec, status = value.get("spec", {}), value.get("status", {})
    return [
        value["metadata"].get("name", ""),
        spec.get("replicas", 0),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        age(value, now),
        *container_cells(spec.get("template")),
    ]


def stateful_set_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a StatefulSet."""
    spec, status = value.get("spec", {}), value.get("status", {})
    return [
        value["metadata"].get("name", ""),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        age(value, now),
        *container_cells(spec.get("template")),
    ]


def daemon_set_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a DaemonSet."""
    spec, status = value.get("spec", {}), value.get("status", {})
    template = spec.get("template", {})
    counters = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    return [
        value["metadata"].get("name", ""),
        *(status.get(counter, 0) for counter in counters),
        labels(template.get("spec", {}).get("nodeSelector")),
        age(value, now),
        *container_cells(template),
        selector_or_none(spec.get("selector")),
    ]


def controller_revision_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a ControllerRevision."""
    metadata = value["metadata"]
    owner = next((part for part in metadata.get("ownerReferences") or () if part.get("controller")), None)
    return [metadata.get("name", ""), _owner_text(owner), value.get("revision", 0), age(value, now)]


def _owner_text(owner: Mapping[str, Any] | None) -> str:
    if owner is None:
        return NONE
    group = owner["apiVersion"].rpartition("/")[0]
    kind = f"{owner['kind']}.{group}" if group else owner["kind"]
    return f"{kind.lower()}/{owner['name']}"


def job_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a Job."""
    spec, status = value.get("spec", {}), value.get("status", {})
    return [
        value["metadata"].get("name", ""),
        _job_status(value, status.get("conditions") or ()),
        _completions(spec, status.get("succeeded", 0)),
        _job_duration(status, now),
        age(value, now),
        *container_cells(spec.get("template")),
        selector_or_none(spec.get("selector")),
    ]


def _job_status(value: KubeObject, conditions: Sequence[Mapping[str, Any]]) -> str:
    # The first condition of a type counts (Kubernetes: hasJobCondition).
    first: dict[str, Any] = {}
    for condition in conditions:
        first.setdefault(condition.get("type", ""), condition.get("status"))
    for word in _JOB_ENDS:
        if first.get(word) == "True":
            return word
    if value["metadata"].get("deletionTimestamp") is not None:
        return "Terminating"
    return next((word for word in _JOB_STATES if first.get(word) == "True"), "Running")


def _completions(spec: Mapping[str, Any], succeeded: int) -> str:
    if spec.get("completions") is not None:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(status: Mapping[str, Any], now: Instant) -> str:
    start, end = status.get("startTime"), status.get("completionTime")
    if start is None:
        return ""
    return since(start, now) if end is None else between(start, end)


def cron_job_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a CronJob."""
    spec, status = value.get("spec", {}), value.get("status", {})
    job = spec.get("jobTemplate", {}).get("spec", {})
    last = status.get("lastScheduleTime")
    return [
        value["metadata"].get("name", ""),
        spec.get("schedule", ""),
        spec.get("timeZone", NONE),
        truth(spec.get("suspend")),
        len(status.get("active") or ()),
        NONE if last is None else since(last, now),
        age(value, now),
        *container_cells(job.get("template")),
        selector_or_none(job.get("selector")),
    ]


def disruption_budget_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a PodDisruptionBudget."""
    spec = value.get("spec", {})
    return [
        value["metadata"].get("name", ""),
        *(str(spec[bound]) if spec.get(bound) is not None else "N/A" for bound in ("minAvailable", "maxUnavailable")),
        value.get("status", {}).get("disruptionsAllowed", 0),
        age(value, now),
    ]


def scale_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a Scale."""
    replicas = [value.get(part, {}).get("replicas", 0) for part in ("spec", "status")]
    return [value["metadata"].get("name", ""), *replicas, age(value, now)]


def autoscaler_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a HorizontalPodAutoscaler, given as autoscaling/v1 or v2."""
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


#: How Go prints a quantity that is not there.
_NIL = "<nil>"
#: The field of a metric that holds its source, by type, and whether its text starts with the name of the resource.
_METRIC_SOURCES = {
    "External": ("external", False),
    "Pods": ("pods", False),
    "Object": ("object", False),
    "Resource": ("resource", True),
    "ContainerResource": ("containerResource", True),
}


def _metrics_text(spec: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    """Return current and wanted values of the first two metrics (Kubernetes: formatHPAMetrics)."""
    metrics = spec.get("metrics") or ()
    current = status.get("currentMetrics") or ()
    if not metrics and spec.get("targetCPUUtilizationPercentage") is not None:
        wanted, seen = spec["targetCPUUtilizationPercentage"], status.get("currentCPUUtilizationPercentage")
        return f"cpu: {UNKNOWN if seen is None else f'{seen}%'}/{wanted}%"
    parts = [_metric_text(metric, current[i] if i < len(current) else {}) for i, metric in enumerate(metrics)]
    return cut(parts, 2, ", ") or NONE


def _metric_text(metric: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    if metric.get("type") not in _METRIC_SOURCES:
        return "<unknown type>"
    field, is_resource = _METRIC_SOURCES[metric["type"]]
    source = metric.get(field, {})
    target, told = source.get("target", {}), status.get(field)
    seen = (told or {}).get("current", {})
    # A value that is missing where the metric is there is Go's nil; where the metric is missing, it is unknown.
    missing = UNKNOWN if told is None else _NIL
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


def _percent(value: Mapping[str, Any], otherwise: str) -> str:
    percent = value.get("averageUtilization")
    return otherwise if percent is None else f"{percent}%"
