"""Warnings about the volumes of a pod: plugins of the past, and files that would hide each other.

Kubernetes: pkg/api/pod/warnings.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from batkube.api.groups.core.volumes.warnings import of_claim_spec
from batkube.api.validation.field_errors import go_quote

_GONE = "deprecated in v1.22, non-functional in v1.25+"
_SOURCES = {
    "photonPersistentDisk": "photonPersistentDisk: deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "scaleIO: deprecated in v1.16, non-functional in v1.22+",
    "flocker": f"flocker: {_GONE}",
    "storageos": f"storageOS: {_GONE}",
    "quobyte": f"quobyte: {_GONE}",
    "glusterfs": "glusterfs: deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "cephfs: deprecated in v1.28, non-functional in v1.31+",
    "rbd": "rbd: deprecated in v1.28, non-functional in v1.31+",
}

#: Volumes made of files that are listed one by one: what they are called, and the field that names what they come from.
_NAMED_SOURCES = {
    "configMap": ("ConfigMap", "name"),
    "secret": ("Secret", "secretName"),
    "downwardAPI": ("DownwardAPI", ""),
}


class _File(NamedTuple):
    """Where something appears in a volume, and what it comes from."""

    path: str
    source: str

    def __str__(self) -> str:
        return f"{go_quote(self.path)} ({self.source})" if self.source else go_quote(self.path)


def of_volumes(volumes: Sequence[Mapping[str, Any]], path: str) -> list[str]:
    """Return what is to be said of the volumes at `path`."""
    warnings = []
    for index, volume in enumerate(volumes):
        warnings += [f"{path}[{index}].{_SOURCES[name]}" for name in volume if name in _SOURCES]
        template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        if template:
            place = f"{path}[{index}].ephemeral.volumeClaimTemplate.spec"
            warnings += of_claim_spec(place, template.get("spec") or {})
    for volume in volumes:
        warnings += _of_overlaps(volume)
    return warnings


def _of_overlaps(volume: Mapping[str, Any]) -> Iterator[str]:
    for source, (title, named) in _NAMED_SOURCES.items():
        projection = volume.get(source)
        if projection and projection.get("items"):
            whole_title = f"{title} {go_quote(projection.get(named, ''))}" if named else title
            yield from _overlapping(volume, whole_title, _files(projection, ""))
    projected = volume.get("projected")
    if projected is not None:
        yield from _of_projected(volume, projected)


def _of_projected(volume: Mapping[str, Any], projected: Mapping[str, Any]) -> Iterator[str]:
    name = go_quote(volume.get("name", ""))
    files: list[_File] = []
    for source in projected.get("sources") or ():
        if not source:
            yield f"volume {name} (Projected) has no sources provided"
        files += _projected_files(source)
    yield from _overlapping(volume, "Projected", files)


def _projected_files(source: Mapping[str, Any]) -> list[_File]:
    if (source.get("configMap") or {}).get("items"):
        return _files(source["configMap"], f"ConfigMap {go_quote(source['configMap'].get('name', ''))}")
    if (source.get("secret") or {}).get("items"):
        return _files(source["secret"], f"Secret {go_quote(source['secret'].get('name', ''))}")
    if (source.get("downwardAPI") or {}).get("items"):
        return _files(source["downwardAPI"], "DownwardAPI")
    if source.get("serviceAccountToken") is not None:
        return [_File(source["serviceAccountToken"].get("path", "").rstrip("/"), "ServiceAccountToken")]
    return []


def _files(holder: Mapping[str, Any], source: str) -> list[_File]:
    return [_File(item.get("path", "").rstrip("/"), source) for item in holder["items"]]


def _overlapping(volume: Mapping[str, Any], title: str, files: Sequence[_File]) -> Iterator[str]:
    """Files that are the same, or of which one would have to be a folder for the other."""
    tree, name, count = _Folder(), go_quote(volume.get("name", "")), 0
    for index, file in enumerate(files):
        for other in sorted(tree.add(file.path, index)) if file.path else ():
            yield f"volume {name} ({title}): overlapping paths: {file} with {files[other]}"
            count += 1
            if count == _TOLD_MAX:
                return


#: Clients are sent no more than a few kilobytes of warnings anyway (apiserver/pkg/endpoints/filters/warning.go).
_TOLD_MAX = 1000


class _Folder:
    """A tree of paths, to find those that collide without comparing each with all others."""

    def __init__(self) -> None:
        self._folders: dict[str, _Folder] = {}
        #: The files that are here, and those that are further down, by number.
        self._here: list[int] = []
        self._below: list[int] = []

    def add(self, path: str, number: int) -> list[int]:
        """Put a file into the tree; return those at the same path, above it or below it."""
        folder, numbers = self, list(self._here)
        for part in path.split("/"):
            folder._below.append(number)
            folder = folder._folders.setdefault(part, _Folder())
            numbers += folder._here
        numbers += folder._below
        folder._here.append(number)
        return numbers
