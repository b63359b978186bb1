"""What `kubectl get` prints of nodes, namespaces, events and the small kinds of the core group.

Kubernetes: pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.printing.ages import UNKNOWN, age, since
from batkube.api.printing.texts import NONE
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"


def node_cells(node: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a Node."""
    status = node.get("status", {})
    info, addresses = status.get("nodeInfo", {}), status.get("addresses") or ()
    by_type: dict[str, str] = {}
    for address in addresses:
        by_type.setdefault(address.get("type", ""), address.get("address", ""))
    return [
        node["metadata"].get("name", ""),
        _node_status(node, status),
        ",".join(_node_roles(node["metadata"].get("labels") or {})) or NONE,
        age(node, now),
        info.get("kubeletVersion", ""),
        by_type.get("InternalIP", NONE),
        by_type.get("ExternalIP", NONE),
        *(info.get(field) or UNKNOWN for field in ("osImage", "kernelVersion", "containerRuntimeVersion")),
    ]


def _node_status(node: KubeObject, status: Mapping[str, Any]) -> str:
    # The last condition of a type counts, as in the map that the original builds.
    ready = {part.get("type"): part.get("status") for part in status.get("conditions") or ()}.get("Ready")
    word = "Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"
    return f"{word},SchedulingDisabled" if node.get("spec", {}).get("unschedulable") else word


def _node_roles(labels: Mapping[str, str]) -> list[str]:
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    return sorted((roles | {labels.get(_ROLE_LABEL, "")}) - {""})


def namespace_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a Namespace."""
    return [value["metadata"].get("name", ""), value.get("status", {}).get("phase", ""), age(value, now)]


def event_cells(event: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of an Event, given as core/v1 or as events.k8s.io/v1, which names most fields differently."""
    target = event.get("involvedObject") or event.get("regarding") or {}
    source = event.get("source") or event.get("deprecatedSource") or {}
    first, last, count = _event_times(event, now)
    kind, name = target.get("kind", "").lower(), target.get("name", "")
    component = source.get("component") or event.get("reportingComponent") or event.get("reportingController") or ""
    instance = source.get("host") or event.get("reportingInstance") or ""
    return [
        last,
        event.get("type", ""),
        event.get("reason", ""),
        f"{kind}/{name}" if name else kind,
        target.get("fieldPath", ""),
        f"{component}, {instance}" if instance else component,
        (event.get("message") or event.get("note") or "").strip(),
        first,
        count,
        event["metadata"].get("name", ""),
    ]


def _event_times(event: KubeObject, now: Instant) -> tuple[str, str, int]:
    """Return how long ago an event was first and last seen, and how often."""
    first_time = event.get("firstTimestamp") or event.get("deprecatedFirstTimestamp") or event.get("eventTime")
    last_time = event.get("lastTimestamp") or event.get("deprecatedLastTimestamp") or first_time
    count = event.get("count") or event.get("deprecatedCount") or 1
    series = event.get("series")
    if series is not None:
        last_time, count = series.get("lastObservedTime"), series.get("count", 0)
    return since(first_time, now), since(last_time, now), count


def config_map_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a ConfigMap."""
    size = len(value.get("data") or ()) + len(value.get("binaryData") or ())
    return [value["metadata"].get("name", ""), size, age(value, now)]


def secret_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a Secret."""
    return [value["metadata"].get("name", ""), value.get("type", ""), len(value.get("data") or ()), age(value, now)]


def service_account_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a ServiceAccount."""
    return [value["metadata"].get("name", ""), len(value.get("secrets") or ()), age(value, now)]


def resource_quota_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a ResourceQuota: what is used of what there is, limits apart."""
    status = value.get("status", {})
    used = status.get("used") or {}
    texts: tuple[list[str], list[str]] = ([], [])
    for name, hard in sorted((status.get("hard") or {}).items()):
        texts[name.startswith("limits.")].append(f"{name}: {used.get(name, '0')}/{hard}")
    return [value["metadata"].get("name", ""), *(", ".join(part) for part in texts), age(value, now)]


def priority_class_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a PriorityClass."""
    return [
        value["metadata"].get("name", ""),
        value.get("value", 0),
        value.get("globalDefault", False),
        age(value, now),
        value.get("preemptionPolicy", ""),
    ]


def lease_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a Lease."""
    return [value["metadata"].get("name", ""), value.get("spec", {}).get("holderIdentity", ""), age(value, now)]


def lease_candidate_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a LeaseCandidate."""
    spec = value.get("spec", {})
    words = (spec.get(field, "") for field in ("leaseName", "binaryVersion", "emulationVersion"))
    return [value["metadata"].get("name", ""), *words, age(value, now)]


def runtime_class_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a RuntimeClass."""
    return [value["metadata"].get("name", ""), value.get("handler", ""), age(value, now)]


def component_status_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a ComponentStatus."""
    name = value["metadata"].get("name", "")
    for condition in value.get("conditions") or ():
        if condition.get("type") == "Healthy":
            word = "Healthy" if condition.get("status") == "True" else "Unhealthy"
            return [name, word, condition.get("message", ""), condition.get("error", "")]
    return [name, "Unknown", "", ""]
