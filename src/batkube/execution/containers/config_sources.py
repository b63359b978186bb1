"""Resolves the ConfigMaps, Secrets and devices to which containers refer, and notes those that do not exist."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator

from batkube.cluster.object_meta import key_of
from batkube.cluster.pods.device_claims import DEVICE_CLAIM, claims_by_entry, is_allocated
from batkube.cluster.store import Key, KubeObject, Store
from batkube.cluster.world import World
from batkube.execution.scripts.environment import Environment, environment_of
from batkube.kernel.fidelity import FidelityNote

_CONFIG_MAP, _SECRET = "configmaps", "secrets"
_MISSING_SOURCE = FidelityNote(
    "containers",
    "a container refers to a missing ConfigMap or Secret: a real kubelet would wait for it, here it starts",
)
_NO_DEVICES = FidelityNote(
    "containers",
    "a pod claims devices that are not allocated: a real kubelet would wait for them, here its containers start",
)
_POST_START = FidelityNote(
    "containers", "a container has a postStart hook: a real kubelet would wait for its end before it starts others"
)
#: The root CA publisher creates this ConfigMap in every namespace, sooner or later.
_ROOT_CA = "kube-root-ca.crt"


class ConfigSources:
    """Looks up the objects to which containers refer."""

    def __init__(self, world: World) -> None:
        self._store: Store = world.store
        self._notes = world.notes

    def environment_of(self, pod: KubeObject, container: KubeObject) -> Environment:
        """Return the environment of a container, and note missing objects to which it refers."""
        namespace = pod["metadata"].get("namespace", "")
        for storage, name in _references(pod, container):
            if self._store.get(storage, Key(f"{namespace}/{name}")) is None:
                self._note(_MISSING_SOURCE, pod, container, f"{storage[:-1]} {name}")
        for entry, claim in claims_by_entry(pod).items():
            if claim != "" and not self._is_allocated(Key(f"{namespace}/{claim}")):
                self._note(_NO_DEVICES, pod, container, f"claim {claim or entry}")
        if (container.get("lifecycle") or {}).get("postStart"):
            self._note(_POST_START, pod, container, "postStart")
        return environment_of(pod, container, lambda storage, name: self._data(storage, Key(f"{namespace}/{name}")))

    def _is_allocated(self, key: Key) -> bool:
        claim = self._store.get(DEVICE_CLAIM, key)
        return claim is not None and is_allocated(claim)

    def _note(self, note: FidelityNote, pod: KubeObject, container: KubeObject, reference: str) -> None:
        self._notes.add(note, example=f"pod {key_of(pod)}, container {container['name']}: {reference}")

    def _data(self, storage: str, key: Key) -> dict[str, str] | None:
        source = self._store.get(storage, key)
        if source is None:
            return None
        data = source.get("data") or {}
        return dict(data) if storage == _CONFIG_MAP else {name: _decode(text) for name, text in data.items()}


def _decode(text: str) -> str:
    try:
        return base64.b64decode(text).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _references(pod: KubeObject, container: KubeObject) -> Iterator[tuple[str, str]]:
    """Yield the storage and name of each object that a container's variables and volumes require."""
    for variable in container.get("env") or ():
        yield from _required_references(variable.get("valueFrom") or {}, "configMapKeyRef", "secretKeyRef")
    for source in container.get("envFrom") or ():
        yield from _required_references(source, "configMapRef", "secretRef")
    for volume in pod["spec"].get("volumes") or ():
        yield from _required_references(volume, "configMap", "secret")
        for source in (volume.get("projected") or {}).get("sources") or ():
            yield from _required_references(source, "configMap", "secret")


def _required_references(fields: KubeObject, config_map: str, secret: str) -> Iterator[tuple[str, str]]:
    for field, storage in ((config_map, _CONFIG_MAP), (secret, _SECRET)):
        reference = fields.get(field) or {}
        name = reference.get("name") or reference.get("secretName")
        if name and name != _ROOT_CA and not reference.get("optional"):
            yield storage, name
