"""Cells of PersistentVolumes and claims (Kubernetes: pkg/printers/internalversion/printers.go)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from batkube.api.printing.ages import age
from batkube.api.printing.cell_texts import UNSET
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

_ACCESS_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


def _access_modes(modes: Sequence[str] | None) -> str:
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in (modes or ()))


def _phase(value: KubeObject) -> str:
    if value["metadata"].get("deletionTimestamp") is not None:
        return "Terminating"
    return str(value.get("status", {}).get("phase", ""))


def _storage_class(value: KubeObject) -> str:
    annotations = value["metadata"].get("annotations") or {}
    return str(annotations.get(_CLASS_ANNOTATION, value.get("spec", {}).get("storageClassName", "")))


def persistent_volume_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a PersistentVolume."""
    spec = value.get("spec", {})
    claim = spec.get("claimRef")
    return [
        value["metadata"].get("name", ""),
        (spec.get("capacity") or {}).get("storage", "0"),
        _access_modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(value),
        "" if claim is None else f"{claim.get('namespace', '')}/{claim.get('name', '')}",
        _storage_class(value),
        spec.get("volumeAttributesClassName", UNSET),
        value.get("status", {}).get("reason", ""),
        age(value, now),
        spec.get("volumeMode", UNSET),
    ]


def persistent_volume_claim_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a PersistentVolumeClaim; capacity and access modes appear once it is bound."""
    spec, status = value.get("spec", {}), value.get("status", {})
    volume = spec.get("volumeName", "")
    return [
        value["metadata"].get("name", ""),
        _phase(value),
        volume,
        (status.get("capacity") or {}).get("storage", "0") if volume else "",
        _access_modes(status.get("accessModes")) if volume else "",
        _storage_class(value),
        spec.get("volumeAttributesClassName", UNSET),
        age(value, now),
        spec.get("volumeMode", UNSET),
    ]
