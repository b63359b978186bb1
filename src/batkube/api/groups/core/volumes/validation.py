"""Validation of PersistentVolumes (Kubernetes: pkg/apis/core/validation, ValidatePersistentVolumeSpec)."""

from __future__ import annotations

import functools
import posixpath
from collections.abc import Mapping
from typing import Any

from batkube.api.groups.core.node_selectors import check_node_selector
from batkube.api.groups.core.volumes import source_validation
from batkube.api.groups.core.volumes.claim_validation import VOLUME_MODES, check_access_modes, check_class_name
from batkube.api.groups.core.volumes.source_validation import Source, SourceField, required_fields_check
from batkube.api.validation.go_values import go_difference, go_struct
from batkube.api.validation.metadata import check_built_in_metadata
from batkube.api.validation.names import subdomain_name
from batkube.api.validation.problems import IMMUTABLE, Problems
from batkube.api.validation.quantities import check_positive_quantity, check_whole_quantity
from batkube.api.validation.rules import Object, ValidationRules, create_then_update, validate_metadata_update

_RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
_MOUNT_OPTIONS = "volume.beta.kubernetes.io/mount-options"
_NOT_INLINE = "may not be specified in the context of inline volumes"
#: Beta labels that may be replaced by their GA names.
_RENAMED_TOPOLOGY_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}


def _check_azure_file(source: Source, path: str, problems: Problems) -> None:
    required_fields_check("secretName", "shareName")(source, path, problems)
    if source.get("secretNamespace") == "":
        problems.required(f"{path}.secretNamespace")


def _check_local(source: Source, path: str, problems: Problems, *, placed: bool = True) -> None:
    if not (where := source.get("path")):
        problems.required(f"{path}.path")
    else:
        source_validation.check_no_backsteps(where, f"{path}.path", problems)
    if not placed:
        problems.required(f"{path.removesuffix('.local')}.nodeAffinity", "Local volume requires node affinity")


#: In the order of the checks.
_SOURCES = (
    SourceField("hostPath", source_validation.check_host_path),
    SourceField("gcePersistentDisk", source_validation.partitioned_disk_check("pdName"), path="persistentDisk"),
    SourceField("awsElasticBlockStore", source_validation.partitioned_disk_check("volumeID")),
    SourceField("glusterfs", source_validation.check_persistent_glusterfs),
    SourceField("flocker", source_validation.check_flocker),
    SourceField("nfs", source_validation.check_nfs),
    SourceField("rbd", required_fields_check("monitors", "image")),
    SourceField("quobyte", source_validation.check_quobyte),
    SourceField("cephfs", required_fields_check("monitors"), second_path="cephFS"),
    SourceField("iscsi", source_validation.check_persistent_iscsi),
    SourceField("cinder", source_validation.check_persistent_cinder),
    SourceField("fc", source_validation.check_fibre_channel),
    SourceField("flexVolume", source_validation.check_flex_volume),
    SourceField("azureFile", _check_azure_file),
    SourceField("vsphereVolume", required_fields_check("volumePath")),
    SourceField("photonPersistentDisk", required_fields_check("pdID")),
    SourceField("portworxVolume", required_fields_check("volumeID")),
    SourceField("azureDisk", source_validation.check_azure_disk),
    SourceField("scaleIO", required_fields_check("gateway", "system", "volumeName")),
    SourceField("local", _check_local),
    SourceField(
        "storageos",
        source_validation.secret_reference_check("name", "namespace", first=source_validation.check_storage_os),
    ),
    SourceField("csi", source_validation.check_persistent_csi),
)
_SOURCE_NAMES = tuple(field.name for field in _SOURCES)
_WITH_MOUNT_OPTIONS = frozenset(
    [
        "gcePersistentDisk",
        "awsElasticBlockStore",
        "glusterfs",
        "nfs",
        "rbd",
        "quobyte",
        "iscsi",
        "cinder",
        "cephfs",
        "azureFile",
        "vsphereVolume",
        "azureDisk",
        "photonPersistentDisk",
    ]
)


def check_volume_spec(
    spec: Mapping[str, Any], name: str, path: str, problems: Problems, *, inline: bool = False
) -> None:
    """Check the spec of a volume; `inline` is a volume within a VolumeAttachment."""
    if inline:
        _check_inline(spec, path, problems)
    modes = spec.get("accessModes") or []
    if not modes:
        problems.required(f"{path}.accessModes")
    check_access_modes(modes, f"{path}.accessModes", problems)
    if not inline:
        _check_capacity(spec.get("capacity") or {}, f"{path}.capacity", problems)
    policy, at = spec.get("persistentVolumeReclaimPolicy", ""), f"{path}.persistentVolumeReclaimPolicy"
    if inline and policy not in ("", "Retain"):
        problems.forbidden(at, "may only be Retain in the context of inline volumes")
    elif not inline and policy and policy not in _RECLAIM_POLICIES:
        problems.not_supported(at, policy, _RECLAIM_POLICIES)
    _check_affinity(spec.get("nodeAffinity"), f"{path}.nodeAffinity", inline, problems)
    special = {
        "iscsi": functools.partial(source_validation.check_persistent_iscsi, volume=name),
        "local": functools.partial(_check_local, placed=not inline and spec.get("nodeAffinity") is not None),
    }
    if not source_validation.check_one_source(spec, _SOURCES, path, problems, special):
        problems.required(path, "must specify a volume type")
    if policy == "Recycle" and posixpath.normpath((spec.get("hostPath") or {}).get("path") or ".") == "/":
        problems.forbidden(at, "may not be 'recycle' for a hostPath mount of '/'")
    _check_classes(spec, path, inline, problems)


def _check_inline(spec: Mapping[str, Any], path: str, problems: Problems) -> None:
    for field in ("claimRef", "capacity"):
        if spec.get(field) is not None:
            problems.forbidden(f"{path}.{field}", _NOT_INLINE)
    if spec.get("csi") is None:
        problems.required(f"{path}.csi", "has to be specified in the context of inline volumes")


def _check_capacity(capacity: Mapping[str, Any], path: str, problems: Problems) -> None:
    if not capacity:
        problems.required(path)
    if list(capacity) != ["storage"]:
        problems.not_supported(path, capacity or None, ("storage",))
    for name, amount in capacity.items():
        check_whole_quantity(amount, f"{path}[{name}]", problems)
        check_positive_quantity(amount, f"{path}[{name}]", problems)


def _check_affinity(affinity: Mapping[str, Any] | None, path: str, inline: bool, problems: Problems) -> None:
    if affinity is None:
        return
    if inline:
        problems.forbidden(path, _NOT_INLINE)
    elif (required := affinity.get("required")) is None:
        problems.required(f"{path}.required", "must specify required node constraints")
    else:
        check_node_selector(required, f"{path}.required", problems)


def _check_classes(spec: Mapping[str, Any], path: str, inline: bool, problems: Problems) -> None:
    storage_class, mode = spec.get("storageClassName", ""), spec.get("volumeMode")
    if inline and storage_class:
        problems.forbidden(f"{path}.storageClassName", _NOT_INLINE)
    elif storage_class:
        check_class_name(storage_class, f"{path}.storageClassName", problems)
    if inline and mode not in (None, "Filesystem"):
        detail = "may not specify volumeMode other than Filesystem in the context of inline volumes"
        problems.forbidden(f"{path}.volumeMode", detail)
    elif mode is not None and mode not in VOLUME_MODES:
        problems.not_supported(f"{path}.volumeMode", mode, VOLUME_MODES)
    attributes = spec.get("volumeAttributesClassName")
    if inline or attributes is None:
        return
    if not attributes:
        problems.required(f"{path}.volumeAttributesClassName", "an empty string is disallowed")
    check_class_name(attributes, f"{path}.volumeAttributesClassName", problems)
    if spec.get("csi") is None:
        problems.required(f"{path}.csi", "has to be specified when using volumeAttributesClassName")


def _check_volume(volume: Object, problems: Problems) -> None:
    meta = volume["metadata"]
    check_built_in_metadata(meta, subdomain_name, False, problems)
    check_volume_spec(volume.get("spec", {}), meta.get("name", ""), "spec", problems)


def _validate_volume_create(volume: Object, problems: Problems) -> None:
    _check_volume(volume, problems)
    if any(name in volume.get("spec", {}) for name in _WITH_MOUNT_OPTIONS):
        return
    if _MOUNT_OPTIONS in (volume["metadata"].get("annotations") or {}):
        detail = "may not specify mount options for this volume type"
        problems.forbidden(f"metadata.annotations.{_MOUNT_OPTIONS}", detail)


def _validate_volume_update(new: Object, old: Object, problems: Problems) -> None:
    _check_volume(new, problems)
    spec, before = new.get("spec", {}), old.get("spec", {})
    source, earlier = (
        {name: volume_spec[name] for name in _SOURCE_NAMES if name in volume_spec} for volume_spec in (spec, before)
    )
    if "csi" in source and "csi" in earlier and "controllerExpandSecretRef" not in earlier["csi"]:
        csi = {key: value for key, value in source["csi"].items() if key != "controllerExpandSecretRef"}
        source["csi"] = csi
    if source != earlier:
        difference = go_difference("core.PersistentVolumeSource", earlier, source)
        detail = f"spec.persistentvolumesource is immutable after creation\n{difference}"
        problems.forbidden("spec.persistentvolumesource", detail)
    if spec.get("volumeMode") != before.get("volumeMode"):
        problems.invalid("volumeMode", spec.get("volumeMode"), IMMUTABLE)
    affinity, then = spec.get("nodeAffinity"), before.get("nodeAffinity")
    if then is not None and not _is_same_affinity(affinity, then):
        go_text = go_struct("*core.VolumeNodeAffinity", affinity)
        problems.invalid("nodeAffinity", go_text, f"{IMMUTABLE}, except for updating from beta label to GA")
    if before.get("volumeAttributesClassName") is not None and spec.get("volumeAttributesClassName") is None:
        problems.forbidden("spec.volumeAttributesClassName", "update from non-nil value to nil is forbidden")


def _is_same_affinity(new: Any, old: Any) -> bool:  # noqa: ANN401 - any JSON
    """Return whether node affinities are equal apart from labels that were replaced by their GA names."""
    if isinstance(new, Mapping) and isinstance(old, Mapping):
        # A label without a GA name maps to "", as in Kubernetes' map of names.
        renamed = _RENAMED_TOPOLOGY_LABELS.get(old.get("key", ""), "") == new.get("key", "")
        if "operator" in new and renamed and new.get("key") != old.get("key"):
            return dict(new) == {**old, "key": new["key"]}
        return new.keys() == old.keys() and all(_is_same_affinity(new[key], old[key]) for key in new)
    if isinstance(new, list) and isinstance(old, list):
        return len(new) == len(old) and all(map(_is_same_affinity, new, old))
    return bool(new == old)


PERSISTENT_VOLUME_RULES = ValidationRules(
    _validate_volume_create,
    create_then_update(_validate_volume_create, _validate_volume_update),
    validate_metadata_update,
)
