"""ResourceClaims: created from templates, reserved for pods that run, and released afterwards.

The scheduler allocates devices to a claim (kube-scheduler: the plugin DynamicResources). The controllers here do the
rest (Kubernetes: pkg/controller/resourceclaim), without three quirks of the real one. It creates the claim of a
finished pod once more and deletes it at once. It reserves an allocated shared claim for finished pods, takes that back,
and starts over. And for an hour it does not notice that a claim it has created was deleted.
"""

from __future__ import annotations

from batkube.cluster.client import ApiError, Client, ignore_not_found, prefix_errors
from batkube.cluster.event_recorder import EventRecorder
from batkube.cluster.object_meta import (
    annotations_of,
    controller_of,
    controller_reference,
    is_being_deleted,
    is_controlled_by,
    namespace_of,
    without_finalizer,
)
from batkube.cluster.pods.accessors import is_active, is_finished, node_of_pod
from batkube.cluster.pods.device_claims import DEVICE_CLAIM, claims_of, generated_claims, is_allocated
from batkube.cluster.store import ADDED, DELETED, Batch, Change, Key, KubeObject
from batkube.cluster.world import World
from batkube.controllers.framework.controller import Controller
from batkube.controllers.framework.owner_index import OwnerIndex
from batkube.controllers.framework.pod_control import POD
from batkube.kernel.instants import Instant

_TEMPLATE = "resourceclaimtemplates.resource.k8s.io"
#: Set by kube-scheduler on allocated claims.
_FINALIZER = "resource.kubernetes.io/delete-protection"
#: The entry of `resourceClaims` in the pod that a claim was created for.
_POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
#: Maximum number of pods that share a claim (Kubernetes: ResourceClaimReservedForMaxSize).
_MAX_CONSUMERS = 256
_PODS = "pods"
#: Maximum length of a name prefix, before five random characters are added (Kubernetes: handleClaim, maxBaseLen).
_PREFIX_LENGTH = 57


class ResourceClaimController(Controller):
    """Creates claims from templates, and reserves claims for pods that were bound without kube-scheduler's plugin."""

    storage = POD

    def __init__(self, world: World, client: Client, events: EventRecorder, claims: OwnerIndex) -> None:
        #: The pods that name each claim in `resourceClaimName`, which is immutable.
        self._sharers: dict[Key, dict[Key, None]] = {}
        super().__init__(world, client, events)
        self._claims = claims
        claims.subscribe(self._on_claim_changed)

    def on_objects_changed(self, batch: Batch, now: Instant) -> None:
        """Index pods by the claims they name, and queue them."""
        if batch.type in (ADDED, DELETED):
            for key, pod in zip(batch.keys, batch.objects, strict=True):
                for entry in pod["spec"].get("resourceClaims") or ():
                    if "resourceClaimName" in entry:
                        self._update_sharers(
                            Key(f"{namespace_of(key)}/{entry['resourceClaimName']}"), key, batch.type is ADDED
                        )
        super().on_objects_changed(batch, now)

    def _update_sharers(self, claim: Key, pod: Key, is_added: bool) -> None:
        sharers = self._sharers.setdefault(claim, {})
        if is_added:
            sharers[pod] = None
        else:
            sharers.pop(pod, None)
        if not sharers:
            del self._sharers[claim]

    def should_reconcile(self, obj: KubeObject) -> bool:
        """Return whether the pod uses claims and is not finished."""
        return bool(obj["spec"].get("resourceClaims")) and is_active(obj)

    def _on_claim_changed(self, controller: KubeObject | None, change: Change, now: Instant) -> None:
        """Queue the pod that owns the claim; once the claim is allocated, queue all bound pods that share it."""
        if controller is not None:
            self.queue.add(Key(f"{namespace_of(change.key)}/{controller['name']}"), now)
        if change.type is not DELETED and _can_be_reserved(change.object):
            for key in self._sharers.get(change.key, ()):
                if (pod := self.store.get(POD, key)) is not None and node_of_pod(pod):
                    self.queue.add(key, now)

    def reconcile(self, key: Key, obj: KubeObject, now: Instant) -> None:
        """Create missing claims, record their names in the pod's status, and reserve the claims of a bound pod."""
        if not self.should_reconcile(obj):
            return
        created = {}
        for entry in obj["spec"]["resourceClaims"]:
            if "resourceClaimTemplateName" in entry and not self._has_claim(obj, entry["name"]):
                try:
                    created[entry["name"]] = self._get_or_create_claim(obj, entry, now)["metadata"]["name"]
                except ApiError as error:
                    message = f"PodResourceClaim {entry['name']}: {error.message}"
                    self.record_event(obj, "Warning", "FailedResourceClaimCreation", message, now)
                    raise
        if created:
            obj = self.write_status(obj, _with_claim_names(obj, created), now)
        if node_of_pod(obj):
            self._reserve(obj, now)

    def _has_claim(self, pod: KubeObject, entry: str) -> bool:
        name = generated_claims(pod).get(entry)
        claim = self._get(pod, name) if name else None
        return name == "" or (claim is not None and is_controlled_by(claim, pod))

    def _get(self, pod: KubeObject, name: str) -> KubeObject | None:
        return self.store.get(DEVICE_CLAIM, Key(f"{pod['metadata']['namespace']}/{name}"))

    def _get_or_create_claim(self, pod: KubeObject, entry: KubeObject, now: Instant) -> KubeObject:
        """Return the claim of an entry; create it if it does not exist. The pod's status may lack its name.

        Kubernetes: handleClaim.
        """
        metadata, name = pod["metadata"], entry["name"]
        for claim in self._claims.owned_by(metadata["uid"]):
            if annotations_of(claim).get(_POD_CLAIM_NAME) == name:
                return claim
        template_name = entry["resourceClaimTemplateName"]
        template = self.store.get(_TEMPLATE, Key(f"{metadata['namespace']}/{template_name}"))
        if template is None:
            problem = f'resourceclaimtemplate.resource.k8s.io "{template_name}" not found'
            raise ApiError(404, "NotFound", f'resource claim template "{template_name}": {problem}')
        template_metadata = template["spec"].get("metadata") or {}
        metadata_of_claim = {
            "generateName": _name_prefix(metadata["name"], name),
            "namespace": metadata["namespace"],
            **({"labels": template_metadata["labels"]} if template_metadata.get("labels") else {}),
            "annotations": {**(template_metadata.get("annotations") or {}), _POD_CLAIM_NAME: name},
            "ownerReferences": [controller_reference(pod)],
        }
        claim = {"apiVersion": template["apiVersion"], "kind": "ResourceClaim", "metadata": metadata_of_claim}
        with prefix_errors("create ResourceClaim "):
            return self.client.create(DEVICE_CLAIM, {**claim, "spec": template["spec"]["spec"]}, now)

    def _reserve(self, pod: KubeObject, now: Instant) -> None:
        consumer = {"resource": _PODS, "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        for name in claims_of(pod):
            claim = self._get(pod, name)
            if claim is not None and _can_be_reserved(claim):
                status = claim["status"]
                consumers = status.get("reservedFor") or []
                if all(other["uid"] != consumer["uid"] for other in consumers):
                    reserved = {**status, "reservedFor": [*consumers, consumer]}
                    self.client.update(DEVICE_CLAIM, {**claim, "status": reserved}, now, subresource="status")


class ClaimReservationController(Controller):
    """Removes reservations of finished pods, and deletes claims that were created for them."""

    storage = DEVICE_CLAIM

    def __init__(self, world: World, client: Client) -> None:
        super().__init__(world, client)
        world.store.subscribe(POD, self._on_pods_changed)

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        """Queue the claims of deleted and finished pods."""
        for key, pod in zip(batch.keys, batch.objects, strict=True):
            if pod["spec"].get("resourceClaims") and (batch.type is DELETED or _is_pod_done(pod)):
                for name in claims_of(pod):
                    self.queue.add(Key(f"{namespace_of(key)}/{name}"), now)

    def reconcile(self, key: Key, obj: KubeObject, now: Instant) -> None:
        """Remove reservations that are no longer needed; without any, the claim is deallocated."""
        reserved = obj.get("status", {}).get("reservedFor") or []
        consumers = [
            consumer for consumer in reserved if consumer["resource"] != _PODS or self._is_needed_by(key, consumer)
        ]
        has_finalizer = _FINALIZER in (obj["metadata"].get("finalizers") or ())
        if len(consumers) < len(reserved) or (has_finalizer and is_being_deleted(obj) and not consumers):
            status = {**obj.get("status", {}), "reservedFor": consumers}
            if has_finalizer and not consumers:
                status["allocation"] = None
            obj = self.write_status(obj, {field: value for field, value in status.items() if value}, now)
            if has_finalizer and not is_allocated(obj):
                self.client.update(DEVICE_CLAIM, without_finalizer(obj, _FINALIZER), now)
        if not consumers and self._is_unneeded(key, obj):
            with ignore_not_found():
                self.client.delete(DEVICE_CLAIM, key, now)

    def _is_unneeded(self, key: Key, claim: KubeObject) -> bool:
        """Return whether the claim's owner is a finished pod. A deleted pod's claims are garbage-collected."""
        owner = controller_of(claim)
        if owner is None or owner["kind"] != "Pod":
            return False
        return self._pod(key, owner) is not None and not self._is_needed_by(key, owner)

    def _is_needed_by(self, claim: Key, reference: KubeObject) -> bool:
        """Return whether the referenced pod still exists, with the same uid, and is not finished."""
        pod = self._pod(claim, reference)
        return pod is not None and pod["metadata"]["uid"] == reference["uid"] and not _is_pod_done(pod)

    def _pod(self, claim: Key, reference: KubeObject) -> KubeObject | None:
        return self.store.get(POD, Key(f"{namespace_of(claim)}/{reference['name']}"))


def _with_claim_names(pod: KubeObject, created: dict[str, str]) -> KubeObject:
    names = {**generated_claims(pod), **created}
    entries = [{"name": entry, **({"resourceClaimName": name} if name else {})} for entry, name in names.items()]
    return {**pod.get("status", {}), "resourceClaimStatuses": entries}


def _is_pod_done(pod: KubeObject) -> bool:
    """Return whether no container of the pod runs or will run (Kubernetes: isPodDone)."""
    return is_finished(pod) or (is_being_deleted(pod) and not node_of_pod(pod))


def _can_be_reserved(claim: KubeObject) -> bool:
    return is_allocated(claim) and len(claim["status"].get("reservedFor") or ()) < _MAX_CONSUMERS


def _name_prefix(pod: str, entry: str) -> str:
    """Return the name prefix of a generated claim; if it is too long, pod and entry are shortened in proportion."""
    prefix = f"{pod}-{entry}-"
    if len(prefix) <= _PREFIX_LENGTH:
        return prefix
    pod = pod[: len(pod) * _PREFIX_LENGTH // len(prefix)]
    return f"{pod}-{entry[: len(entry) * _PREFIX_LENGTH // len(prefix)]}"
