"""Defaults of volumes: those of pods, of persistent volumes and of claims.

Kubernetes: pkg/apis/core/v1/defaults.go and zz_generated.defaults.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from batkube.api.groups.filling import (
    Defaults,
    fill_absent,
    fill_empty,
    round_amounts,
    round_requirements,
    struct,
    structs,
)

#: File permissions 0644.
_MODE: Defaults = {"defaultMode": 0o644}

#: Sources of volumes and the fields that are filled when they are absent (pointers in Go) …
_ABSENT: Mapping[str, Defaults] = {
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"},
    "configMap": _MODE,
    "downwardAPI": _MODE,
    "hostPath": {"type": ""},
    "projected": _MODE,
    "secret": _MODE,
}

#: … or when they are empty.
_EMPTY: Mapping[str, Defaults] = {
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}

_FIELD_REFERENCE: Defaults = {"apiVersion": "v1"}
_TOKEN: Defaults = {"expirationSeconds": 3600}
_CLAIM: Defaults = {"volumeMode": "Filesystem"}
_PENDING: Defaults = {"phase": "Pending"}


def fill_field_reference(holder: dict[str, Any]) -> None:
    """Give the `fieldRef` of `holder`, if there is one, its version."""
    reference = holder.get("fieldRef")
    if reference is not None:
        fill_empty(reference, _FIELD_REFERENCE)


def _downward_items(source: dict[str, Any]) -> None:
    for item in structs(source, "items"):
        fill_field_reference(item)


def _projected(source: dict[str, Any]) -> None:
    for projection in structs(source, "sources"):
        if projection.get("downwardAPI") is not None:
            _downward_items(projection["downwardAPI"])
        if projection.get("serviceAccountToken") is not None:
            fill_absent(projection["serviceAccountToken"], _TOKEN)


def _ephemeral(source: dict[str, Any]) -> None:
    template = source.get("volumeClaimTemplate")
    if template is not None:
        fill_claim_spec(template)


_DEEPER: Mapping[str, Callable[[dict[str, Any]], None]] = {
    "downwardAPI": _downward_items,
    "ephemeral": _ephemeral,
    "projected": _projected,
}


def fill_volume(volume: dict[str, Any]) -> None:
    """Give a pod's volume its defaults; one without a source is an empty directory."""
    sourced = False
    for name, source in volume.items():
        if name != "name" and source is not None:
            sourced = True
            if name in _ABSENT:
                fill_absent(source, _ABSENT[name])
            elif name in _EMPTY:
                fill_empty(source, _EMPTY[name])
            if name in _DEEPER:
                _DEEPER[name](source)
    if not sourced:
        volume["emptyDir"] = {}


#: What a persistent volume can be of which has defaults.
_PERSISTENT = ("hostPath", "rbd", "iscsi", "azureDisk", "scaleIO")


def fill_persistent_source(spec: dict[str, Any]) -> None:
    """Give the source of a persistent volume its defaults."""
    for name in _PERSISTENT:
        source = spec.get(name)
        if source is not None:
            fill_absent(source, _ABSENT.get(name, {}))
            fill_empty(source, _EMPTY.get(name, {}))


def fill_claim_spec(claim: dict[str, Any]) -> None:
    """Give the `spec` of a claim, or of a template of one, its defaults."""
    spec = struct(claim, "spec")
    fill_absent(spec, _CLAIM)
    round_requirements(spec)


def fill_persistent_volume(obj: dict[str, Any]) -> None:
    """Phase, reclaim policy, mode and source of a volume."""
    fill_empty(struct(obj, "status"), _PENDING)
    spec = struct(obj, "spec")
    fill_empty(spec, {"persistentVolumeReclaimPolicy": "Retain"})
    fill_absent(spec, {"volumeMode": "Filesystem"})
    round_amounts(spec, "capacity")
    fill_persistent_source(spec)


def fill_persistent_volume_claim(obj: dict[str, Any]) -> None:
    """The phase Pending, and the mode Filesystem."""
    status = struct(obj, "status")
    fill_empty(status, _PENDING)
    round_amounts(status, "capacity", "allocatedResources")
    fill_claim_spec(obj)
