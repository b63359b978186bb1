"""What a container's script sees: its variables, and the files of its volumes.

Only that a file is there is kept, not what it holds, and only of volumes that begin empty: those of the pod alone
(emptyDir), of its node (hostPath) and of a claim. What an image has in it nobody knows.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Duration, Instant

_FIELD = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
_REFERENCE = re.compile(r"\$(\$|\(([A-Za-z0-9_.-]+)\))")


class Files:
    """The files of all volumes, by where they are, with when they came and when they went."""

    def __init__(self) -> None:
        self._made: dict[str, Instant] = {}

    def has(self, place: str, now: Instant) -> bool:
        """Return whether there is a file, or one below it."""
        return any(made <= now and (path == place or path.startswith(f"{place}/")) for path, made in self._made.items())

    def write(self, place: str, now: Instant) -> None:
        """Make a file."""
        self._made.setdefault(place, now)

    def remove(self, place: str) -> None:
        """Remove a file, and what is below it."""
        for path in [path for path in self._made if path == place or path.startswith(f"{place}/")]:
            del self._made[path]


class Mounts:
    """The files as one container sees them (`scripts.running.Disk`), from `now` on."""

    def __init__(self, files: Files, pod: KubeObject, container: KubeObject, now: Instant) -> None:
        self._files = files
        self._now = now
        volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
        #: Where what is mounted at a path is kept, the longest paths first; "" for what is not known.
        self._places: dict[str, str] = {}
        for mount in sorted(container.get("volumeMounts") or (), key=lambda one: -len(one["mountPath"])):
            place = _place(pod, volumes.get(mount["name"], {}))
            below = mount.get("subPath", "")
            is_known = place and "subPathExpr" not in mount
            self._places[mount["mountPath"].rstrip("/")] = posixpath.join(place, below).rstrip("/") if is_known else ""

    def _place(self, path: str) -> tuple[str, bool] | None:
        path = posixpath.normpath(path)
        for mount, place in self._places.items():
            if path == mount or path.startswith(f"{mount}/"):
                return (place + path[len(mount) :], path == mount) if place else None
        return None

    def has(self, path: str, after: Duration) -> bool | None:
        """Return whether there is a file; of what is in no volume nobody knows."""
        found = self._place(path)
        if found is None:
            return None
        place, is_mount = found
        return is_mount or self._files.has(place, Instant(self._now + after))

    def write(self, path: str, after: Duration) -> None:
        """Make a file, if it is in a volume."""
        found = self._place(path)
        if found is not None:
            self._files.write(found[0], Instant(self._now + after))

    def remove(self, path: str, after: Duration) -> None:
        """Remove a file."""
        found = self._place(path)
        if found is not None:
            self._files.remove(found[0])


def pod_files(uid: str) -> str:
    """Return where the files of a pod's own volumes are."""
    return f"pod {uid}"


def _place(pod: KubeObject, volume: KubeObject) -> str:
    """Return where a volume's files are kept, "" if nobody knows what is in it."""
    metadata = pod["metadata"]
    if "emptyDir" in volume:
        return f"{pod_files(metadata['uid'])}/{volume['name']}"
    if "hostPath" in volume:
        return f"node {pod['spec'].get('nodeName', '')}/{volume['hostPath']['path'].strip('/')}"
    if "persistentVolumeClaim" in volume:
        return f"claim {metadata.get('namespace', '')}/{volume['persistentVolumeClaim']['claimName']}"
    return ""


def variables_of(pod: KubeObject, container: KubeObject) -> dict[str, str | None]:
    """Return a container's environment; None for values that stand in other objects, or that only a kubelet knows."""
    metadata = pod["metadata"]
    variables: dict[str, str | None] = {"HOSTNAME": pod["spec"].get("hostname") or metadata.get("name", "")}
    for one in container.get("env") or ():
        if "valueFrom" in one:
            variables[one["name"]] = _field(pod, (one["valueFrom"].get("fieldRef") or {}).get("fieldPath", ""))
        else:
            variables[one["name"]] = expanded(one.get("value", ""), variables)
    return variables


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


def expanded(text: str, variables: Mapping[str, str | None]) -> str:
    """Return a text with `$(NAME)` replaced, where there is such a variable (Kubernetes: third_party/forked/golang).

    `$$` is one dollar sign. A value that nobody knows is left as it was written.
    """

    def value(match: re.Match[str]) -> str:
        if match[1] == "$":
            return "$"
        known = variables.get(match[2])
        return match[0] if known is None else known

    return _REFERENCE.sub(value, text)
