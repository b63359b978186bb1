"""Deletion of namespaces and their contents, and the default contents of new ones.

Like the real controller, this one does not watch a namespace that still has contents, but checks it again: five seconds
after its conditions changed, or after half of the estimated time of its slowest object. A namespace can therefore exist
longer than its contents. Kubernetes: pkg/controller/namespace/deletion/namespaced_resources_deleter.go;
pkg/controller/serviceaccount/serviceaccounts_controller.go for the ServiceAccount `default`.
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
#: Delay during which other API servers may still create objects in the namespace (namespaceDeletionGracePeriod).
_DELETION_GRACE = seconds(5)
#: Estimated time until an object with finalizers is deleted (Kubernetes: finalizerEstimateSeconds).
_FINALIZER_ESTIMATE_S = 15
#: Maximum back-off delay of this controller's queue (Kubernetes: namespace_controller.go, nsControllerRateLimiter).
_MAX_RETRY_DELAY = seconds(60)

#: The conditions of a terminating namespace, with reason and message for the status False.
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
    """Objects that remain after a deletion, errors, and the estimated time until they are gone."""

    locations: list[ObjectLocation] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    #: Estimated time until the slowest of them is gone.
    estimate_s: int = 0


class NamespaceController(Controller):
    """Deletes the contents of terminating namespaces."""

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
        """Delete the contents of a namespace, and finalize it once it is empty; check again later if it is not."""
        # A new namespace with the same name may exist by now.
        if not is_being_deleted(namespace) or _FINALIZER not in namespace["spec"].get("finalizers", ()):
            return
        remaining = _Remaining()
        # Pods first: other objects must exist until their pods have ended (Kubernetes: OrderedNamespaceDeletion).
        pods = self._objects_by_storage(key).get(POD, [])
        self._delete_all(pods, self._termination_estimate_s(pods, namespace, now), remaining, now)
        has_pods = bool(remaining.locations)
        if not has_pods:
            for kind, locations in self._objects_by_storage(key).items():
                if kind != POD:
                    self._delete_all(locations, 0, remaining, now)
        # Like the real controller, do not report remaining contents while pods exist.
        namespace = self._update_conditions(namespace, [] if has_pods else remaining.locations, remaining.failures, now)
        if remaining.failures:
            raise ApiError(500, "InternalError", f"deletion of namespace {key} failed: {', '.join(remaining.failures)}")
        if remaining.estimate_s:
            self.queue.add_after(key, now, bounded_seconds(remaining.estimate_s // 2 + 1))
            return
        finalizers = [finalizer for finalizer in namespace["spec"]["finalizers"] if finalizer != _FINALIZER]
        spec = {"finalizers": finalizers} if finalizers else {}
        self.client.update(NAMESPACE, {**namespace, "spec": spec}, now, subresource="finalize")

    def _objects_by_storage(self, key: Key) -> dict[str, list[ObjectLocation]]:
        """Return the contents of a namespace, by kind."""
        kinds: dict[str, list[ObjectLocation]] = {}
        for location in self._graph.objects_in(key):
            kinds.setdefault(location.storage, []).append(location)
        return kinds

    def _termination_estimate_s(self, pods: Iterable[ObjectLocation], namespace: KubeObject, now: Instant) -> int:
        """Return the longest remaining grace period of the pods; 0 once it has passed (estimateGracefulTermination)."""
        running = [pod for pod in self._existing(pods).values() if not is_finished(pod)]
        longest_s = max((pod["spec"].get("terminationGracePeriodSeconds", 0) for pod in running), default=0)
        since = instant_of(namespace["metadata"]["deletionTimestamp"])
        return longest_s if now - since < bounded_seconds(longest_s) else 0

    def _existing(self, locations: Iterable[ObjectLocation]) -> dict[ObjectLocation, KubeObject]:
        """Return the objects that still exist."""
        return {location: obj for location in locations if (obj := self.store.get(*location)) is not None}

    def _delete_all(
        self, locations: list[ObjectLocation], estimate_s: int, remaining: _Remaining, now: Instant
    ) -> None:
        """Delete all objects of a kind, and record those that remain (deleteAllContentForGroupVersionResource)."""
        if failure := self._delete(locations, now):
            remaining.failures.append(failure)
            return
        existing = self._existing(locations)
        if not existing:
            return
        remaining.locations += existing
        if not estimate_s and any(obj["metadata"].get("finalizers") for obj in existing.values()):
            estimate_s = _FINALIZER_ESTIMATE_S
        if not estimate_s:
            (kind, key), obj = next(iter(existing.items()))
            namespace, version = namespace_of(key), obj["apiVersion"]
            group = f"{'' if '/' in version else '/'}{version}, Resource={kind.partition('.')[0]}"
            remaining.failures.append(f"unexpected items still remain in namespace: {namespace} for gvr: {group}")
        remaining.estimate_s = max(remaining.estimate_s, estimate_s)

    def _delete(self, locations: Iterable[ObjectLocation], now: Instant) -> str:
        """Delete objects by name, up to the first error; return its message or "". Terminating ones are skipped."""
        for location in sorted(locations):
            obj = self.store.get(*location)
            if obj is None or is_being_deleted(obj):
                continue
            try:
                self.client.delete(*location, now, propagation="Background")
            except ApiError as error:
                if error.code not in (404, 405):
                    return error.message
        return ""

    def _update_conditions(
        self, namespace: KubeObject, remaining: list[ObjectLocation], failures: list[str], now: Instant
    ) -> KubeObject:
        problems = self._failed_conditions(remaining, failures)
        status = namespace.get("status", {})
        conditions: list[Condition] = status.get("conditions") or []
        for kind, (reason, message) in _DEFAULT_CONDITIONS.items():
            problem = problems.get(kind)
            new = {"type": kind, "status": "False", "reason": reason, "message": message}
            if problem is not None:
                new |= {"status": "True", "reason": problem[0], "message": problem[1]}
            conditions = with_condition(conditions, new, now)
        return self.write_status(namespace, {**status, "conditions": conditions}, now)

    def _failed_conditions(self, remaining: list[ObjectLocation], failures: list[str]) -> dict[str, tuple[str, str]]:
        problems = {}
        if failures:
            message = f"Failed to delete all resource types, {len(failures)} remaining: {', '.join(sorted(failures))}"
            problems["NamespaceDeletionContentFailure"] = "ContentDeletionFailed", message
        if remaining:
            kinds = Counter(
                location.storage if "." in location.storage else f"{location.storage}." for location in remaining
            )
            summary = ", ".join(sorted(f"{kind} has {count} resource instances" for kind, count in kinds.items()))
            problems["NamespaceContentRemaining"] = "SomeResourcesRemain", f"Some resources are remaining: {summary}"
        finalizers = Counter(
            finalizer
            for location in remaining
            for finalizer in (self.store.get(*location) or {"metadata": {}})["metadata"].get("finalizers", ())
        )
        if finalizers:
            summary = ", ".join(sorted(f"{name} in {count} resource instances" for name, count in finalizers.items()))
            message = f"Some content in the namespace has finalizers remaining: {summary}"
            problems["NamespaceFinalizersRemaining"] = "SomeFinalizersRemain", message
        return problems


class ServiceAccountController(Controller):
    """Creates the ServiceAccount `default` in each namespace; pods cannot be created without it."""

    storage = NAMESPACE

    def __init__(self, world: World, client: Client) -> None:
        super().__init__(world, client)
        world.store.subscribe(SERVICE_ACCOUNT, self._on_accounts_changed)

    def _on_accounts_changed(self, batch: Batch, now: Instant) -> None:
        if batch.type is DELETED:
            for key in batch.keys:
                self.queue.add(Key(key.partition("/")[0]), now)

    def reconcile(self, key: Key, namespace: KubeObject, now: Instant) -> None:
        """Create the account if it is missing."""
        if not is_being_deleted(namespace) and self.store.get(SERVICE_ACCOUNT, Key(f"{key}/default")) is None:
            account = {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": "default", "namespace": str(key)},
            }
            self.client.create(SERVICE_ACCOUNT, account, now)


class RootCertificatePublisher(Controller):
    """Publishes the CA certificate in each namespace (pkg/controller/certificates/rootcacertpublisher)."""

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
        """Create or correct the ConfigMap with the CA certificate."""
        if is_being_deleted(namespace):
            return
        existing = self.store.get(CONFIG_MAP, Key(f"{key}/{self.NAME}"))
        data = {"ca.crt": self._authority}
        if existing is None:
            config_map = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": self.NAME, "namespace": str(key)},
                "data": data,
            }
            self.client.create(CONFIG_MAP, config_map, now)
        elif existing.get("data") != data:
            self.client.update(CONFIG_MAP, {**existing, "data": data}, now)
