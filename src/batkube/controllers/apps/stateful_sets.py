"""StatefulSets: pods with stable names, created in order, and deleted and updated in reverse order.

Kubernetes: pkg/controller/statefulset/stateful_set_control.go and stateful_set_utils.go.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from batkube.cluster.client import ApiError, Client
from batkube.cluster.event_recorder import EventRecorder
from batkube.cluster.object_meta import is_being_deleted
from batkube.cluster.pods.accessors import is_finished, is_ready, phase_of, time_until_available
from batkube.cluster.store import Key, KubeObject
from batkube.cluster.world import World
from batkube.controllers.apps.claim_retention import ClaimRetention
from batkube.controllers.apps.revisions import REVISION_LABEL, ControllerRevisions, template_of
from batkube.controllers.framework.owner_index import OwnerIndex
from batkube.controllers.framework.pod_control import EventMessages, claim_objects
from batkube.controllers.framework.pod_owner_controller import PodOwnerController
from batkube.controllers.volumes.matching import CLAIM
from batkube.kernel.instants import Instant

STATEFUL_SET = "statefulsets.apps"


class StatefulSetController(PodOwnerController):
    """Creates, deletes and updates the pods of StatefulSets."""

    storage, kind = STATEFUL_SET, "StatefulSet"
    event_messages = EventMessages(
        "create Pod {pod} in StatefulSet {owner} successful",
        "create Pod {pod} in StatefulSet {owner} failed error: {problem}",
        "delete Pod {pod} in StatefulSet {owner} successful",
        "delete Pod {pod} in StatefulSet {owner} failed error: {problem}",
    )

    def __init__(
        self, world: World, client: Client, events: EventRecorder, pods: OwnerIndex, revisions: ControllerRevisions
    ) -> None:
        super().__init__(world, client, events, pods)
        self._revisions = revisions
        self._claims = ClaimRetention(self.store, client)

    def reconcile(self, key: Key, owner: KubeObject, now: Instant) -> None:
        """Create, delete or update the next pod; with podManagementPolicy Parallel, all pods."""
        update = self._revisions.get_or_create(owner, now)
        current_name = owner.get("status", {}).get("currentRevision")
        by_name = {revision["metadata"]["name"]: revision for revision in self._revisions.owned_by(owner)}
        current = by_name.get(current_name, update)
        claim_objects(self.client, self.pods, owner, now)
        if not is_being_deleted(owner):
            self._manage_pods(owner, current, update, now)
        pods = self.pods.owned_by(owner["metadata"]["uid"])
        self.write_status(owner, _status(owner, pods, current, update, now), now)
        names_in_use = {pod["metadata"].get("labels", {}).get(REVISION_LABEL, "") for pod in pods}
        self._revisions.delete_old(owner, names_in_use | {_name(current), _name(update)}, now)
        self.requeue_when_available(key, owner, pods, now)

    def _manage_pods(self, owner: KubeObject, current: KubeObject, update: KubeObject, now: Instant) -> None:
        """Create, delete and update pods as far as allowed now, in the order of Kubernetes' updateStatefulSet."""
        spec = owner["spec"]
        is_ordered = spec.get("podManagementPolicy", "OrderedReady") == "OrderedReady"
        first = (spec.get("ordinals") or {}).get("start", 0)
        desired = range(first, first + spec.get("replicas", 1))
        pods = self._by_ordinal(owner)
        for ordinal, existing in pods.items():
            self._claims.update_owners(owner, existing, is_desired=ordinal in desired, now=now)
        for ordinal in desired:
            pod = pods.get(ordinal)
            if pod is None:
                self._create(owner, ordinal, current if ordinal < first + _partition(spec) else update, now)
            elif is_finished(pod) and not is_being_deleted(pod):
                self.pod_control.delete(owner, pod, now)
            if is_ordered and (pod is None or not _is_available(owner, pod, now)):
                return
        if self._scale_down(owner, pods, desired, is_ordered, now):
            return
        if (spec.get("updateStrategy") or {}).get("type", "RollingUpdate") == "RollingUpdate":
            updatable = reversed(desired[_partition(spec) :])
            self._rolling_update(owner, [pods[ordinal] for ordinal in updatable if ordinal in pods], update, now)

    def _scale_down(
        self, owner: KubeObject, pods: Mapping[int, KubeObject], desired: range, is_ordered: bool, now: Instant
    ) -> bool:
        """Delete pods beyond the set's size, last one first; return whether updates must wait."""
        unhealthy = [ordinal for ordinal in sorted(pods) if not _is_healthy(pods[ordinal])]
        for ordinal in sorted(pods, reverse=True):
            if ordinal in desired:
                continue
            # Kubernetes: processCondemned. Of the unavailable pods, only the first unhealthy one may be deleted.
            must_wait = not _is_available(owner, pods[ordinal], now) and unhealthy[:1] != [ordinal]
            if not is_being_deleted(pods[ordinal]) and not (is_ordered and must_wait):
                self.pod_control.delete(owner, pods[ordinal], now)
            if is_ordered:
                return True
        return False

    def _rolling_update(self, owner: KubeObject, pods: list[KubeObject], update: KubeObject, now: Instant) -> None:
        """Delete the last pod with an old template, unless a later pod is not available yet; it is then recreated.

        Kubernetes: stateful_set_control.go, updateStatefulSet.
        """
        for pod in pods:
            if pod["metadata"]["labels"].get(REVISION_LABEL) != _name(update) and not is_being_deleted(pod):
                self.pod_control.delete(owner, pod, now)
                return
            if not _is_available(owner, pod, now):
                return

    def _by_ordinal(self, owner: KubeObject) -> Mapping[int, KubeObject]:
        prefix = f"{owner['metadata']['name']}-"
        names = {pod["metadata"]["name"]: pod for pod in self.pods.owned_by(owner["metadata"]["uid"])}
        ordinals = {name.removeprefix(prefix): pod for name, pod in names.items() if name.startswith(prefix)}
        return {int(text): pod for text, pod in ordinals.items() if text.isdecimal()}

    def _create(self, owner: KubeObject, ordinal: int, revision: KubeObject, now: Instant) -> None:
        template, name = template_of(revision), f"{owner['metadata']['name']}-{ordinal}"
        metadata, claims = template.get("metadata") or {}, owner["spec"].get("volumeClaimTemplates") or ()
        labels = {
            **(metadata.get("labels") or {}),
            "statefulset.kubernetes.io/pod-name": name,
            "apps.kubernetes.io/pod-index": str(ordinal),
            REVISION_LABEL: _name(revision),
        }
        spec = {**template["spec"], "hostname": name, "subdomain": owner["spec"].get("serviceName", "")}
        for claim in claims:
            self._create_claim(owner, claim, name, now)
        if claims:
            spec["volumes"] = [*(_volume(claim, name) for claim in claims), *(template["spec"].get("volumes") or ())]
        template = {"metadata": {**metadata, "labels": labels}, "spec": spec}
        pod = self.pod_control.create(owner, template, now, name=name)
        self._claims.update_owners(owner, pod, is_desired=True, now=now)

    def _create_claim(self, owner: KubeObject, claim: KubeObject, pod_name: str, now: Instant) -> None:
        """Create a claim for the pod's data, unless its predecessor has left one.

        Kubernetes: createPersistentVolumeClaims.
        """
        namespace, metadata = owner["metadata"]["namespace"], claim["metadata"]
        name = f"{metadata['name']}-{pod_name}"
        if self.store.get(CLAIM, Key(f"{namespace}/{name}")) is None:
            labels = {**(metadata.get("labels") or {}), **(owner["spec"]["selector"].get("matchLabels") or {})}
            claim_metadata = {"name": name, "namespace": namespace, "labels": labels}
            with contextlib.suppress(ApiError):
                self.client.create(
                    CLAIM,
                    {
                        "apiVersion": "v1",
                        "kind": "PersistentVolumeClaim",
                        "metadata": claim_metadata,
                        "spec": claim["spec"],
                    },
                    now,
                )


def _volume(claim: KubeObject, pod_name: str) -> KubeObject:
    name = claim["metadata"]["name"]
    return {"name": name, "persistentVolumeClaim": {"claimName": f"{name}-{pod_name}"}}


def _name(revision: KubeObject) -> str:
    name: str = revision["metadata"]["name"]
    return name


def _partition(spec: KubeObject) -> int:
    """Return how many of the first pods keep the old template."""
    strategy = spec.get("updateStrategy") or {}
    partition: int = (strategy.get("rollingUpdate") or {}).get("partition", 0)
    return partition if strategy.get("type", "RollingUpdate") == "RollingUpdate" else 0


def _min_ready_s(owner: KubeObject) -> int:
    seconds: int = owner["spec"].get("minReadySeconds", 0)
    return seconds


def _is_healthy(pod: KubeObject) -> bool:
    # Kubernetes: stateful_set_utils.go, isRunningAndReady and isTerminating.
    return phase_of(pod) == "Running" and is_ready(pod) and not is_being_deleted(pod)


def _is_available(owner: KubeObject, pod: KubeObject, now: Instant) -> bool:
    return _is_healthy(pod) and time_until_available(pod, _min_ready_s(owner), now) == 0


def _status(
    owner: KubeObject, pods: list[KubeObject], current: KubeObject, update: KubeObject, now: Instant
) -> KubeObject:
    revisions = [pod["metadata"].get("labels", {}).get(REVISION_LABEL) for pod in pods if not is_being_deleted(pod)]
    ready = [pod for pod in pods if phase_of(pod) == "Running" and is_ready(pod)]
    counts = {
        "readyReplicas": len(ready),
        "currentReplicas": revisions.count(_name(current)),
        "updatedReplicas": revisions.count(_name(update)),
    }
    if counts["updatedReplicas"] == len(pods) == len(ready) and not _partition(owner["spec"]):
        # Every pod has the new template, so the update revision becomes the current one.
        counts["currentReplicas"], current = counts["updatedReplicas"], update
    return {
        "observedGeneration": owner["metadata"].get("generation", 0),
        "replicas": len(pods),
        **{name: count for name, count in counts.items() if count},
        "currentRevision": _name(current),
        "updateRevision": _name(update),
        "collisionCount": owner.get("status", {}).get("collisionCount", 0),
        "availableReplicas": sum(time_until_available(pod, _min_ready_s(owner), now) == 0 for pod in ready),
    }
