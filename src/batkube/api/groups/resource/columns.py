"""Cells of ResourceClaims, ResourceSlices and related kinds (pkg/printers/internalversion/printers.go)."""

from __future__ import annotations

from typing import Any

from batkube.api.printing.ages import age, time_since
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant


def resource_claim_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a ResourceClaim."""
    status = value.get("status", {})
    states = ["deleted"] if value["metadata"].get("deletionTimestamp") is not None else []
    if status.get("allocation") is not None:
        states += ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
    return [value["metadata"].get("name", ""), ",".join(states or ["pending"]), age(value, now)]


def resource_slice_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a ResourceSlice."""
    spec = value.get("spec", {})
    return [
        value["metadata"].get("name", ""),
        spec.get("nodeName", ""),
        spec.get("driver", ""),
        spec.get("pool", {}).get("name", ""),
        age(value, now),
    ]


def device_taint_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a DeviceTaintRule."""
    taint = value.get("spec", {}).get("taint", {})
    added = taint.get("timeAdded")
    return [
        value["metadata"].get("name", ""),
        *(taint.get(field, "") for field in ("key", "value", "effect")),
        "" if added is None else time_since(added, now),
        age(value, now),
    ]


def name_and_age_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of kinds with only a name and an age."""
    return [value["metadata"].get("name", ""), age(value, now)]
