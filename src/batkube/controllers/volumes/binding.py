"""Binds PersistentVolumeClaims to volumes: a matching existing one, or one that is provisioned.

    claim Pending ─▶ Bound ⇄ volume Available ─▶ Bound ─▶ Released, or deleted with its claim

No data is stored. Every storage class provisions volumes immediately, whatever its provisioner, except for
`kubernetes.io/no-provisioner`. With WaitForFirstConsumer a claim waits until a node is selected: by kube-scheduler's
annotation, or, if the scheduler ignores volumes, when a pod with the claim is bound.
Kubernetes: pkg/controller/volume/persistentvolume/pv_controller.go.
"""

from __future__ import annotations

from collections.abc import Sequence

from batkube.cluster.client import Client
from batkube.cluster.default_classes import default_storage_class
from batkube.cluster.event_recorder import EventRecorder
from batkube.cluster.mapping import NODE
from batkube.cluster.object_meta import annotations_of, namespace_of, with_metadata
from batkube.cluster.pods.accessors import node_of_pod
from batkube.cluster.store import DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.controllers.framework.controller import Controller
from batkube.controllers.framework.pod_control import POD
from batkube.controllers.volumes.matching import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    CLAIM,
    CLASS,
    NO_PROVISIONER,
    PROVISIONED_BY,
    SELECTED_NODE,
    VOLUME,
    best_match,
    claim_names,
    claim_reference,
    class_of,
    is_reserved_for,
    mismatch_reason,
    provisioned_volume,
    resized_volume,
)
from batkube.kernel.instants import Instant

_PROVISIONERS = ("volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-provisioner")


class VolumeBindingController(Controller):
    """Binds claims to volumes."""

    storage = CLAIM

    def __init__(self, world: World, client: Client, events: EventRecorder) -> None:
        super().__init__(world, client, events)
        world.store.subscribe(VOLUME, self._on_volumes_changed)
        world.store.subscribe(CLASS, self._on_classes_changed)
        world.store.subscribe(POD, self._on_pods_changed)

    # Subscriptions

    def _on_volumes_changed(self, batch: Batch, now: Instant) -> None:
        """Queue the claim of a volume; if a volume is available, queue all unbound claims."""
        for volume in batch.objects:
            reference = volume["spec"].get("claimRef")
            if reference is not None:
                self.queue.add(Key(f"{reference.get('namespace', '')}/{reference['name']}"), now)
            elif batch.type is not DELETED:
                self._queue_unbound_claims(now)

    def _on_classes_changed(self, batch: Batch, now: Instant) -> None:
        if batch.type is not DELETED:
            self._queue_unbound_claims(now)

    def _queue_unbound_claims(self, now: Instant) -> None:
        for key, (claim, _) in self.store.entries(CLAIM).items():
            if BIND_COMPLETED not in annotations_of(claim):
                self.queue.add(key, now)

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        """Queue unbound claims of pods that were bound: they may wait for a node."""
        if batch.type is DELETED:
            return
        for key, pod in zip(batch.keys, batch.objects, strict=True):
            for name in claim_names(pod) if node_of_pod(pod) else ():
                claim_key = Key(f"{namespace_of(key)}/{name}")
                claim = self.store.get(CLAIM, claim_key)
                if claim is not None and BIND_COMPLETED not in annotations_of(claim):
                    self.queue.add(claim_key, now)

    # Reconciliation

    def reconcile(self, key: Key, claim: KubeObject, now: Instant) -> None:
        """Bind a claim to a volume, or record why it is not bound."""
        name = claim["spec"].get("volumeName", "")
        volume = self.store.get(VOLUME, Key(name)) if name else None
        if BIND_COMPLETED in annotations_of(claim):
            self._sync_bound_claim(claim, volume, now)
        elif name:
            self._bind_by_name(claim, volume, now)
        else:
            self._sync_unbound_claim(key, claim, now)

    def _sync_bound_claim(self, claim: KubeObject, volume: KubeObject | None, now: Instant) -> None:
        """Check that a bound claim still has its volume (Kubernetes: syncBoundClaim)."""
        if volume is None:
            lost_object = "its PersistentVolume" if claim["spec"].get("volumeName") else "reference to PersistentVolume"
            self._mark_lost(claim, "ClaimLost", f"Bound claim has lost {lost_object}. Data on the volume is lost!", now)
        elif "claimRef" not in volume["spec"] or is_reserved_for(volume, claim):
            if (resized := resized_volume(volume, claim)) is not volume:
                volume = self.client.update(VOLUME, resized, now)
                self.record_event(claim, "Normal", "VolumeResizeSuccessful", "Resize volume succeeded", now)
            self._bind(claim, volume, now)
        else:
            message = "Two claims are bound to the same volume, this one is bound incorrectly"
            self._mark_lost(claim, "ClaimMisbound", message, now)

    def _mark_lost(self, claim: KubeObject, reason: str, message: str, now: Instant) -> None:
        status = claim.get("status", {})
        if status.get("phase") != "Lost":
            remaining = {field: value for field, value in status.items() if field not in ("accessModes", "capacity")}
            self.write_status(claim, {**remaining, "phase": "Lost"}, now)
            self.record_event(claim, "Warning", reason, message, now)

    def _bind_by_name(self, claim: KubeObject, volume: KubeObject | None, now: Instant) -> None:
        """Bind a claim to the volume it names, if that is available and matches."""
        if volume is None or ("claimRef" in volume["spec"] and not is_reserved_for(volume, claim)):
            return
        problem = mismatch_reason(volume, claim) if "claimRef" not in volume["spec"] else None
        if problem is None:
            self._bind(claim, volume, now)
        else:
            message = f'Cannot bind to requested volume "{volume["metadata"]["name"]}": {problem}'
            self.record_event(claim, "Warning", "VolumeMismatch", message, now)

    def _sync_unbound_claim(self, key: Key, claim: KubeObject, now: Instant) -> None:
        # Kubernetes: syncUnboundClaim.
        storage_class = self.store.get(CLASS, Key(class_of(claim))) if class_of(claim) else None
        waits_for_consumer = (storage_class or {}).get("volumeBindingMode") == "WaitForFirstConsumer"
        pods = self._pods_using(key, claim) if waits_for_consumer else []
        node_name = annotations_of(claim).get(SELECTED_NODE) or next(filter(None, map(node_of_pod, pods)), "")
        node = self.store.get(NODE, Key(node_name)) if waits_for_consumer and node_name else None
        volumes = [volume for volume, _ in self.store.entries(VOLUME).values()]
        volume = best_match(claim, volumes, node, waits_for_consumer=waits_for_consumer)
        if volume is not None:
            self._bind(claim, volume, now)
        elif waits_for_consumer and node is None:
            self._report_waiting(claim, pods, now)
        elif storage_class is not None:
            self._provision(claim, storage_class, now)
        elif class_of(claim):
            message = f'storageclass.storage.k8s.io "{class_of(claim)}" not found'
            self.record_event(claim, "Warning", "ProvisioningFailed", message, now)
        elif not self._assign_default_class(claim, now):
            message = "no persistent volumes available for this claim and no storage class is set"
            self.record_event(claim, "Normal", "FailedBinding", message, now)

    def _assign_default_class(self, claim: KubeObject, now: Instant) -> bool:
        """Set the default storage class on a claim without a class (Kubernetes: assignDefaultStorageClass)."""
        name = "" if "storageClassName" in claim["spec"] else default_storage_class(self.store)
        if name:
            self.client.update(CLAIM, {**claim, "spec": {**claim["spec"], "storageClassName": name}}, now)
        return bool(name)

    def _pods_using(self, key: Key, claim: KubeObject) -> list[KubeObject]:
        name = claim["metadata"]["name"]
        return [pod for _, pod in self.store.in_namespace(POD, namespace_of(key)) if name in claim_names(pod)]

    def _report_waiting(self, claim: KubeObject, pods: Sequence[KubeObject], now: Instant) -> None:
        names = [pod["metadata"]["name"] for pod in pods]
        if names:
            message = f"waiting for pod{'s' if len(names) > 1 else ''} {','.join(names)} to be scheduled"
            self.record_event(claim, "Normal", "WaitForPodScheduled", message, now)
        else:
            message = "waiting for first consumer to be created before binding"
            self.record_event(claim, "Normal", "WaitForFirstConsumer", message, now)

    def _provision(self, claim: KubeObject, storage_class: KubeObject, now: Instant) -> None:
        """Create the volume of a claim; the change of the volume triggers the binding (Kubernetes: provisionClaim)."""
        provisioner = storage_class["provisioner"]
        volume = provisioned_volume(claim, storage_class)
        name = volume["metadata"]["name"]
        if provisioner == NO_PROVISIONER or self.store.get(VOLUME, Key(name)) is not None:
            return
        annotations = dict.fromkeys(_PROVISIONERS, provisioner)
        if not annotations.items() <= annotations_of(claim).items():
            claim = self.client.update(
                CLAIM, with_metadata(claim, annotations={**annotations_of(claim), **annotations}), now
            )
        self.client.create(VOLUME, volume, now)
        self.record_event(claim, "Normal", "ProvisioningSucceeded", f"Successfully provisioned volume {name}", now)

    def _bind(self, claim: KubeObject, volume: KubeObject, now: Instant) -> None:
        """Bind volume and claim: the volume first, so that no other claim gets it (Kubernetes: bind)."""
        if (volume["spec"].get("claimRef") or {}).get("uid") != claim["metadata"]["uid"]:
            if "claimRef" not in volume["spec"]:
                volume = with_metadata(volume, annotations={**annotations_of(volume), BOUND_BY_CONTROLLER: "yes"})
            volume_spec = {**volume["spec"], "claimRef": claim_reference(claim)}
            volume = self.client.update(VOLUME, {**volume, "spec": volume_spec}, now)
        write_phase(self.client, volume, "Bound", now)
        name, annotations = volume["metadata"]["name"], {**annotations_of(claim), BIND_COMPLETED: "yes"}
        if claim["spec"].get("volumeName") != name:
            annotations[BOUND_BY_CONTROLLER] = "yes"
        bound_claim = {**with_metadata(claim, annotations=annotations), "spec": {**claim["spec"], "volumeName": name}}
        if bound_claim != claim:
            claim = self.client.update(CLAIM, bound_claim, now)
        volume_fields = {field: volume["spec"].get(field) for field in ("accessModes", "capacity")}
        self.write_status(claim, {**claim.get("status", {}), "phase": "Bound", **volume_fields}, now)


class VolumePhaseController(Controller):
    """Maintains the phase of volumes: Available, Bound or Released."""

    storage = VOLUME

    def __init__(self, world: World, client: Client) -> None:
        super().__init__(world, client)
        world.store.subscribe(CLAIM, self._on_claims_changed)

    def _on_claims_changed(self, batch: Batch, now: Instant) -> None:
        """Queue the volumes of deleted claims."""
        if batch.type is DELETED:
            for claim in batch.objects:
                if name := claim["spec"].get("volumeName"):
                    self.queue.add(Key(name), now)

    def reconcile(self, key: Key, volume: KubeObject, now: Instant) -> None:
        """Update the phase of a volume; delete a provisioned volume whose claim was deleted."""
        reference = volume["spec"].get("claimRef") or {}
        if not reference.get("uid"):
            write_phase(self.client, volume, "Available", now)
            return
        claim = self.store.get(CLAIM, Key(f"{reference['namespace']}/{reference['name']}"))
        if claim is not None and claim["metadata"]["uid"] == reference["uid"]:
            if claim["spec"].get("volumeName") == volume["metadata"]["name"]:
                write_phase(self.client, volume, "Bound", now)
            return
        if volume.get("status", {}).get("phase") not in ("Released", "Failed"):
            volume = write_phase(self.client, volume, "Released", now)
        is_provisioned = PROVISIONED_BY in annotations_of(volume)
        if is_provisioned and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            self.client.delete(VOLUME, key, now)


def write_phase(client: Client, volume: KubeObject, phase: str, now: Instant) -> KubeObject:
    """Write the phase of a volume if it changed; return the resulting volume."""
    status = volume.get("status", {})
    if status.get("phase") == phase:
        return volume
    return client.update(VOLUME, {**volume, "status": {**status, "phase": phase}}, now, subresource="status")
