"""What a container's script sees: its variables, and files.

Only that a file is there is kept, not what it holds, and only in volumes that begin empty: those of the pod alone
(emptyDir), of its node (hostPath) and of a claim. What an image holds nobody knows, but for what a script made of it.
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
#: How places begin of what outlives pods, by the kind that it belongs to.
_OWNER_PREFIXES = {CLAIM: "claim", NODE: "node"}
_POD_PREFIX = "pod "
_FIELD = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
_REFERENCE = re.compile(r"\$(\$|\(([A-Za-z0-9_.-]+)\))")


class Environment(NamedTuple):
    """What a script is started with."""

    #: None where nobody knows the value.
    variables: dict[str, str | None]
    #: `$1`, `$2` …
    arguments: tuple[str, ...] = ()
    #: Whether a variable that is not here is not set; else nobody knows.
    is_complete: bool = True


class _FileKind(enum.Enum):
    """What is at a place from an instant on."""

    FILE = "file"
    FOLDER = "folder"
    NOTHING = "nothing"


class _FileEntry(NamedTuple):
    """What is at a place from an instant on, until there is another entry."""

    place: str
    since: Instant
    kind: _FileKind


class VolumeFiles:
    """The files of all volumes, by where they are, with when they came and when they went.

    What a script does is known at its start, for as long as it goes on; others look at its files meanwhile.
    """

    def __init__(self) -> None:
        #: What is at each place from which instant on, in this order; by where places begin, so that few are looked at.
        self._history: dict[str, dict[str, list[tuple[Instant, _FileKind]]]] = {}

    def _history_below(self, place: str) -> dict[str, list[tuple[Instant, _FileKind]]]:
        return self._history.get(_root_of(place), {})

    def _kind(self, place: str, now: Instant) -> _FileKind:
        past = self._history_below(place).get(place, ())
        return next((kind for since, kind in reversed(past) if since <= now), _FileKind.NOTHING)

    def has_history(self, place: str) -> bool:
        """Return whether something is ever made or removed there; before that there is nothing."""
        return place in self._history_below(place)

    def has(self, place: str, now: Instant) -> bool:
        """Return whether there is a file or folder."""
        return self._kind(place, now) is not _FileKind.NOTHING or self.has_folder(place, now)

    def has_folder(self, place: str, now: Instant) -> bool:
        """Return whether there is a folder."""
        return self._kind(place, now) is _FileKind.FOLDER or any(
            path != place and self._kind(path, now) is not _FileKind.NOTHING for path in self._at_or_below(place)
        )

    def write(self, place: str, now: Instant, *, is_folder: bool = False) -> list[_FileEntry]:
        """Make a file or folder, if there is none; return what that wrote."""
        if self.has(place, now):
            return []
        return [self._add(place, now, _FileKind.FOLDER if is_folder else _FileKind.FILE)]

    def remove(self, place: str, now: Instant) -> list[_FileEntry]:
        """Remove a file or folder, with what is in it: from now on it is known not to be there; return what is new."""
        places = {place: None, **dict.fromkeys(self._at_or_below(place))}
        return [self._add(path, now, _FileKind.NOTHING) for path in places]

    def undo(self, entry: _FileEntry) -> None:
        """Let something not have been written after all, unless it is forgotten already."""
        past = self._history_below(entry.place).get(entry.place, [])
        if (entry.since, entry.kind) in past:
            past.remove((entry.since, entry.kind))
            if not past:
                del self._history_below(entry.place)[entry.place]

    def forget(self, place: str) -> None:
        """Forget a place, with what was ever in it."""
        for path in self._at_or_below(place):
            del self._history[_root_of(place)][path]
        if not self._history_below(place):
            self._history.pop(_root_of(place), None)

    def on_owners_changed(self, batch: Batch, now: Instant) -> None:
        """Forget the files of claims and nodes that were deleted: another one of the name begins without any."""
        if batch.type is DELETED:
            for key in batch.keys:
                self.forget(f"{_OWNER_PREFIXES[batch.kind]} {key}")

    def _add(self, place: str, now: Instant, kind: _FileKind) -> _FileEntry:
        past = self._history.setdefault(_root_of(place), {}).setdefault(place, [])
        bisect.insort(past, (now, kind), key=lambda one: one[0])
        return _FileEntry(place, now, kind)

    def _at_or_below(self, place: str) -> list[str]:
        return [path for path in self._history_below(place) if path == place or path.startswith(f"{place}/")]


def _root_of(place: str) -> str:
    """Return the pod, the node or the claim's namespace that a place belongs to."""
    return place.partition("/")[0]


class _Mount(NamedTuple):
    #: Where its files are kept; "" if nobody knows what is in it.
    root: str
    is_read_only: bool


class ContainerFiles:
    """The files as one container sees them, from `now` on; times are told since then."""

    def __init__(self, files: VolumeFiles, pod: KubeObject, container: KubeObject, now: Instant) -> None:
        """Every run of a container begins with its image as it was."""
        self._files = files
        self._now = now
        #: Whether all is known that the container does to files.
        self.is_fully_known = False
        #: Whether files are passed over that other pods see, too.
        self._is_private = False
        #: Whether it was asked for files that are the container's own, and for those of volumes.
        self.has_read_own_files = self.has_read_volumes = False
        self._written: list[_FileEntry] = []
        #: What the container does to its image is its own.
        self._layer = _Mount(f"{pod_root(pod['metadata'].get('uid', ''))}/{container.get('name', '')}'s", False)
        files.forget(self._layer.root)
        volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
        #: What is mounted where, the longest paths first.
        self._mounts: dict[str, _Mount] = {}
        for mount in sorted(container.get("volumeMounts") or (), key=lambda one: -len(one["mountPath"])):
            place = "" if "subPathExpr" in mount else _volume_root(pod, volumes.get(mount["name"], {}))
            place = posixpath.join(place, mount.get("subPath", "")).rstrip("/") if place else ""
            self._mounts[mount["mountPath"].rstrip("/")] = _Mount(place, bool(mount.get("readOnly")))

    def private_view(self, now: Instant) -> ContainerFiles:
        """Return the files that no other pod sees, as they are from a later instant on."""
        seen = copy.copy(self)
        seen._now, seen._is_private = now, True
        seen.has_read_own_files = seen.has_read_volumes = False
        return seen

    def discard_after(self, now: Instant) -> None:
        """Let what would have been written after now not be: the run has ended before that."""
        for entry in self._written:
            if entry.since > now:
                self._files.undo(entry)
        self._written.clear()

    def _resolve(self, path: str) -> tuple[_Mount, str]:
        """Return the mount that a path is in, and where its file is kept; "" if nobody knows what is in the mount."""
        path = posixpath.normpath(path)
        for folder, mount in self._mounts.items():
            if path == folder or path.startswith(f"{folder}/"):
                is_known = mount.root.startswith(_POD_PREFIX) or (mount.root and not self._is_private)
                return mount, mount.root + path[len(folder) :] if is_known else ""
        return self._layer, f"{self._layer.root}{'' if path.startswith('/') else '/./'}{path}"

    def has(self, path: str, after: Duration) -> bool | None:
        """Return whether there is a file or folder; None if nobody knows."""
        return self._exists(path, after, self._files.has)

    def has_folder(self, path: str, after: Duration) -> bool | None:
        """Return whether there is a folder."""
        return self._exists(path, after, self._files.has_folder)

    def _exists(self, path: str, after: Duration, has: Callable[[str, Instant], bool]) -> bool | None:
        (mount, place), now = self._resolve(path), Instant(self._now + after)
        if mount is self._layer:
            self.has_read_own_files = True
        else:
            self.has_read_volumes = True
        if not place or (mount is self._layer and not self._files.has_history(place)):
            return None
        return mount.root == place or has(place, now)

    def write(self, path: str, after: Duration, *, is_folder: bool = False) -> bool | None:
        """Make a file or folder; return whether that can be done.

        It can in the folder that a container begins in, and in /tmp, which every image with a shell has.
        """
        mount, place = self._resolve(path)
        parent = posixpath.dirname(posixpath.normpath(path))
        if not place:
            return None
        if mount is self._layer and parent in ("", "/tmp"):
            pass
        elif mount.is_read_only or not self.has_folder(parent, after):
            return None if mount is self._layer else place == mount.root
        if is_folder and self.has(path, after) and not self.has_folder(path, after):
            return False
        self._written += self._files.write(place, Instant(self._now + after), is_folder=is_folder)
        return True

    def remove(self, path: str, after: Duration) -> None:
        """Remove a file, or a folder with what is in it."""
        _, place = self._resolve(path)
        if place:
            self._written += self._files.remove(place, Instant(self._now + after))


def pod_root(uid: str) -> str:
    """Return where the files of a pod's own volumes are."""
    return f"{_POD_PREFIX}{uid}"


def _volume_root(pod: KubeObject, volume: KubeObject) -> str:
    """Return where a volume's files are kept, "" if nobody knows what is in it."""
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


#: Returns what is in a ConfigMap (`configmaps`) or Secret (`secrets`) of the pod's namespace; None if nobody knows.
DataLookup = Callable[[str, str], Mapping[str, str] | None]


def environment_of(
    pod: KubeObject, container: KubeObject, data_of: DataLookup = lambda storage, name: None
) -> Environment:
    """Return what a container is started with; values are None that only a kubelet knows, or nobody."""
    variables: dict[str, str | None] = {"HOSTNAME": pod["spec"].get("hostname") or pod["metadata"].get("name", "")}
    is_complete = True
    for source in container.get("envFrom") or ():
        data = _data(source, "configMapRef", "secretRef", data_of)
        is_complete = is_complete and data is not None
        variables |= {f"{source.get('prefix', '')}{name}": value for name, value in (data or {}).items()}
    for one in container.get("env") or ():
        source = one.get("valueFrom")
        if source is None:
            variables[one["name"]] = expand_references(one.get("value", ""), variables)
        elif "fieldRef" in source:
            variables[one["name"]] = _field(pod, source["fieldRef"].get("fieldPath", ""))
        else:
            data = _data(source, "configMapKeyRef", "secretKeyRef", data_of) or {}
            key = (source.get("configMapKeyRef") or source.get("secretKeyRef") or {}).get("key", "")
            variables[one["name"]] = data.get(key)
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
    known = {
        "metadata.name": metadata.get("name"),
        "metadata.namespace": metadata.get("namespace"),
        "metadata.uid": metadata.get("uid"),
        "spec.nodeName": pod["spec"].get("nodeName"),
        "spec.serviceAccountName": pod["spec"].get("serviceAccountName"),
    }
    return known.get(path)


def expand_references(text: str, variables: Mapping[str, str | None]) -> str:
    """Return a text with `$(NAME)` replaced, where there is such a variable (Kubernetes: third_party/forked/golang).

    `$$` is one dollar sign. A value that nobody knows is left as it was written.
    """

    def value(match: re.Match[str]) -> str:
        if match[1] == "$":
            return "$"
        known = variables.get(match[2])
        return match[0] if known is None else known

    return _REFERENCE.sub(value, text)
