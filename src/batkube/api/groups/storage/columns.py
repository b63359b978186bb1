"""Cells of StorageClasses, VolumeAttachments, CSINodes and CSIDrivers.

Kubernetes: pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from typing import Any

from batkube.api.printing.ages import age
from batkube.api.printing.cell_texts import NONE, UNSET
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

_DEFAULT_CLASS_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


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
