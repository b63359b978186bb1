"""ResourceQuotas: recalculates the usage of a namespace when objects are deleted or pods finish.

Admission only adds to the usage; this controller is the only one to reduce it.
Kubernetes: pkg/controller/resourcequota/resource_quota_controller.go.
"""

from __future__ import annotations

from collections.abc import Callable

from batkube.cluster.client import Client
from batkube.cluster.object_meta import namespace_of
from batkube.cluster.pods.accessors import is_finished
from batkube.cluster.store import Key, KubeObject
from batkube.cluster.world import World
from batkube.controllers.framework.controller import Controller
from batkube.controllers.garbage_collection.object_graph import ObjectGraph
from batkube.kernel.instants import Instant
from batkube.kernel.quantities import Quantity, parse_quantity

QUOTA = "resourcequotas"

UsageOf = Callable[[str, KubeObject, KubeObject], dict[str, Quantity]]
"""Returns an object's usage by quota name, given its kind in the store, the object and the quota."""


class ResourceQuotaController(Controller):
    """Updates the status of ResourceQuotas."""

    storage = QUOTA

    def __init__(self, world: World, client: Client, graph: ObjectGraph, usage_of: UsageOf) -> None:
        super().__init__(world, client)
        self._graph = graph
        self._usage_of = usage_of
        graph.subscribe(self._on_object_changed)

    def _on_object_changed(self, uid: str, before: KubeObject | None, after: KubeObject | None, now: Instant) -> None:
        """Recalculate when an object was deleted or a pod has finished."""
        if before is None or not self.store.entries(QUOTA):
            return
        if after is None or (after.get("kind") == "Pod" and is_finished(after) and not is_finished(before)):
            for key, _ in self.store.in_namespace(QUOTA, before["metadata"].get("namespace", "")):
                self.queue.add(key, now)

    def reconcile(self, key: Key, quota: KubeObject, now: Instant) -> None:
        """Calculate the usage of all objects in the quota's namespace."""
        hard = quota["spec"].get("hard") or {}
        used = {name: parse_quantity(0) for name in hard}
        for location in self._graph.objects_in(namespace_of(key)):
            obj = self.store.get(*location)
            if obj is not None:
                for name, amount in self._usage_of(location.storage, obj, quota).items():
                    if name in used:
                        used[name] = used[name] + amount
        self.write_status(quota, {"hard": hard, "used": {name: str(amount) for name, amount in used.items()}}, now)
