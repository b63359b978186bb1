"""Protects volumes and claims in use from deletion by a finalizer.

Admission adds the finalizer. These controllers remove it from deleted objects that are no longer in use. Kubernetes:
pkg/controller/volume/pvcprotection/pvc_protection_controller.go, pvprotection/pv_protection_controller.go.
"""

from __future__ import annotations

from batkube.cluster.client import Client
from batkube.cluster.object_meta import is_being_deleted, namespace_of, with_metadata, without_finalizer
from batkube.cluster.pods.accessors import node_of_pod
from batkube.cluster.store import Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.controllers.framework.controller import Controller
from batkube.controllers.framework.pod_control import POD
from batkube.controllers.volumes.matching import CLAIM, VOLUME, claim_names
from batkube.kernel.instants import Instant


class ProtectionController(Controller):
    """Removes the finalizer of deleted objects that are not in use; adds it where it is missing."""

    finalizer: str

    def reconcile(self, key: Key, obj: KubeObject, now: Instant) -> None:
        """Add or remove the finalizer."""
        finalizers = obj["metadata"].get("finalizers") or []
        if not is_being_deleted(obj):
            if self.finalizer not in finalizers:
                self.client.update(self.storage, with_metadata(obj, finalizers=[*finalizers, self.finalizer]), now)
        elif self.finalizer in finalizers and not self.is_in_use(key, obj):
            self.client.update(self.storage, without_finalizer(obj, self.finalizer), now)

    def is_in_use(self, key: Key, obj: KubeObject) -> bool:
        """Return whether the object is in use."""
        raise NotImplementedError


class VolumeProtectionController(ProtectionController):
    """Protects volumes that are bound to a claim."""

    storage, finalizer = VOLUME, "kubernetes.io/pv-protection"

    def is_in_use(self, key: Key, obj: KubeObject) -> bool:
        """Return whether the volume is bound."""
        return bool(obj.get("status", {}).get("phase") == "Bound")


class ClaimProtectionController(ProtectionController):
    """Protects claims while a bound pod that uses them exists."""

    storage, finalizer = CLAIM, "kubernetes.io/pvc-protection"

    def __init__(self, world: World, client: Client) -> None:
        super().__init__(world, client)
        world.store.subscribe(POD, self._on_pods_changed)

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        """Queue deleted claims of changed pods."""
        for key, pod in zip(batch.keys, batch.objects, strict=True):
            for name in claim_names(pod):
                claim_key = Key(f"{namespace_of(key)}/{name}")
                claim = self.store.get(CLAIM, claim_key)
                if claim is not None and is_being_deleted(claim):
                    self.queue.add(claim_key, now)

    def is_in_use(self, key: Key, obj: KubeObject) -> bool:
        """Return whether a bound pod uses the claim; a pod that was never bound cannot start with a deleted claim."""
        name, pods = obj["metadata"]["name"], self.store.in_namespace(POD, namespace_of(key))
        return any(node_of_pod(pod) and name in claim_names(pod) for _, pod in pods)
