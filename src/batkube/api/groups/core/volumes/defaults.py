"""Defaults of volumes of pods, PersistentVolumes and PersistentVolumeClaims.

Kubernetes: pkg/apis/core/v1/defaults.go and zz_generated.defaults.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from batkube.api.groups.kind_model.defaults import (
    Defaults,
    ensure_struct,
    fill_absent,
    fill_empty,
    list_items,
    round_resource_lists,
    round_resource_requirements,
)

#: File permissions 0644.
_MODE: Defaults = {"defaultMode": 0o644}

#: Volume sources, and the fields that get a default if they are absent (pointers in Go) …
_ABSENT: Mapping[str, Defaults] = {
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"},
    "configMap": _MODE,
    "downwardAPI": _MODE,
    "hostPath": {"type": ""},
    "projected": _MODE,
    "secret": _MODE,
}

#: … or if they are empty.
_EMPTY: Mapping[str, Defaults] = {
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}

_FIELD_REFERENCE: Defaults = {"apiVersion": "v1"}
_TOKEN: Defaults = {"expirationSeconds": 3600}
_CLAIM: Defaults = {"volumeMode": "Filesystem"}
_PENDING: Defaults = {"phase": "Pending"}


def set_field_reference_defaults(holder: dict[str, Any]) -> None:
    """Set the apiVersion of the `fieldRef` of `holder`, if it has one."""
    reference = holder.get("fieldRef")
    if reference is not None:
        fill_empty(reference, _FIELD_REFERENCE)


def _set_downward_items_defaults(source: dict[str, Any]) -> None:
    for item in list_items(source, "items"):
        set_field_reference_defaults(item)


def _set_projected_defaults(source: dict[str, Any]) -> None:
    for projection in list_items(source, "sources"):
        if projection.get("downwardAPI") is not None:
            _set_downward_items_defaults(projection["downwardAPI"])
        if projection.get("serviceAccountToken") is not None:
            fill_absent(projection["serviceAccountToken"], _TOKEN)


def _set_ephemeral_defaults(source: dict[str, Any]) -> None:
    template = source.get("volumeClaimTemplate")
    if template is not None:
        set_claim_spec_defaults(template)


_NESTED_DEFAULTS: Mapping[str, Callable[[dict[str, Any]], None]] = {
    "downwardAPI": _set_downward_items_defaults,
    "ephemeral": _set_ephemeral_defaults,
    "projected": _set_projected_defaults,
}


def set_volume_defaults(volume: dict[str, Any]) -> None:
    """Set the defaults of a pod's volume; without a source, it is an emptyDir."""
    sourced = False
    for name, source in volume.items():
        if name != "name" and source is not None:
            sourced = True
            if name in _ABSENT:
                fill_absent(source, _ABSENT[name])
            elif name in _EMPTY:
                fill_empty(source, _EMPTY[name])
            if name in _NESTED_DEFAULTS:
                _NESTED_DEFAULTS[name](source)
    if not sourced:
        volume["emptyDir"] = {}


#: The sources of PersistentVolumes that have defaults.
_PERSISTENT_SOURCES = ("hostPath", "rbd", "iscsi", "azureDisk", "scaleIO")


def set_persistent_source_defaults(spec: dict[str, Any]) -> None:
    """Set the defaults of a PersistentVolume's source."""
    for name in _PERSISTENT_SOURCES:
        source = spec.get(name)
        if source is not None:
            fill_absent(source, _ABSENT.get(name, {}))
            fill_empty(source, _EMPTY.get(name, {}))


def set_claim_spec_defaults(claim: dict[str, Any]) -> None:
    """Set the defaults in the `spec` of a claim or claim template."""
    spec = ensure_struct(claim, "spec")
    fill_absent(spec, _CLAIM)
    round_resource_requirements(spec)


def set_persistent_volume_defaults(obj: dict[str, Any]) -> None:
    """Set the defaults of phase, reclaim policy, volume mode and source."""
    fill_empty(ensure_struct(obj, "status"), _PENDING)
    spec = ensure_struct(obj, "spec")
    fill_empty(spec, {"persistentVolumeReclaimPolicy": "Retain"})
    fill_absent(spec, {"volumeMode": "Filesystem"})
    round_resource_lists(spec, "capacity")
    set_persistent_source_defaults(spec)


def set_persistent_volume_claim_defaults(obj: dict[str, Any]) -> None:
    """Set the defaults of phase (Pending) and volume mode (Filesystem)."""
    status = ensure_struct(obj, "status")
    fill_empty(status, _PENDING)
    round_resource_lists(status, "capacity", "allocatedResources")
    set_claim_spec_defaults(obj)
