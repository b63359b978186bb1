"""Defaults of storage classes, CSI drivers and attachments. Kubernetes: pkg/apis/storage/v1/defaults.go."""

from __future__ import annotations

from typing import Any

from batkube.api.groups.core.volumes.defaults import fill_persistent_source
from batkube.api.groups.filling import Defaults, fill_absent, struct

_STORAGE_CLASS: Defaults = {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}
_CSI_DRIVER: Defaults = {
    "attachRequired": True,
    "podInfoOnMount": False,
    "storageCapacity": False,
    "fsGroupPolicy": "ReadWriteOnceWithFSType",
    "requiresRepublish": False,
    "seLinuxMount": False,
}


def fill_storage_class(obj: dict[str, Any]) -> None:
    """Volumes are bound at once and deleted with their claim."""
    fill_absent(obj, _STORAGE_CLASS)


def fill_csi_driver(obj: dict[str, Any]) -> None:
    """What a driver can do unless it says otherwise."""
    spec = struct(obj, "spec")
    fill_absent(spec, _CSI_DRIVER)
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def fill_volume_attachment(obj: dict[str, Any]) -> None:
    """The volume given in place has the defaults of any."""
    source = (obj.get("spec") or {}).get("source") or {}
    if source.get("inlineVolumeSpec") is not None:
        fill_persistent_source(source["inlineVolumeSpec"])
