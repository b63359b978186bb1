"""Warnings about the volumes of a pod: deprecated plugins, and files with overlapping paths.

Kubernetes: pkg/api/pod/warnings.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from batkube.api.groups.core.volumes.warnings import claim_spec_warnings
from batkube.api.validation.field_errors import go_quote

_NON_FUNCTIONAL = "deprecated in v1.22, non-functional in v1.25+"
_SOURCES = {
    "photonPersistentDisk": "photonPersistentDisk: deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "scaleIO: deprecated in v1.16, non-functional in v1.22+",
    "flocker": f"flocker: {_NON_FUNCTIONAL}",
    "storageos": f"storageOS: {_NON_FUNCTIONAL}",
    "quobyte": f"quobyte: {_NON_FUNCTIONAL}",
    "glusterfs": "glusterfs: deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "cephfs: deprecated in v1.28, non-functional in v1.31+",
    "rbd": "rbd: deprecated in v1.28, non-functional in v1.31+",
}

#: Volumes with a list of files: their names in messages, and the field with the name of their source.
_NAMED_SOURCES = {
    "configMap": ("ConfigMap", "name"),
    "secret": ("Secret", "secretName"),
    "downwardAPI": ("DownwardAPI", ""),
}


class _VolumeFile(NamedTuple):
    """The path of a file in a volume, and its source."""

    path: str
    source: str

    def __str__(self) -> str:
        return f"{go_quote(self.path)} ({self.source})" if self.source else go_quote(self.path)


def pod_volume_warnings(volumes: Sequence[Mapping[str, Any]], path: str) -> list[str]:
    """Return the warnings about the volumes at `path`."""
    warnings = []
    for index, volume in enumerate(volumes):
        warnings += [f"{path}[{index}].{_SOURCES[name]}" for name in volume if name in _SOURCES]
        template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        if template:
            place = f"{path}[{index}].ephemeral.volumeClaimTemplate.spec"
            warnings += claim_spec_warnings(place, template.get("spec") or {})
    for volume in volumes:
        warnings += _overlap_warnings(volume)
    return warnings


def _overlap_warnings(volume: Mapping[str, Any]) -> Iterator[str]:
    for source, (title, named) in _NAMED_SOURCES.items():
        projection = volume.get(source)
        if projection and projection.get("items"):
            whole_title = f"{title} {go_quote(projection.get(named, ''))}" if named else title
            yield from _overlapping_files(volume, whole_title, _projection_files(projection, ""))
    projected = volume.get("projected")
    if projected is not None:
        yield from _projected_overlap_warnings(volume, projected)


def _projected_overlap_warnings(volume: Mapping[str, Any], projected: Mapping[str, Any]) -> Iterator[str]:
    name = go_quote(volume.get("name", ""))
    files: list[_VolumeFile] = []
    for source in projected.get("sources") or ():
        if not source:
            yield f"volume {name} (Projected) has no sources provided"
        files += _projected_files(source)
    yield from _overlapping_files(volume, "Projected", files)


def _projected_files(source: Mapping[str, Any]) -> list[_VolumeFile]:
    if (source.get("configMap") or {}).get("items"):
        return _projection_files(source["configMap"], f"ConfigMap {go_quote(source['configMap'].get('name', ''))}")
    if (source.get("secret") or {}).get("items"):
        return _projection_files(source["secret"], f"Secret {go_quote(source['secret'].get('name', ''))}")
    if (source.get("downwardAPI") or {}).get("items"):
        return _projection_files(source["downwardAPI"], "DownwardAPI")
    if source.get("serviceAccountToken") is not None:
        return [_VolumeFile(source["serviceAccountToken"].get("path", "").rstrip("/"), "ServiceAccountToken")]
    return []


def _projection_files(holder: Mapping[str, Any], source: str) -> list[_VolumeFile]:
    return [_VolumeFile(item.get("path", "").rstrip("/"), source) for item in holder["items"]]


def _overlapping_files(volume: Mapping[str, Any], title: str, files: Sequence[_VolumeFile]) -> Iterator[str]:
    """Yield warnings about files with equal paths, or with one path inside the other."""
    tree, name, count = _PathTree(), go_quote(volume.get("name", "")), 0
    for index, file in enumerate(files):
        for other in sorted(tree.add(file.path, index)) if file.path else ():
            yield f"volume {name} ({title}): overlapping paths: {file} with {files[other]}"
            count += 1
            if count == _WARNINGS_MAX:
                return


#: Clients get at most a few kilobytes of warnings anyway (apiserver/pkg/endpoints/filters/warning.go).
_WARNINGS_MAX = 1000


class _PathTree:
    """A tree of paths, which finds overlapping paths without comparing all pairs."""

    def __init__(self) -> None:
        self._children: dict[str, _PathTree] = {}
        #: The numbers of the files at this path, and of those below it.
        self._files_here: list[int] = []
        self._files_below: list[int] = []

    def add(self, path: str, number: int) -> list[int]:
        """Add a file; return the files at the same path, above it or below it."""
        folder, numbers = self, list(self._files_here)
        for name in path.split("/"):
            folder._files_below.append(number)
            folder = folder._children.setdefault(name, _PathTree())
            numbers += folder._files_here
        numbers += folder._files_below
        folder._files_here.append(number)
        return numbers
