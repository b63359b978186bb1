"""The environment of a container's script: its variables and files.

Only the existence of files is tracked, not their content, and only in volumes that are empty at first: those of the pod
(emptyDir), of its node (hostPath) and of a claim. The files of an image are unknown, except those that a script writes.
"""

from __future__ import annotations

import bisect
import copy
import enum
import posixpath
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from batkube.cluster.mapping import NODE
from batkube.cluster.store import DELETED, Batch, KubeObject
from batkube.kernel.instants import Duration, Instant

CLAIM = "persistentvolumeclaims"
#: The prefixes of locations that outlive pods, by the kind of their owner.
_OWNER_PREFIXES = {CLAIM: "claim", NODE: "node"}
_POD_PREFIX = "pod "
_FIELD = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
_REFERENCE = re.compile(r"\$(\$|\(([A-Za-z0-9_.-]+)\))")


class Environment(NamedTuple):
    """The variables and arguments of a script."""

    #: None for an unknown value.
    variables: dict[str, str | None]
    #: `$1`, `$2` …
    arguments: tuple[str, ...] = ()
    #: Whether all variables are known, so that a variable that is not listed is unset.
    is_complete: bool = True


class _FileKind(enum.Enum):
    """The kind of the file at a location."""

    FILE = "file"
    FOLDER = "folder"
    NOTHING = "nothing"


class _FileEntry(NamedTuple):
    """The kind of the file at a location from an instant on, until the next entry."""

    location: str
    since: Instant
    kind: _FileKind


class VolumeFiles:
    """The files of all volumes by location, with the times of their creation and removal.

    A script is simulated as a whole at its start. Its files therefore have times in the future, since other containers
    may read them while it runs.
    """

    def __init__(self) -> None:
        #: The history of each location, sorted by time; grouped by the root of locations, for fast lookup.
        self._history: dict[str, dict[str, list[tuple[Instant, _FileKind]]]] = {}

    def _history_below(self, location: str) -> dict[str, list[tuple[Instant, _FileKind]]]:
        return self._history.get(_root_of(location), {})

    def _kind(self, location: str, now: Instant) -> _FileKind:
        history = self._history_below(location).get(location, ())
        return next((kind for since, kind in reversed(history) if since <= now), _FileKind.NOTHING)

    def has_history(self, location: str) -> bool:
        """Return whether a file was ever created or removed at a location."""
        return location in self._history_below(location)

    def has(self, location: str, now: Instant) -> bool:
        """Return whether a file or folder exists."""
        return self._kind(location, now) is not _FileKind.NOTHING or self.has_folder(location, now)

    def has_folder(self, location: str, now: Instant) -> bool:
        """Return whether a folder exists."""
        return self._kind(location, now) is _FileKind.FOLDER or any(
            path != location and self._kind(path, now) is not _FileKind.NOTHING for path in self._at_or_below(location)
        )

    def write(self, location: str, now: Instant, *, is_folder: bool = False) -> list[_FileEntry]:
        """Create a file or folder, unless it exists; return the new entries."""
        if self.has(location, now):
            return []
        return [self._add(location, now, _FileKind.FOLDER if is_folder else _FileKind.FILE)]

    def remove(self, location: str, now: Instant) -> list[_FileEntry]:
        """Remove a file, or a folder with its content; return the new entries."""
        locations = {location: None, **dict.fromkeys(self._at_or_below(location))}
        return [self._add(path, now, _FileKind.NOTHING) for path in locations]

    def undo(self, entry: _FileEntry) -> None:
        """Remove an entry, unless its location has been forgotten."""
        history = self._history_below(entry.location).get(entry.location, [])
        if (entry.since, entry.kind) in history:
            history.remove((entry.since, entry.kind))
            if not history:
                del self._history_below(entry.location)[entry.location]

    def forget(self, location: str) -> None:
        """Remove the history of a location and of everything in it."""
        for path in self._at_or_below(location):
            del self._history[_root_of(location)][path]
        if not self._history_below(location):
            self._history.pop(_root_of(location), None)

    def on_owners_changed(self, batch: Batch, now: Instant) -> None:
        """Forget the files of deleted claims and nodes: a new one of the same name has none."""
        if batch.type is DELETED:
            for key in batch.keys:
                self.forget(f"{_OWNER_PREFIXES[batch.kind]} {key}")

    def _add(self, location: str, now: Instant, kind: _FileKind) -> _FileEntry:
        history = self._history.setdefault(_root_of(location), {}).setdefault(location, [])
        bisect.insort(history, (now, kind), key=lambda entry: entry[0])
        return _FileEntry(location, now, kind)

    def _at_or_below(self, location: str) -> list[str]:
        return [path for path in self._history_below(location) if path == location or path.startswith(f"{location}/")]


def _root_of(location: str) -> str:
    """Return the root of a location: the pod, the node or the claim's namespace."""
    return location.partition("/")[0]


class _Mount(NamedTuple):
    #: The location of its files; "" if its content is unknown.
    root: str
    is_read_only: bool


class ContainerFiles:
    """The files of one run of a container; times are relative to `now`, its start."""

    def __init__(self, files: VolumeFiles, pod: KubeObject, container: KubeObject, now: Instant) -> None:
        """Every run of a container starts with a fresh copy of its image."""
        self._files = files
        self._now = now
        #: Whether all file operations of the container are known.
        self.is_fully_known = False
        #: Whether volumes that other pods can see are ignored.
        self._is_private = False
        #: Whether files of the container itself, and files of volumes, were read.
        self.has_read_own_files = self.has_read_volumes = False
        self._written: list[_FileEntry] = []
        #: The container's writable layer on top of its image.
        self._layer = _Mount(f"{pod_root(pod['metadata'].get('uid', ''))}/{container.get('name', '')}'s", False)
        files.forget(self._layer.root)
        volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
        #: The mounts by path, longest paths first.
        self._mounts: dict[str, _Mount] = {}
        for mount in sorted(container.get("volumeMounts") or (), key=lambda mount: -len(mount["mountPath"])):
            location = "" if "subPathExpr" in mount else _volume_root(pod, volumes.get(mount["name"], {}))
            location = posixpath.join(location, mount.get("subPath", "")).rstrip("/") if location else ""
            self._mounts[mount["mountPath"].rstrip("/")] = _Mount(location, bool(mount.get("readOnly")))

    def private_view(self, now: Instant) -> ContainerFiles:
        """Return a view from a later instant on, in which volumes that other pods can see are unknown."""
        view = copy.copy(self)
        view._now, view._is_private = now, True
        view.has_read_own_files = view.has_read_volumes = False
        return view

    def discard_after(self, now: Instant) -> None:
        """Undo the writes after `now`: the run has ended before them."""
        for entry in self._written:
            if entry.since > now:
                self._files.undo(entry)
        self._written.clear()

    def _resolve(self, path: str) -> tuple[_Mount, str]:
        """Return the mount of a path and the location of its file; "" if the content of the mount is unknown."""
        path = posixpath.normpath(path)
        for folder, mount in self._mounts.items():
            if path == folder or path.startswith(f"{folder}/"):
                is_known = mount.root.startswith(_POD_PREFIX) or (mount.root and not self._is_private)
                return mount, mount.root + path[len(folder) :] if is_known else ""
        return self._layer, f"{self._layer.root}{'' if path.startswith('/') else '/./'}{path}"

    def has(self, path: str, after: Duration) -> bool | None:
        """Return whether a file or folder exists; None if unknown."""
        return self._exists(path, after, self._files.has)

    def has_folder(self, path: str, after: Duration) -> bool | None:
        """Return whether a folder exists; None if unknown."""
        return self._exists(path, after, self._files.has_folder)

    def _exists(self, path: str, after: Duration, has: Callable[[str, Instant], bool]) -> bool | None:
        (mount, location), now = self._resolve(path), Instant(self._now + after)
        if mount is self._layer:
            self.has_read_own_files = True
        else:
            self.has_read_volumes = True
        if not location or (mount is self._layer and not self._files.has_history(location)):
            return None
        return mount.root == location or has(location, now)

    def write(self, path: str, after: Duration, *, is_folder: bool = False) -> bool | None:
        """Create a file or folder; return whether that succeeds, None if unknown.

        It succeeds in the working directory of the container, and in /tmp, which every image with a shell has.
        """
        mount, location = self._resolve(path)
        parent = posixpath.dirname(posixpath.normpath(path))
        if not location:
            return None
        if mount is self._layer and parent in ("", "/tmp"):
            pass
        elif mount.is_read_only or not self.has_folder(parent, after):
            return None if mount is self._layer else location == mount.root
        if is_folder and self.has(path, after) and not self.has_folder(path, after):
            return False
        self._written += self._files.write(location, Instant(self._now + after), is_folder=is_folder)
        return True

    def remove(self, path: str, after: Duration) -> None:
        """Remove a file, or a folder with its content."""
        _, location = self._resolve(path)
        if location:
            self._written += self._files.remove(location, Instant(self._now + after))


def pod_root(uid: str) -> str:
    """Return the root of the locations of a pod's own volumes."""
    return f"{_POD_PREFIX}{uid}"


def _volume_root(pod: KubeObject, volume: KubeObject) -> str:
    """Return the location of a volume's files, or "" if its content is unknown."""
    metadata = pod["metadata"]
    if "emptyDir" in volume:
        return f"{pod_root(metadata['uid'])}/{volume['name']}"
    if "hostPath" in volume:
        return f"{_OWNER_PREFIXES[NODE]} {pod['spec'].get('nodeName', '')}/{volume['hostPath']['path'].strip('/')}"
    if "persistentVolumeClaim" in volume:
        return (
            f"{_OWNER_PREFIXES[CLAIM]} {metadata.get('namespace', '')}/{volume['persistentVolumeClaim']['claimName']}"
        )
    return ""


#: Returns the data of a ConfigMap (`configmaps`) or Secret (`secrets`) in the pod's namespace; None if unknown.
DataLookup = Callable[[str, str], Mapping[str, str] | None]


def environment_of(
    pod: KubeObject, container: KubeObject, data_of: DataLookup = lambda storage, name: None
) -> Environment:
    """Return the environment of a container; a value is None if it is unknown here."""
    variables: dict[str, str | None] = {"HOSTNAME": pod["spec"].get("hostname") or pod["metadata"].get("name", "")}
    is_complete = True
    for source in container.get("envFrom") or ():
        data = _data(source, "configMapRef", "secretRef", data_of)
        is_complete = is_complete and data is not None
        variables |= {f"{source.get('prefix', '')}{name}": value for name, value in (data or {}).items()}
    for variable in container.get("env") or ():
        source = variable.get("valueFrom")
        if source is None:
            variables[variable["name"]] = expand_references(variable.get("value", ""), variables)
        elif "fieldRef" in source:
            variables[variable["name"]] = _field(pod, source["fieldRef"].get("fieldPath", ""))
        else:
            data = _data(source, "configMapKeyRef", "secretKeyRef", data_of) or {}
            key = (source.get("configMapKeyRef") or source.get("secretKeyRef") or {}).get("key", "")
            variables[variable["name"]] = data.get(key)
    return Environment(variables, is_complete=is_complete)


def _data(source: KubeObject, config_map: str, secret: str, data_of: DataLookup) -> Mapping[str, str] | None:
    for field, storage in ((config_map, "configmaps"), (secret, "secrets")):
        if name := (source.get(field) or {}).get("name"):
            return data_of(storage, name)
    return None


def _field(pod: KubeObject, path: str) -> str | None:
    metadata = pod["metadata"]
    if match := _FIELD.fullmatch(path):
        value: str = (metadata.get(match[1]) or {}).get(match[2], "")
        return value
    fields = {
        "metadata.name": metadata.get("name"),
        "metadata.namespace": metadata.get("namespace"),
        "metadata.uid": metadata.get("uid"),
        "spec.nodeName": pod["spec"].get("nodeName"),
        "spec.serviceAccountName": pod["spec"].get("serviceAccountName"),
    }
    return fields.get(path)


def expand_references(text: str, variables: Mapping[str, str | None]) -> str:
    """Return a text with `$(NAME)` replaced by the variable's value (Kubernetes: third_party/forked/golang/expansion).

    `$$` is one dollar sign. A reference to an unknown value is left unchanged.
    """

    def value(match: re.Match[str]) -> str:
        if match[1] == "$":
            return "$"
        text = variables.get(match[2])
        return match[0] if text is None else text

    return _REFERENCE.sub(value, text)
