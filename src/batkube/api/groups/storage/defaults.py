"""Defaults of StorageClasses, CSIDrivers and VolumeAttachments. Kubernetes: pkg/apis/storage/v1/defaults.go."""

from __future__ import annotations

from typing import Any

from batkube.api.groups.core.volumes.defaults import set_persistent_source_defaults
from batkube.api.groups.kind_model.defaults import Defaults, ensure_struct, fill_absent

_STORAGE_CLASS: Defaults = {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}
_CSI_DRIVER: Defaults = {
    "attachRequired": True,
    "podInfoOnMount": False,
    "storageCapacity": False,
    "fsGroupPolicy": "ReadWriteOnceWithFSType",
    "requiresRepublish": False,
    "seLinuxMount": False,
}


def set_storage_class_defaults(obj: dict[str, Any]) -> None:
    """Set the binding mode Immediate and the reclaim policy Delete."""
    fill_absent(obj, _STORAGE_CLASS)


def set_csi_driver_defaults(obj: dict[str, Any]) -> None:
    """Set the capabilities of a CSI driver."""
    spec = ensure_struct(obj, "spec")
    fill_absent(spec, _CSI_DRIVER)
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def set_volume_attachment_defaults(obj: dict[str, Any]) -> None:
    """Set the defaults of an inline volume."""
    source = (obj.get("spec") or {}).get("source") or {}
    if source.get("inlineVolumeSpec") is not None:
        set_persistent_source_defaults(source["inlineVolumeSpec"])
