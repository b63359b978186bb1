"""Validation of a pod's volumes: names, sources and projected files.

Kubernetes: pkg/apis/core/validation (ValidateVolumes, validateVolumeSource, validateProjectionSources).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from batkube.api.groups.core.pods.container_validation.downward_api import (
    VOLUME_FIELDS,
    check_field_selector,
    check_resource_field_selector,
)
from batkube.api.groups.core.volumes import source_validation
from batkube.api.groups.core.volumes.claim_validation import check_claim_template
from batkube.api.groups.core.volumes.source_validation import (
    Source,
    SourceField,
    check_file_mode,
    check_local_path,
    required_fields_check,
)
from batkube.api.validation.names import byte_length, dns_label, dns_subdomain
from batkube.api.validation.problems import Problems
from batkube.api.validation.quantities import quantity

_CONFLICT = "conflicting duplicate paths"


def check_volumes(
    volumes: Sequence[Mapping[str, Any]], pod_name: str, path: str, problems: Problems
) -> dict[str, Mapping[str, Any]]:
    """Check the volumes of a pod; return the valid ones by name, which containers may mount."""
    good: dict[str, Mapping[str, Any]] = {}
    for index, volume in enumerate(volumes):
        at, name = f"{path}[{index}]", volume.get("name", "")
        before = len(problems)
        _check_source(volume, name, pod_name, at, problems)
        if not name:
            problems.required(f"{at}.name")
        elif wrong := dns_label(name):
            problems.all_invalid(f"{at}.name", name, wrong)
        if name in good:
            problems.duplicate(f"{at}.name", name)
        if len(problems) == before:
            good[name] = volume
        _check_claim_is_not_created(volume, volumes, pod_name, at, problems)
    return good


def _check_claim_is_not_created(
    volume: Mapping[str, Any], volumes: Sequence[Mapping[str, Any]], pod_name: str, path: str, problems: Problems
) -> None:
    claim = volume.get("persistentVolumeClaim")
    if claim is None or not pod_name:
        return
    name = claim.get("claimName", "")
    if any("ephemeral" in candidate and name == f"{pod_name}-{candidate.get('name', '')}" for candidate in volumes):
        detail = "must not reference a PVC that gets created for an ephemeral volume"
        problems.invalid(f"{path}.persistentVolumeClaim.claimName", name, detail)


def _check_source(volume: Mapping[str, Any], name: str, pod_name: str, path: str, problems: Problems) -> None:
    special = {"iscsi": functools.partial(_check_iscsi, volume=name)} if "iscsi" in volume else {}
    if not source_validation.check_one_source(volume, _POD_SOURCES, path, problems, special):
        problems.required(path, "must specify a volume type")
    if "ephemeral" in volume and pod_name and name:
        claim = f"{pod_name}-{name}"
        for wrong in dns_subdomain(claim):
            problems.invalid(f"{path}.name", name, f'PVC name "{claim}": {wrong}')


def _check_empty_dir(source: Source, path: str, problems: Problems) -> None:
    limit = source.get("sizeLimit")
    if limit is not None and quantity(limit).nanos < 0:
        problems.forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def _check_iscsi(source: Source, path: str, problems: Problems, volume: str) -> None:
    source_validation.check_iscsi(source, path, problems)
    portal = f"{volume}:{source.get('targetPortal', '')}"
    if source.get("initiatorName") is not None and byte_length(portal) > 64:
        problems.invalid(f"{path.removesuffix('.iscsi')}.name", volume, source_validation.TOO_LONG_FOR_ISCSI)


def _check_git_repo(source: Source, path: str, problems: Problems) -> None:
    required_fields_check("repository")(source, path, problems)
    source_validation.check_relative_path(source.get("directory", ""), f"{path}.directory", problems)


def _file_source_check(name: str) -> source_validation.SourceCheck:
    """Return the check of a Secret or ConfigMap volume; `name` is the field with the object's name."""

    def check(source: Source, path: str, problems: Problems) -> None:
        required_fields_check(name)(source, path, problems)
        check_file_mode(source.get("defaultMode"), f"{path}.defaultMode", problems)
        for index, item in enumerate(source.get("items", ())):
            _check_key_to_path(item, f"{path}.items[{index}]", problems)

    return check


def _check_key_to_path(item: Source, path: str, problems: Problems) -> None:
    required_fields_check("key", "path")(item, path, problems)
    check_local_path(item.get("path", ""), f"{path}.path", problems)
    check_file_mode(item.get("mode"), f"{path}.mode", problems)


def _check_downward_api(source: Source, path: str, problems: Problems) -> None:
    check_file_mode(source.get("defaultMode"), f"{path}.defaultMode", problems)
    for item in source.get("items", ()):
        _check_downward_file(item, path, problems)


def _check_downward_file(item: Source, path: str, problems: Problems) -> None:
    required_fields_check("path")(item, path, problems)
    check_local_path(item.get("path", ""), f"{path}.path", problems)
    field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if field is not None:
        check_field_selector(field, VOLUME_FIELDS, f"{path}.fieldRef", problems)
        if resource is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            problems.invalid(path, "resource", detail)
    elif resource is not None:
        check_resource_field_selector(resource, f"{path}.resourceFieldRef", problems, in_volume=True)
    else:
        problems.required(path, "one of fieldRef and resourceFieldRef is required")
    check_file_mode(item.get("mode"), f"{path}.mode", problems)


def _check_ephemeral(source: Source, path: str, problems: Problems) -> None:
    template = source.get("volumeClaimTemplate")
    if template is None:
        problems.required(f"{path}.volumeClaimTemplate")
    else:
        check_claim_template(template, f"{path}.volumeClaimTemplate", problems)


def _check_projected(projection: Source, path: str, problems: Problems) -> None:
    check_file_mode(projection.get("defaultMode"), f"{path}.defaultMode", problems)
    paths: set[str] = set()
    for index, source in enumerate(projection.get("sources") or ()):
        at = f"{path}.sources[{index}]"
        for kind in ("secret", "configMap"):
            if (files := source.get(kind)) is not None:
                _check_projected_files(files, f"{at}.{kind}", path, paths, problems)
        if (downward := source.get("downwardAPI")) is not None:
            for item in downward.get("items", ()):
                _check_downward_file(item, f"{at}.downwardAPI", problems)
                _check_new_path(item.get("path", ""), item.get("path", ""), path, paths, problems)
        if (token := source.get("serviceAccountToken")) is not None:
            _check_token(token, f"{at}.serviceAccountToken", path, problems)
        if sum(source.get(kind) is not None for kind in _PROJECTIONS) > 1:
            problems.forbidden(at, "may not specify more than 1 volume type per source")


def _check_projected_files(files: Source, path: str, volume_path: str, paths: set[str], problems: Problems) -> None:
    required_fields_check("name")(files, path, problems)
    for index, item in enumerate(files.get("items", ())):
        _check_key_to_path(item, f"{path}.items[{index}]", problems)
        _check_new_path(item.get("path", ""), files.get("name", ""), volume_path, paths, problems)


def _check_new_path(file: str, value: str, path: str, paths: set[str], problems: Problems) -> None:
    if file and file in paths:
        problems.invalid(path, value, _CONFLICT)
    paths.add(file)


def _check_token(token: Source, path: str, volume_path: str, problems: Problems) -> None:
    seconds = token.get("expirationSeconds", 0)
    if seconds < 600:
        detail = "may not specify a duration less than 10 minutes"
        problems.invalid(f"{path}.expirationSeconds", seconds, detail)
    if seconds > 2**32:
        detail = "may not specify a duration larger than 2^32 seconds"
        problems.invalid(f"{path}.expirationSeconds", seconds, detail)
    if not (file := token.get("path")):
        problems.required(f"{volume_path}.path")
    else:
        check_local_path(file, f"{volume_path}.path", problems)


_PROJECTIONS = ("secret", "configMap", "downwardAPI", "serviceAccountToken")

#: In the order of the checks; the misspelt paths are Kubernetes' own.
_POD_SOURCES = (
    SourceField("emptyDir", _check_empty_dir),
    SourceField("hostPath", source_validation.check_host_path),
    SourceField("gitRepo", _check_git_repo),
    SourceField("gcePersistentDisk", source_validation.partitioned_disk_check("pdName"), path="persistentDisk"),
    SourceField("awsElasticBlockStore", source_validation.partitioned_disk_check("volumeID")),
    SourceField("secret", _file_source_check("secretName")),
    SourceField("nfs", source_validation.check_nfs),
    SourceField("iscsi", source_validation.check_iscsi),
    SourceField("glusterfs", required_fields_check("endpoints", "path")),
    SourceField("flocker", source_validation.check_flocker),
    SourceField("persistentVolumeClaim", required_fields_check("claimName")),
    SourceField("rbd", required_fields_check("monitors", "image")),
    SourceField("cinder", source_validation.check_cinder),
    SourceField("cephfs", required_fields_check("monitors"), second_path="cephFS"),
    SourceField("quobyte", source_validation.check_quobyte),
    SourceField("downwardAPI", _check_downward_api, second_path="downwarAPI"),
    SourceField("fc", source_validation.check_fibre_channel),
    SourceField("flexVolume", source_validation.check_flex_volume),
    SourceField("configMap", _file_source_check("name")),
    SourceField("azureFile", required_fields_check("secretName", "shareName")),
    SourceField("vsphereVolume", required_fields_check("volumePath")),
    SourceField("photonPersistentDisk", required_fields_check("pdID")),
    SourceField("portworxVolume", required_fields_check("volumeID")),
    SourceField("azureDisk", source_validation.check_azure_disk),
    SourceField(
        "storageos", source_validation.secret_reference_check("name", first=source_validation.check_storage_os)
    ),
    SourceField("projected", _check_projected),
    SourceField("scaleIO", required_fields_check("gateway", "system", "volumeName")),
    SourceField("csi", source_validation.check_csi),
    SourceField("ephemeral", _check_ephemeral),
)
