"""Namespaces that are deleted: first all they hold, then they themselves; and what every new one holds.

Kubernetes: pkg/controller/namespace/deletion, and pkg/controller/serviceaccount for the account `default`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from batkube.cluster.client import Client, Refused
from batkube.cluster.references import Condition, is_being_deleted, with_condition
from batkube.cluster.store import DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.controllers.controller import Controller
from batkube.controllers.object_graph import ObjectGraph, ObjectPlace
from batkube.controllers.pod_control import POD
from batkube.kernel.instants import Instant

NAMESPACE = "namespaces"
SERVICE_ACCOUNT = "serviceaccounts"
CONFIG_MAP = "configmaps"
_FINALIZER = "kubernetes"

#: The conditions of a namespace that goes, each with the reason and message of when there is nothing to say.
_ALL_WELL = {
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


class Namespaces(Controller):
    """Empties namespaces that were deleted."""

    storage = NAMESPACE

    def __init__(self, world: World, client: Client, graph: ObjectGraph) -> None:
        super().__init__(world, client)
        self._graph = graph
        graph.listen(self._hear_content)

    def concerns(self, namespace: KubeObject) -> bool:
        """Return whether a namespace is being deleted."""
        return is_being_deleted(namespace)

    def _hear_content(self, uid: str, before: KubeObject | None, after: KubeObject | None, now: Instant) -> None:
        """Look again when something left a namespace that waits for it."""
        if after is None and before is not None:
            key = Key(before["metadata"].get("namespace", ""))
            namespace = self.store.get(NAMESPACE, key) if key else None
            if namespace is not None and is_being_deleted(namespace):
                self.queue.add(key, now)

    def reconcile(self, key: Key, namespace: KubeObject, now: Instant) -> None:
        """Delete what a namespace holds, and let it go when it is empty."""
        if not is_being_deleted(namespace) or _FINALIZER not in namespace["spec"].get("finalizers", ()):
            return
        content = self._graph.content(key)
        pods = [place for place in content if place.storage == POD]
        # Pods go first, since what they need must be there until they have ended (OrderedNamespaceDeletion).
        failures = self._delete(pods or content, now)
        left = self._graph.content(key)
        has_pods = any(place.storage == POD for place in left)
        if pods and not has_pods:
            failures += self._delete(left, now)
            left = self._graph.content(key)
        # While there are pods the real controller does not come to say what else remains.
        namespace = self._explain(namespace, [] if has_pods else left, failures, now)
        if not left and not failures:
            finalizers = [one for one in namespace["spec"]["finalizers"] if one != _FINALIZER]
            spec = {"finalizers": finalizers} if finalizers else {}
            self.client.update(NAMESPACE, {**namespace, "spec": spec}, now, subresource="finalize")

    def _delete(self, places: Iterable[ObjectPlace], now: Instant) -> list[str]:
        """Delete what is not going already; return what could not be."""
        failures = []
        for place in places:
            obj = self.store.get(*place)
            if obj is None or is_being_deleted(obj):
                continue
            try:
                self.client.delete(*place, now, propagation="Background")
            except Refused as refusal:
                if refusal.code not in (404, 405):
                    failures.append(refusal.message)
        return failures

    def _explain(self, namespace: KubeObject, left: list[ObjectPlace], failures: list[str], now: Instant) -> KubeObject:
        troubles = self._troubles(left, failures)
        status = namespace.get("status", {})
        conditions: list[Condition] = status.get("conditions") or []
        for kind, (reason, message) in _ALL_WELL.items():
            trouble = troubles.get(kind)
            new = {"type": kind, "status": "False", "reason": reason, "message": message}
            if trouble is not None:
                new |= {"status": "True", "reason": trouble[0], "message": trouble[1]}
            conditions = with_condition(conditions, new, now)
        return self.write_status(namespace, {**status, "conditions": conditions}, now)

    def _troubles(self, left: list[ObjectPlace], failures: list[str]) -> dict[str, tuple[str, str]]:
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


class DefaultAccounts(Controller):
    """Sees that every namespace has its account `default`, without which no pod could be made there."""

    storage = NAMESPACE

    def __init__(self, world: World, client: Client) -> None:
        super().__init__(world, client)
        world.store.listen(SERVICE_ACCOUNT, self._hear_accounts)

    def _hear_accounts(self, batch: Batch, now: Instant) -> None:
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


class RootCertificates(Controller):
    """Publishes the certificate authority in every namespace, where pods expect it (rootcacertpublisher)."""

    NAME = "kube-root-ca.crt"
    storage = NAMESPACE

    def __init__(self, world: World, client: Client, authority: str) -> None:
        super().__init__(world, client)
        self._authority = authority
        world.store.listen(CONFIG_MAP, self._hear_config_maps)

    def _hear_config_maps(self, batch: Batch, now: Instant) -> None:
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
