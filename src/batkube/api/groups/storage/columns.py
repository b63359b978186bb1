"""What `kubectl get` prints of volumes, claims, storage classes, CSI and devices.

Kubernetes: pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from batkube.api.printing.ages import age, since
from batkube.api.printing.texts import NONE, UNSET, first_three
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

_ACCESS_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_CLASS_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


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
    """Return the cells of a PersistentVolumeClaim; what it got is told once it is bound to a volume."""
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


def storage_class_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a StorageClass."""
    metadata = value["metadata"]
    annotations = metadata.get("annotations") or {}
    is_default = any(annotations.get(name) == "true" for name in _DEFAULT_CLASS_ANNOTATIONS)
    return [
        metadata.get("name", "") + (" (default)" if is_default else ""),
        value.get("provisioner", ""),
        value.get("reclaimPolicy", "Delete"),
        value.get("volumeBindingMode", "Immediate"),
        value.get("allowVolumeExpansion", False),
        age(value, now),
    ]


def volume_attributes_class_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a VolumeAttributesClass."""
    return [value["metadata"].get("name", ""), value.get("driverName", ""), age(value, now)]


def volume_attachment_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a VolumeAttachment."""
    spec = value.get("spec", {})
    return [
        value["metadata"].get("name", ""),
        spec.get("attacher", ""),
        spec.get("source", {}).get("persistentVolumeName", ""),
        spec.get("nodeName", ""),
        value.get("status", {}).get("attached", False),
        age(value, now),
    ]


def csi_node_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a CSINode."""
    return [value["metadata"].get("name", ""), len(value.get("spec", {}).get("drivers") or ()), age(value, now)]


def csi_driver_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a CSIDriver."""
    spec = value.get("spec", {})
    requests = spec.get("tokenRequests")
    return [
        value["metadata"].get("name", ""),
        spec.get("attachRequired", True),
        spec.get("podInfoOnMount", False),
        spec.get("storageCapacity", False),
        UNSET if requests is None else ",".join(request.get("audience", "") for request in requests),
        spec.get("requiresRepublish", False),
        ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
        age(value, now),
    ]


def storage_version_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a StorageVersion."""
    status = value.get("status", {})
    servers = [
        f"{part.get('apiServerID', '')}={part.get('encodingVersion', '')}"
        for part in status.get("storageVersions") or ()
    ]
    common = status.get("commonEncodingVersion", UNSET)
    return [value["metadata"].get("name", ""), common, first_three(servers), age(value, now)]


def storage_version_migration_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a StorageVersionMigration."""
    resource = value.get("spec", {}).get("resource", {})
    words = (resource.get(field, "") for field in ("resource", "version", "group"))
    return [value["metadata"].get("name", ""), ".".join(words)]


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
        "" if added is None else since(added, now),
        age(value, now),
    ]
