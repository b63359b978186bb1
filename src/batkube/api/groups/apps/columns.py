"""Cells of the kinds of the group apps (Kubernetes: pkg/printers/internalversion/printers.go)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.printing.ages import age
from batkube.api.printing.cell_texts import (
    NONE,
    container_cells,
    format_labels,
    format_selector,
    format_selector_or_none,
)
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant


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
        format_selector(spec.get("selector")),
    ]


def replica_set_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a ReplicaSet."""
    spec = value.get("spec", {})
    return [*_replica_cells(value, now), format_selector_or_none(spec.get("selector"))]


def replication_controller_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a ReplicationController, whose selector is a plain map of labels."""
    return [*_replica_cells(value, now), format_labels(value.get("spec", {}).get("selector"))]


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
        format_labels(template.get("spec", {}).get("nodeSelector")),
        age(value, now),
        *container_cells(template),
        format_selector_or_none(spec.get("selector")),
    ]


def controller_revision_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a ControllerRevision."""
    metadata = value["metadata"]
    owner = next(
        (reference for reference in metadata.get("ownerReferences") or () if reference.get("controller")), None
    )
    return [metadata.get("name", ""), _owner_text(owner), value.get("revision", 0), age(value, now)]


def _owner_text(owner: Mapping[str, Any] | None) -> str:
    if owner is None:
        return NONE
    group = owner["apiVersion"].rpartition("/")[0]
    kind = f"{owner['kind']}.{group}" if group else owner["kind"]
    return f"{kind.lower()}/{owner['name']}"
