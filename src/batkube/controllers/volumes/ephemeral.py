"""Generic ephemeral volumes: each has a claim that is created from the pod's template and owned by the pod.

Kubernetes: pkg/controller/volume/ephemeral/controller.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from batkube.cluster.client import ApiError, Client, prefix_errors
from batkube.cluster.event_recorder import EventRecorder
from batkube.cluster.object_meta import controller_reference, is_being_deleted, is_controlled_by
from batkube.cluster.store import ADDED, DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.controllers.framework.controller import Controller
from batkube.controllers.framework.pod_control import POD
from batkube.controllers.volumes.matching import CLAIM, ephemeral_claim_name
from batkube.kernel.instants import Instant


class EphemeralVolumeController(Controller):
    """Creates the claims of ephemeral volumes; the garbage collector deletes them with the pod."""

    storage = POD

    def __init__(self, world: World, client: Client, events: EventRecorder) -> None:
        super().__init__(world, client, events)
        world.store.subscribe(CLAIM, self._on_claims_changed)

    def on_objects_changed(self, batch: Batch, now: Instant) -> None:
        """Queue new pods; the volumes of a pod never change."""
        if batch.type is ADDED:
            super().on_objects_changed(batch, now)

    def should_reconcile(self, obj: KubeObject) -> bool:
        """Return whether the pod has an ephemeral volume."""
        return any("ephemeral" in volume for volume in obj["spec"].get("volumes") or ())

    def _on_claims_changed(self, batch: Batch, now: Instant) -> None:
        """Queue pods whose claim was deleted, or whose claim's name has become free."""
        if batch.type is DELETED:
            for key in batch.keys:
                for pod in _possible_pods(key):
                    if (obj := self.store.get(POD, pod)) is not None and self.should_reconcile(obj):
                        self.queue.add(pod, now)

    def reconcile(self, key: Key, obj: KubeObject, now: Instant) -> None:
        """Create missing claims."""
        if is_being_deleted(obj):
            return
        for volume in obj["spec"].get("volumes") or ():
            if "ephemeral" in volume:
                try:
                    self._ensure_claim(obj, volume, now)
                except ApiError as error:
                    message = f"ephemeral volume {volume['name']}: {error.message}"
                    self.record_event(obj, "Warning", "FailedBinding", message, now)
                    raise

    def _ensure_claim(self, pod: KubeObject, volume: KubeObject, now: Instant) -> None:
        namespace, name = pod["metadata"]["namespace"], ephemeral_claim_name(pod, volume)
        claim = self.store.get(CLAIM, Key(f"{namespace}/{name}"))
        if claim is not None:
            if not is_controlled_by(claim, pod):
                owner = f"pod {namespace}/{pod['metadata']['name']} (pod is not owner)"
                raise ApiError(409, "Conflict", f"PVC {namespace}/{name} was not created for {owner}")
            return
        template = volume["ephemeral"]["volumeClaimTemplate"]
        template_metadata = template.get("metadata") or {}
        copied_fields = {
            field: template_metadata[field] for field in ("labels", "annotations") if template_metadata.get(field)
        }
        metadata = {
            "name": name,
            "namespace": namespace,
            "ownerReferences": [controller_reference(pod)],
            **copied_fields,
        }
        claim_manifest = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": metadata,
            "spec": template["spec"],
        }
        with prefix_errors(f"create PVC {name}"):
            self.client.create(CLAIM, claim_manifest, now)


def _possible_pods(claim: Key) -> Iterator[Key]:
    """Yield the pods that a claim may belong to: its name is the pod's, a hyphen and the volume's."""
    hyphen = claim.rfind("-")
    while hyphen > claim.find("/"):
        yield Key(claim[:hyphen])
        hyphen = claim.rfind("-", 0, hyphen)
