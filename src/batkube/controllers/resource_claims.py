"""Claims to devices: made for pods that ask for them by template, reserved for those that run, and given back.

Which devices a claim gets, a scheduler decides (kube-scheduler: the plugin DynamicResources). The rest is done here
(Kubernetes: pkg/controller/resourceclaim), without three habits of the real controller. It makes the claim of a pod
that has ended once more, and deletes it at once. It reserves a shared claim that has devices for pods that have ended,
takes that back, and begins again. And for an hour it does not notice that somebody deleted what it made.
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
#: On a claim that has devices; kube-scheduler puts it there.
_FINALIZER = "resource.kubernetes.io/delete-protection"
#: Says for which of a pod's entries a claim was made.
_POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
#: So many pods can share a claim (Kubernetes: ResourceClaimReservedForMaxSize).
_MAX_CONSUMERS = 256
_PODS = "pods"
#: What a random name adds five characters and a hyphen to.
_PREFIX_LENGTH = 57


class ResourceClaimController(Controller):
    """Makes what pods ask for by template, and reserves claims for pods that no scheduler of claims has placed."""

    storage = POD

    def __init__(self, world: World, client: Client, events: EventRecorder, claims: OwnerIndex) -> None:
        #: The pods that name a claim; which ones a pod names never changes.
        self._sharers: dict[Key, dict[Key, None]] = {}
        super().__init__(world, client, events)
        self._claims = claims
        claims.subscribe(self._on_claim_changed)

    def on_objects_changed(self, batch: Batch, now: Instant) -> None:
        """Take note of who names which claim, and queue pods."""
        if batch.type in (ADDED, DELETED):
            for key, pod in zip(batch.keys, batch.objects, strict=True):
                for entry in pod["spec"].get("resourceClaims") or ():
                    if "resourceClaimName" in entry:
                        self._update_sharers(
                            Key(f"{namespace_of(key)}/{entry['resourceClaimName']}"), key, batch.type is ADDED
                        )
        super().on_objects_changed(batch, now)

    def _update_sharers(self, claim: Key, pod: Key, is_there: bool) -> None:
        sharers = self._sharers.setdefault(claim, {})
        if is_there:
            sharers[pod] = None
        else:
            sharers.pop(pod, None)
        if not sharers:
            del self._sharers[claim]

    def should_reconcile(self, obj: KubeObject) -> bool:
        """Return whether the pod asks for devices and is to run."""
        return bool(obj["spec"].get("resourceClaims")) and is_active(obj)

    def _on_claim_changed(self, controller: KubeObject | None, change: Change, now: Instant) -> None:
        """Look at the pod that a claim was made for, or at those that share one which has devices by now."""
        if controller is not None:
            self.queue.add(Key(f"{namespace_of(change.key)}/{controller['name']}"), now)
        if change.type is not DELETED and _can_be_reserved(change.object):
            for key in self._sharers.get(change.key, ()):
                if (pod := self.store.get(POD, key)) is not None and node_of_pod(pod):
                    self.queue.add(key, now)

    def reconcile(self, key: Key, obj: KubeObject, now: Instant) -> None:
        """Make the claims that are missing, tell the pod their names, and reserve what it has."""
        if not self.should_reconcile(obj):
            return
        made = {}
        for entry in obj["spec"]["resourceClaims"]:
            if "resourceClaimTemplateName" in entry and not self._has_claim(obj, entry["name"]):
                try:
                    made[entry["name"]] = self._get_or_create_claim(obj, entry, now)["metadata"]["name"]
                except ApiError as refusal:
                    message = f"PodResourceClaim {entry['name']}: {refusal.message}"
                    self.record_event(obj, "Warning", "FailedResourceClaimCreation", message, now)
                    raise
        if made:
            obj = self.write_status(obj, _with_claim_names(obj, made), now)
        if node_of_pod(obj):
            self._reserve(obj, now)

    def _has_claim(self, pod: KubeObject, entry: str) -> bool:
        name = generated_claims(pod).get(entry)
        claim = self._get(pod, name) if name else None
        return name == "" or (claim is not None and is_controlled_by(claim, pod))

    def _get(self, pod: KubeObject, name: str) -> KubeObject | None:
        return self.store.get(DEVICE_CLAIM, Key(f"{pod['metadata']['namespace']}/{name}"))

    def _get_or_create_claim(self, pod: KubeObject, entry: KubeObject, now: Instant) -> KubeObject:
        """Return the claim that was made for an entry, or make it; somebody may have erased its name from the pod."""
        metadata, name = pod["metadata"], entry["name"]
        for claim in self._claims.owned_by(metadata["uid"]):
            if annotations_of(claim).get(_POD_CLAIM_NAME) == name:
                return claim
        template_name = entry["resourceClaimTemplateName"]
        template = self.store.get(_TEMPLATE, Key(f"{metadata['namespace']}/{template_name}"))
        if template is None:
            problem = f'resourceclaimtemplate.resource.k8s.io "{template_name}" not found'
            raise ApiError(404, "NotFound", f'resource claim template "{template_name}": {problem}')
        wanted = template["spec"].get("metadata") or {}
        made = {
            "generateName": _name_prefix(metadata["name"], name),
            "namespace": metadata["namespace"],
            **({"labels": wanted["labels"]} if wanted.get("labels") else {}),
            "annotations": {**(wanted.get("annotations") or {}), _POD_CLAIM_NAME: name},
            "ownerReferences": [controller_reference(pod)],
        }
        claim = {"apiVersion": template["apiVersion"], "kind": "ResourceClaim", "metadata": made}
        with prefix_errors("create ResourceClaim "):
            return self.client.create(DEVICE_CLAIM, {**claim, "spec": template["spec"]["spec"]}, now)

    def _reserve(self, pod: KubeObject, now: Instant) -> None:
        consumer = {"resource": _PODS, "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        for name in claims_of(pod):
            claim = self._get(pod, name)
            if claim is not None and _can_be_reserved(claim):
                status = claim["status"]
                consumers = status.get("reservedFor") or []
                if all(one["uid"] != consumer["uid"] for one in consumers):
                    reserved = {**status, "reservedFor": [*consumers, consumer]}
                    self.client.update(DEVICE_CLAIM, {**claim, "status": reserved}, now, subresource="status")


class ClaimReservationController(Controller):
    """Takes devices from pods that need them no more, and deletes what was made for such a pod."""

    storage = DEVICE_CLAIM

    def __init__(self, world: World, client: Client) -> None:
        super().__init__(world, client)
        world.store.subscribe(POD, self._on_pods_changed)

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        """Look at the claims of pods that went, or will not run any more."""
        for key, pod in zip(batch.keys, batch.objects, strict=True):
            if pod["spec"].get("resourceClaims") and (batch.type is DELETED or _is_pod_done(pod)):
                for name in claims_of(pod):
                    self.queue.add(Key(f"{namespace_of(key)}/{name}"), now)

    def reconcile(self, key: Key, obj: KubeObject, now: Instant) -> None:
        """See who still needs the claim; the last one to go leaves its devices to others."""
        before = obj.get("status", {}).get("reservedFor") or []
        consumers = [one for one in before if one["resource"] != _PODS or self._is_needed_by(key, one)]
        has_finalizer = _FINALIZER in (obj["metadata"].get("finalizers") or ())
        if len(consumers) < len(before) or (has_finalizer and is_being_deleted(obj) and not consumers):
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
        """Return whether the pod that a claim was made for will not run; one that is gone takes its claims along."""
        owner = controller_of(claim)
        if owner is None or owner["kind"] != "Pod":
            return False
        return self._pod(key, owner) is not None and not self._is_needed_by(key, owner)

    def _is_needed_by(self, claim: Key, reference: KubeObject) -> bool:
        """Return whether a pod that somebody refers to is there, the same one, and may run."""
        pod = self._pod(claim, reference)
        return pod is not None and pod["metadata"]["uid"] == reference["uid"] and not _is_pod_done(pod)

    def _pod(self, claim: Key, reference: KubeObject) -> KubeObject | None:
        return self.store.get(POD, Key(f"{namespace_of(claim)}/{reference['name']}"))


def _with_claim_names(pod: KubeObject, made: dict[str, str]) -> KubeObject:
    names = {**generated_claims(pod), **made}
    entries = [{"name": entry, **({"resourceClaimName": name} if name else {})} for entry, name in names.items()]
    return {**pod.get("status", {}), "resourceClaimStatuses": entries}


def _is_pod_done(pod: KubeObject) -> bool:
    """Return whether no container of the pod runs or ever will (Kubernetes: isPodDone)."""
    return is_finished(pod) or (is_being_deleted(pod) and not node_of_pod(pod))


def _can_be_reserved(claim: KubeObject) -> bool:
    return is_allocated(claim) and len(claim["status"].get("reservedFor") or ()) < _MAX_CONSUMERS


def _name_prefix(pod: str, entry: str) -> str:
    """Return the beginning of a claim's name; of long names both parts are cut, as much as they are long."""
    whole = f"{pod}-{entry}-"
    if len(whole) <= _PREFIX_LENGTH:
        return whole
    pod = pod[: len(pod) * _PREFIX_LENGTH // len(whole)]
    return f"{pod}-{entry[: len(entry) * _PREFIX_LENGTH // len(whole)]}"
