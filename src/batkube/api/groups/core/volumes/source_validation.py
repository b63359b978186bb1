"""Validation of volume sources, of pods and of PersistentVolumes.

The field that is set selects the source, and only one may be set.

Kubernetes: pkg/apis/core/validation (validateVolumeSource, ValidatePersistentVolumeSpec and a function per source).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from batkube.api.validation.names import (
    byte_length,
    dns_label,
    dns_subdomain,
    inclusive_range_message,
    label_name,
    subdomain_name,
)
from batkube.api.validation.problems import Problems

Source = Mapping[str, Any]
SourceCheck = Callable[[Source, str, Problems], None]

_ISCSI_NAMES = {
    "iqn": re.compile(r"iqn\.[0-9]{4}-[0-9]{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)$").search,
    "eui": re.compile(r"eui.[A-Za-z0-9]{16}").fullmatch,
    "naa": re.compile(r"naa.[A-Za-z0-9]{32}").fullmatch,
}
_HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_CACHING_MODES = ("None", "ReadOnly", "ReadWrite")
_DISK_KINDS = ("Dedicated", "Managed", "Shared")
_MANAGED_DISK = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
_BLOB_DISK = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
_HOST_AND_PORT = "must be a host:port pair or multiple pairs separated by commas"
TOO_LONG_FOR_ISCSI = (
    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified"
    "."
)
_FILE_MODE = "must be a number between 0 and 0777 (octal), both inclusive"


class SourceField(NamedTuple):
    """A field that holds a source, its check, and its paths in messages, which sometimes differ from its name."""

    name: str
    check: SourceCheck
    path: str = ""
    second_path: str = ""


def check_one_source(
    volume: Source,
    fields: Sequence[SourceField],
    path: str,
    problems: Problems,
    special: Mapping[str, SourceCheck] = MappingProxyType({}),
) -> bool:
    """Check the first source that is set and reject the others; return whether there is any.

    `special` replaces the checks of some `fields` by ones that need more context of the volume.
    """
    has_one = False
    for field in fields:
        if (source := volume.get(field.name)) is None:
            continue
        if has_one:
            problems.forbidden(f"{path}.{field.second_path or field.name}", "may not specify more than 1 volume type")
        else:
            special.get(field.name, field.check)(source, f"{path}.{field.path or field.name}", problems)
            has_one = True
    return has_one


def required_fields_check(*fields: str) -> SourceCheck:
    """Return a check that these fields of a source are set."""

    def check(source: Source, path: str, problems: Problems) -> None:
        for field in fields:
            if not source.get(field):
                problems.required(f"{path}.{field}")

    return check


def check_file_mode(mode: int | None, path: str, problems: Problems) -> None:
    """Check the mode bits of a file."""
    if mode is not None and not 0 <= mode <= 0o777:
        problems.invalid(path, mode, _FILE_MODE)


def check_no_backsteps(text: str, path: str, problems: Problems) -> None:
    """Check that a path does not contain `..`."""
    if ".." in text and ".." in text.split("/"):
        problems.invalid(path, text, "must not contain '..'")


def check_relative_path(text: str, path: str, problems: Problems) -> None:
    """Check that a path is relative and does not contain `..`."""
    if text.startswith("/"):
        problems.invalid(path, text, "must be a relative path")
    check_no_backsteps(text, path, problems)


def check_local_path(text: str, path: str, problems: Problems) -> None:
    """Check that a path is relative, without `..`, and does not start with `..` as the internal files of volumes do."""
    check_relative_path(text, path, problems)
    if text.startswith("..") and not text.startswith("../"):
        problems.invalid(path, text, "must not start with '..'")


def check_host_path(source: Source, path: str, problems: Problems) -> None:
    """Check a file or directory of the node."""
    host_path = source.get("path")
    if not host_path:
        problems.required(f"{path}.path")
        return
    check_no_backsteps(host_path, f"{path}.path", problems)
    if (kind := source.get("type", "")) not in _HOST_PATH_TYPES:
        problems.not_supported(f"{path}.type", kind, _HOST_PATH_TYPES)


def check_nfs(source: Source, path: str, problems: Problems) -> None:
    """Check an NFS volume."""
    required_fields_check("server", "path")(source, path, problems)
    if not source.get("path", "").startswith("/"):
        problems.invalid(f"{path}.path", source.get("path", ""), "must be an absolute path")


def partitioned_disk_check(name: str) -> SourceCheck:
    """Return the check of a cloud disk with the identifier `name` and a partition."""

    def check(source: Source, path: str, problems: Problems) -> None:
        required_fields_check(name)(source, path, problems)
        if not 0 <= (partition := source.get("partition", 0)) <= 255:
            problems.invalid(f"{path}.partition", partition, inclusive_range_message(1, 255))

    return check


def _check_iscsi_name(name: str, path: str, unknown: str, problems: Problems) -> None:
    is_valid = _ISCSI_NAMES.get(name[:3])
    if is_valid is None:
        problems.invalid(path, name, unknown)
    elif not is_valid(name):
        problems.invalid(path, name, "must be valid format")


def _check_iscsi_source(source: Source, path: str, unknown: str, problems: Problems) -> None:
    if not source.get("iqn"):
        problems.required(f"{path}.iqn")
    else:
        _check_iscsi_name(source["iqn"], f"{path}.iqn", unknown, problems)
    if not 0 <= (lun := source.get("lun", 0)) <= 255:
        problems.invalid(f"{path}.lun", lun, inclusive_range_message(0, 255))
    chap = source.get("chapAuthDiscovery") or source.get("chapAuthSession")
    if chap and source.get("secretRef") is None:
        problems.required(f"{path}.secretRef")


def check_iscsi(source: Source, path: str, problems: Problems) -> None:
    """Check an iSCSI volume of a pod."""
    unknown = "must be valid format starting with iqn, eui, or naa"
    required_fields_check("targetPortal")(source, path, problems)
    _check_iscsi_source(source, path, unknown, problems)
    if (initiator := source.get("initiatorName")) is not None:
        _check_iscsi_name(initiator, f"{path}.initiatorname", unknown, problems)


def check_persistent_iscsi(source: Source, path: str, problems: Problems, volume: str = "") -> None:
    """Check an iSCSI volume of the PersistentVolume `volume`."""
    unknown = "must be valid format"
    required_fields_check("targetPortal")(source, path, problems)
    portal = source.get("targetPortal", "")
    if source.get("initiatorName") is not None and byte_length(f"{volume}:{portal}") > 64:
        problems.invalid(f"{path}.targetportal", portal, TOO_LONG_FOR_ISCSI)
    _check_iscsi_source(source, path, unknown, problems)
    secret = source.get("secretRef")
    if secret is not None and not secret.get("name"):
        problems.required(f"{path}.secretRef.name")
    if (initiator := source.get("initiatorName")) is not None:
        _check_iscsi_name(initiator, f"{path}.initiatorname", unknown, problems)


def check_fibre_channel(source: Source, path: str, problems: Problems) -> None:
    """Check a Fibre Channel volume."""
    names, ids, lun = source.get("targetWWNs"), source.get("wwids"), source.get("lun")
    if not names and not ids:
        problems.required(f"{path}.targetWWNs", "must specify either targetWWNs or wwids, but not both")
    if names and ids:
        detail = "targetWWNs and wwids can not be specified simultaneously"
        problems.invalid(f"{path}.targetWWNs", names, detail)
    if names and lun is None:
        problems.required(f"{path}.lun", "lun is required if targetWWNs is specified")
    elif names and lun is not None and not 0 <= lun <= 255:
        problems.invalid(f"{path}.lun", lun, inclusive_range_message(0, 255))


def check_quobyte(source: Source, path: str, problems: Problems) -> None:
    """Check a Quobyte volume."""
    registry = source.get("registry", "")
    if not registry:
        problems.required(f"{path}.registry", _HOST_AND_PORT)
    elif byte_length(source.get("tenant", "")) >= 65:
        problems.required(f"{path}.tenant", "must be a UUID and may not exceed a length of 64 characters")
    else:
        for pair in registry.split(","):
            if pair.count(":") != 1 and not re.fullmatch(r"\[[^\]]*\]:[^:]*", pair):
                problems.invalid(f"{path}.registry", registry, _HOST_AND_PORT)
    required_fields_check("volume")(source, path, problems)


def check_persistent_glusterfs(source: Source, path: str, problems: Problems) -> None:
    """Check a GlusterFS volume, whose endpoints may be in another namespace."""
    required_fields_check("endpoints", "path")(source, path, problems)
    namespace = source.get("endpointsNamespace")
    if namespace == "":
        detail = "if the endpointnamespace is set, it must be a valid namespace name"
        problems.invalid(f"{path}.endpointsNamespace", namespace, detail)
    elif namespace is not None:
        problems.all_invalid(f"{path}.endpointsNamespace", namespace, label_name(namespace, False))


def check_flocker(source: Source, path: str, problems: Problems) -> None:
    """Check a Flocker volume."""
    name, uuid = source.get("datasetName", ""), source.get("datasetUUID", "")
    if not name and not uuid:
        problems.required(path, "one of datasetName and datasetUUID is required")
    if name and uuid:
        problems.invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously")
    if "/" in name:
        problems.invalid(f"{path}.datasetName", name, "must not contain '/'")


def secret_reference_check(*parts: str, first: SourceCheck) -> SourceCheck:
    """Return a check that runs `first` and then requires these parts of `secretRef`."""

    def check(source: Source, path: str, problems: Problems) -> None:
        first(source, path, problems)
        secret = source.get("secretRef")
        for part in parts if secret is not None else ():
            if not (secret or {}).get(part):
                problems.required(f"{path}.secretRef.{part}")

    return check


def check_storage_os(source: Source, path: str, problems: Problems) -> None:
    """Check a StorageOS volume."""
    if not (name := source.get("volumeName")):
        problems.required(f"{path}.volumeName")
    else:
        problems.all_invalid(f"{path}.volumeName", name, dns_label(name))
    if namespace := source.get("volumeNamespace"):
        problems.all_invalid(f"{path}.volumeNamespace", namespace, dns_label(namespace))


def check_flex_volume(source: Source, path: str, problems: Problems) -> None:
    """Check a FlexVolume, whose driver is an executable on the node."""
    required_fields_check("driver")(source, path, problems)
    for key in source.get("options", {}):
        namespace = "." + key.partition("/")[0].lower()
        if namespace.endswith((".kubernetes.io", ".k8s.io")):
            problems.invalid(f"{path}.options[{key}]", key, "kubernetes.io and k8s.io namespaces are reserved")


def check_azure_disk(source: Source, path: str, problems: Problems) -> None:
    """Check an Azure disk."""
    required_fields_check("diskName", "diskURI")(source, path, problems)
    uri, kind = source.get("diskURI", ""), source.get("kind")
    if (mode := source.get("cachingMode")) is not None and mode not in _CACHING_MODES:
        problems.not_supported(f"{path}.cachingMode", mode, _CACHING_MODES)
    if kind is not None and kind not in _DISK_KINDS:
        problems.not_supported(f"{path}.kind", kind, _DISK_KINDS)
    if kind == "Managed" and not uri.startswith("/subscriptions/"):
        problems.not_supported(f"{path}.diskURI", uri, (_MANAGED_DISK,))
    if kind is not None and kind != "Managed" and not uri.startswith("https://"):
        problems.not_supported(f"{path}.diskURI", uri, (_BLOB_DISK,))


def check_csi_driver_name(name: str, path: str, problems: Problems) -> None:
    """Check the name of a CSI driver: a short subdomain, ignoring case."""
    if not name:
        problems.required(path)
    if byte_length(name) > 63:
        problems.too_long(path, 63)
    problems.all_invalid(path, name, dns_subdomain(name.lower()))


def check_csi(source: Source, path: str, problems: Problems) -> None:
    """Check an inline volume of a CSI driver."""
    check_csi_driver_name(source.get("driver", ""), f"{path}.driver", problems)
    if (secret := source.get("nodePublishSecretRef")) is not None:
        if not (name := secret.get("name")):
            problems.required(f"{path}.nodePublishSecretRef.name")
        else:
            problems.all_invalid(f"{path}.name", name, subdomain_name(name, False))


def check_persistent_csi(source: Source, path: str, problems: Problems) -> None:
    """Check a volume that a CSI driver provides."""
    check_csi_driver_name(source.get("driver", ""), f"{path}.driver", problems)
    required_fields_check("volumeHandle")(source, path, problems)
    for stage in ("controllerPublish", "controllerExpand", "nodePublish", "nodeExpand"):
        if (secret := source.get(f"{stage}SecretRef")) is not None:
            _check_secret_reference(secret, f"{path}.{stage}SecretRef", problems)


def _check_secret_reference(secret: Source, path: str, problems: Problems) -> None:
    for part, rule in (("name", dns_subdomain), ("namespace", dns_label)):
        if not (value := secret.get(part)):
            problems.required(f"{path}.{part}")
        else:
            problems.all_invalid(f"{path}.{part}", value, rule(value))


check_cinder = secret_reference_check("name", first=required_fields_check("volumeID"))
check_persistent_cinder = secret_reference_check("name", "namespace", first=required_fields_check("volumeID"))
