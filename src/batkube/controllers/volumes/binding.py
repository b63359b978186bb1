"""Claims get their volumes: one that is there and suits them, or one that their storage class makes.

    claim Pending ─▶ Bound ⇄ volume Available ─▶ Bound ─▶ Released, or gone with its claim

No data is kept. Every storage class has a provisioner that makes volumes at once, whatever it is called, but
`kubernetes.io/no-provisioner`. A class that waits for the first consumer waits until a scheduler has chosen a node: by
the annotation that kube-scheduler writes, or, where schedulers do not look at volumes, by binding a pod that has the
claim. Kubernetes: pkg/controller/volume/persistentvolume/pv_controller.go.
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
    """Ties claims to volumes."""

    storage = CLAIM

    def __init__(self, world: World, client: Client, events: EventRecorder) -> None:
        super().__init__(world, client, events)
        world.store.subscribe(VOLUME, self._on_volumes_changed)
        world.store.subscribe(CLASS, self._on_classes_changed)
        world.store.subscribe(POD, self._on_pods_changed)

    # What may change a claim's lot

    def _on_volumes_changed(self, batch: Batch, now: Instant) -> None:
        """Look again at the claim of a volume; at all that wait when a volume is free."""
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
        """Look at claims that may wait for a pod to be placed, when one was."""
        if batch.type is DELETED:
            return
        for key, pod in zip(batch.keys, batch.objects, strict=True):
            for name in claim_names(pod) if node_of_pod(pod) else ():
                claim_key = Key(f"{namespace_of(key)}/{name}")
                claim = self.store.get(CLAIM, claim_key)
                if claim is not None and BIND_COMPLETED not in annotations_of(claim):
                    self.queue.add(claim_key, now)

    # One claim

    def reconcile(self, key: Key, claim: KubeObject, now: Instant) -> None:
        """Give a claim its volume, or say why it has none."""
        name = claim["spec"].get("volumeName", "")
        volume = self.store.get(VOLUME, Key(name)) if name else None
        if BIND_COMPLETED in annotations_of(claim):
            self._sync_bound_claim(claim, volume, now)
        elif name:
            self._bind_by_name(claim, volume, now)
        else:
            self._sync_unbound_claim(key, claim, now)

    def _sync_bound_claim(self, claim: KubeObject, volume: KubeObject | None, now: Instant) -> None:
        """See that a claim that had its volume still has it."""
        if volume is None:
            what = "its PersistentVolume" if claim["spec"].get("volumeName") else "reference to PersistentVolume"
            self._mark_lost(claim, "ClaimLost", f"Bound claim has lost {what}. Data on the volume is lost!", now)
        elif "claimRef" not in volume["spec"] or is_reserved_for(volume, claim):
            if (larger := resized_volume(volume, claim)) is not volume:
                volume = self.client.update(VOLUME, larger, now)
                self.record_event(claim, "Normal", "VolumeResizeSuccessful", "Resize volume succeeded", now)
            self._bind(claim, volume, now)
        else:
            message = "Two claims are bound to the same volume, this one is bound incorrectly"
            self._mark_lost(claim, "ClaimMisbound", message, now)

    def _mark_lost(self, claim: KubeObject, reason: str, message: str, now: Instant) -> None:
        status = claim.get("status", {})
        if status.get("phase") != "Lost":
            kept = {field: value for field, value in status.items() if field not in ("accessModes", "capacity")}
            self.write_status(claim, {**kept, "phase": "Lost"}, now)
            self.record_event(claim, "Warning", reason, message, now)

    def _bind_by_name(self, claim: KubeObject, volume: KubeObject | None, now: Instant) -> None:
        """Bind a claim to the volume that its user wants, if that is free and suits it."""
        if volume is None or ("claimRef" in volume["spec"] and not is_reserved_for(volume, claim)):
            return
        problem = mismatch_reason(volume, claim) if "claimRef" not in volume["spec"] else None
        if problem is None:
            self._bind(claim, volume, now)
        else:
            message = f'Cannot bind to requested volume "{volume["metadata"]["name"]}": {problem}'
            self.record_event(claim, "Warning", "VolumeMismatch", message, now)

    def _sync_unbound_claim(self, key: Key, claim: KubeObject, now: Instant) -> None:
        storage_class = self.store.get(CLASS, Key(class_of(claim))) if class_of(claim) else None
        waits = (storage_class or {}).get("volumeBindingMode") == "WaitForFirstConsumer"
        pods = self._pods_using(key, claim) if waits else []
        chosen = annotations_of(claim).get(SELECTED_NODE) or next(filter(None, map(node_of_pod, pods)), "")
        node = self.store.get(NODE, Key(chosen)) if waits and chosen else None
        volumes = [volume for volume, _ in self.store.entries(VOLUME).values()]
        volume = best_match(claim, volumes, node, waits=waits)
        if volume is not None:
            self._bind(claim, volume, now)
        elif waits and node is None:
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
        """Let a claim that names no class be of the default one, if there is one by now (assignDefaultStorageClass)."""
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
        """Make a volume for a claim; that it is there will be heard."""
        provisioner = storage_class["provisioner"]
        volume = provisioned_volume(claim, storage_class)
        name = volume["metadata"]["name"]
        if provisioner == NO_PROVISIONER or self.store.get(VOLUME, Key(name)) is not None:
            return
        said = dict.fromkeys(_PROVISIONERS, provisioner)
        if not said.items() <= annotations_of(claim).items():
            claim = self.client.update(CLAIM, with_metadata(claim, annotations={**annotations_of(claim), **said}), now)
        self.client.create(VOLUME, volume, now)
        self.record_event(claim, "Normal", "ProvisioningSucceeded", f"Successfully provisioned volume {name}", now)

    def _bind(self, claim: KubeObject, volume: KubeObject, now: Instant) -> None:
        """Tie the two together: the volume first, so that no other claim gets it, then the claim."""
        if (volume["spec"].get("claimRef") or {}).get("uid") != claim["metadata"]["uid"]:
            if "claimRef" not in volume["spec"]:
                volume = with_metadata(volume, annotations={**annotations_of(volume), BOUND_BY_CONTROLLER: "yes"})
            tied = {**volume["spec"], "claimRef": claim_reference(claim)}
            volume = self.client.update(VOLUME, {**volume, "spec": tied}, now)
        write_phase(self.client, volume, "Bound", now)
        name, annotations = volume["metadata"]["name"], {**annotations_of(claim), BIND_COMPLETED: "yes"}
        if claim["spec"].get("volumeName") != name:
            annotations[BOUND_BY_CONTROLLER] = "yes"
        bound = {**with_metadata(claim, annotations=annotations), "spec": {**claim["spec"], "volumeName": name}}
        if bound != claim:
            claim = self.client.update(CLAIM, bound, now)
        shown = {field: volume["spec"].get(field) for field in ("accessModes", "capacity")}
        self.write_status(claim, {**claim.get("status", {}), "phase": "Bound", **shown}, now)


class VolumePhaseController(Controller):
    """Keeps what a volume says of itself: that it is free, in use, or left behind by its claim."""

    storage = VOLUME

    def __init__(self, world: World, client: Client) -> None:
        super().__init__(world, client)
        world.store.subscribe(CLAIM, self._on_claims_changed)

    def _on_claims_changed(self, batch: Batch, now: Instant) -> None:
        """Look at the volumes of claims that went."""
        if batch.type is DELETED:
            for claim in batch.objects:
                if name := claim["spec"].get("volumeName"):
                    self.queue.add(Key(name), now)

    def reconcile(self, key: Key, volume: KubeObject, now: Instant) -> None:
        """Say how it stands with a volume; delete one that was made for a claim that is gone."""
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
        is_ours = PROVISIONED_BY in annotations_of(volume)
        if is_ours and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            self.client.delete(VOLUME, key, now)


def write_phase(client: Client, volume: KubeObject, phase: str, now: Instant) -> KubeObject:
    """Say in which phase a volume is, unless that is said; return it as it is then."""
    status = volume.get("status", {})
    if status.get("phase") == phase:
        return volume
    return client.update(VOLUME, {**volume, "status": {**status, "phase": phase}}, now, subresource="status")
