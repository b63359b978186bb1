"""Namespaces that are deleted: first all they hold, then they themselves; and what every new one holds.

A namespace that is not empty yet is not watched but looked at again, as by the real controller: five seconds after its
conditions have changed, or after half of what the slowest of its objects may take. So it can outlive them by a while.
Kubernetes: pkg/controller/namespace, and pkg/controller/serviceaccount for the account `default`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from batkube.cluster.client import ApiError, Client
from batkube.cluster.object_meta import Condition, is_being_deleted, namespace_of, with_condition
from batkube.cluster.pods.accessors import is_finished
from batkube.cluster.store import DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.controllers.framework.controller import Controller
from batkube.controllers.framework.pod_control import POD
from batkube.controllers.garbage_collection.object_graph import ObjectGraph, ObjectLocation
from batkube.kernel.instants import Instant, bounded_seconds, instant_of, seconds

NAMESPACE = "namespaces"
SERVICE_ACCOUNT = "serviceaccounts"
CONFIG_MAP = "configmaps"
_FINALIZER = "kubernetes"
#: Other servers may not have heard yet that nothing more may be made in the namespace (namespaceDeletionGracePeriod).
_DELETION_GRACE = seconds(5)
#: How long whoever has a finalizer on an object is given (finalizerEstimateSeconds).
_FINALIZER_ESTIMATE_S = 15
#: The real one's queue tries more often than others (nsControllerRateLimiter).
_MAX_RETRY_DELAY = seconds(60)

#: The conditions of a namespace that goes, each with the reason and message of when there is nothing to say.
_DEFAULT_CONDITIONS = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


@dataclass(slots=True)
class _Remaining:
    """What a namespace still holds after all in it was deleted, and what went wrong with that."""

    locations: list[ObjectLocation] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    #: How long the slowest of it may take to go.
    estimate_s: int = 0


class NamespaceController(Controller):
    """Empties namespaces that were deleted."""

    storage = NAMESPACE
    delay = _DELETION_GRACE

    def __init__(self, world: World, client: Client, graph: ObjectGraph) -> None:
        super().__init__(world, client)
        self.queue.max_retry_delay = _MAX_RETRY_DELAY
        self._graph = graph

    def should_reconcile(self, obj: KubeObject) -> bool:
        """Return whether a namespace is being deleted."""
        return is_being_deleted(obj)

    def reconcile(self, key: Key, namespace: KubeObject, now: Instant) -> None:
        """Delete what a namespace holds, and let it go when it is empty; what goes slowly is waited for."""
        # Another one of the name may be there by now, which is to stay.
        if not is_being_deleted(namespace) or _FINALIZER not in namespace["spec"].get("finalizers", ()):
            return
        remains = _Remaining()
        # Pods go first, since what they need must be there until they have ended (OrderedNamespaceDeletion).
        pods = self._objects_by_storage(key).get(POD, [])
        self._delete_all(pods, self._termination_estimate_s(pods, namespace, now), remains, now)
        has_pods = bool(remains.locations)
        if not has_pods:
            for kind, places in self._objects_by_storage(key).items():
                if kind != POD:
                    self._delete_all(places, 0, remains, now)
        # While there are pods the real controller does not come to say what remains.
        namespace = self._update_conditions(namespace, [] if has_pods else remains.locations, remains.failures, now)
        if remains.failures:
            raise ApiError(500, "InternalError", f"deletion of namespace {key} failed: {', '.join(remains.failures)}")
        if remains.estimate_s:
            self.queue.add_after(key, now, bounded_seconds(remains.estimate_s // 2 + 1))
            return
        finalizers = [one for one in namespace["spec"]["finalizers"] if one != _FINALIZER]
        spec = {"finalizers": finalizers} if finalizers else {}
        self.client.update(NAMESPACE, {**namespace, "spec": spec}, now, subresource="finalize")

    def _objects_by_storage(self, key: Key) -> dict[str, list[ObjectLocation]]:
        """Return what a namespace holds, by kind."""
        kinds: dict[str, list[ObjectLocation]] = {}
        for place in self._graph.objects_in(key):
            kinds.setdefault(place.storage, []).append(place)
        return kinds

    def _termination_estimate_s(self, pods: Iterable[ObjectLocation], namespace: KubeObject, now: Instant) -> int:
        """Return how long the slowest pod may take to end; 0 when that time is over (estimateGracefulTermination)."""
        running = [pod for pod in self._existing(pods).values() if not is_finished(pod)]
        longest_s = max((pod["spec"].get("terminationGracePeriodSeconds", 0) for pod in running), default=0)
        since = instant_of(namespace["metadata"]["deletionTimestamp"])
        return longest_s if now - since < bounded_seconds(longest_s) else 0

    def _existing(self, places: Iterable[ObjectLocation]) -> dict[ObjectLocation, KubeObject]:
        """Return those of some objects that are not gone."""
        return {place: obj for place in places if (obj := self.store.get(*place)) is not None}

    def _delete_all(self, places: list[ObjectLocation], patience_s: int, remains: _Remaining, now: Instant) -> None:
        """Delete all objects of a kind, and take note of what remains (deleteAllContentForGroupVersionResource)."""
        if failure := self._delete(places, now):
            remains.failures.append(failure)
            return
        left = self._existing(places)
        if not left:
            return
        remains.locations += left
        if not patience_s and any(obj["metadata"].get("finalizers") for obj in left.values()):
            patience_s = _FINALIZER_ESTIMATE_S
        if not patience_s:
            (kind, key), obj = next(iter(left.items()))
            namespace, version = namespace_of(key), obj["apiVersion"]
            group = f"{'' if '/' in version else '/'}{version}, Resource={kind.partition('.')[0]}"
            remains.failures.append(f"unexpected items still remain in namespace: {namespace} for gvr: {group}")
        remains.estimate_s = max(remains.estimate_s, patience_s)

    def _delete(self, places: Iterable[ObjectLocation], now: Instant) -> str:
        """Delete what is not going already, by name, up to what is refused; return why that is, or ""."""
        for place in sorted(places):
            obj = self.store.get(*place)
            if obj is None or is_being_deleted(obj):
                continue
            try:
                self.client.delete(*place, now, propagation="Background")
            except ApiError as refusal:
                if refusal.code not in (404, 405):
                    return refusal.message
        return ""

    def _update_conditions(
        self, namespace: KubeObject, left: list[ObjectLocation], failures: list[str], now: Instant
    ) -> KubeObject:
        troubles = self._failed_conditions(left, failures)
        status = namespace.get("status", {})
        conditions: list[Condition] = status.get("conditions") or []
        for kind, (reason, message) in _DEFAULT_CONDITIONS.items():
            trouble = troubles.get(kind)
            new = {"type": kind, "status": "False", "reason": reason, "message": message}
            if trouble is not None:
                new |= {"status": "True", "reason": trouble[0], "message": trouble[1]}
            conditions = with_condition(conditions, new, now)
        return self.write_status(namespace, {**status, "conditions": conditions}, now)

    def _failed_conditions(self, left: list[ObjectLocation], failures: list[str]) -> dict[str, tuple[str, str]]:
        troubles = {}
        if failures:
            message = f"Failed to delete all resource types, {len(failures)} remaining: {', '.join(sorted(failures))}"
            troubles["NamespaceDeletionContentFailure"] = "ContentDeletionFailed", message
        if left:
            kinds = Counter(place.storage if "." in place.storage else f"{place.storage}." for place in left)
            listed = ", ".join(sorted(f"{kind} has {count} resource instances" for kind, count in kinds.items()))
            troubles["NamespaceContentRemaining"] = "SomeResourcesRemain", f"Some resources are remaining: {listed}"
        finalizers = Counter(
            finalizer
            for place in left
            for finalizer in (self.store.get(*place) or {"metadata": {}})["metadata"].get("finalizers", ())
        )
        if finalizers:
            listed = ", ".join(sorted(f"{name} in {count} resource instances" for name, count in finalizers.items()))
            message = f"Some content in the namespace has finalizers remaining: {listed}"
            troubles["NamespaceFinalizersRemaining"] = "SomeFinalizersRemain", message
        return troubles


class ServiceAccountController(Controller):
    """Sees that every namespace has its account `default`, without which no pod could be made there."""

    storage = NAMESPACE

    def __init__(self, world: World, client: Client) -> None:
        super().__init__(world, client)
        world.store.subscribe(SERVICE_ACCOUNT, self._on_accounts_changed)

    def _on_accounts_changed(self, batch: Batch, now: Instant) -> None:
        if batch.type is DELETED:
            for key in batch.keys:
                self.queue.add(Key(key.partition("/")[0]), now)

    def reconcile(self, key: Key, namespace: KubeObject, now: Instant) -> None:
        """Make the account if it is missing."""
        if not is_being_deleted(namespace) and self.store.get(SERVICE_ACCOUNT, Key(f"{key}/default")) is None:
            account = {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": "default", "namespace": str(key)},
            }
            self.client.create(SERVICE_ACCOUNT, account, now)


class RootCertificatePublisher(Controller):
    """Publishes the certificate authority in every namespace, where pods expect it (rootcacertpublisher)."""

    NAME = "kube-root-ca.crt"
    storage = NAMESPACE

    def __init__(self, world: World, client: Client, authority: str) -> None:
        super().__init__(world, client)
        self._authority = authority
        world.store.subscribe(CONFIG_MAP, self._on_config_maps_changed)

    def _on_config_maps_changed(self, batch: Batch, now: Instant) -> None:
        for key in batch.keys:
            namespace, _, name = key.partition("/")
            if name == self.NAME:
                self.queue.add(Key(namespace), now)

    def reconcile(self, key: Key, namespace: KubeObject, now: Instant) -> None:
        """Publish the certificate authority, or correct it."""
        if is_being_deleted(namespace):
            return
        present = self.store.get(CONFIG_MAP, Key(f"{key}/{self.NAME}"))
        data = {"ca.crt": self._authority}
        if present is None:
            made = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": self.NAME, "namespace": str(key)},
                "data": data,
            }
            self.client.create(CONFIG_MAP, made, now)
        elif present.get("data") != data:
            self.client.update(CONFIG_MAP, {**present, "data": data}, now)
