"""ResourceQuotas: what the objects of a namespace use together, counted anew whenever something of it is given back.

Admission charges a quota with what is created; nobody but this controller gives back what was deleted or has ended.
Kubernetes: pkg/controller/resourcequota.
"""

from __future__ import annotations

from collections.abc import Callable

from batkube.cluster.client import Client
from batkube.cluster.pods import is_finished
from batkube.cluster.references import namespace_of
from batkube.cluster.store import DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.controllers.object_graph import ObjectGraph
from batkube.controllers.work_queue import WorkQueue
from batkube.kernel.instants import Instant
from batkube.kernel.quantities import Quantity, parse_quantity

QUOTA = "resourcequotas"

UsageOf = Callable[[str, KubeObject, KubeObject], dict[str, Quantity]]
"""Tells what an object, of a kind in the store, uses of a quota, by the names that quotas have for it."""


class Quotas:
    """Keeps the status of every quota."""

    def __init__(self, world: World, client: Client, graph: ObjectGraph, usage_of: UsageOf) -> None:
        self._store = world.store
        self._client = client
        self._graph = graph
        self._usage_of = usage_of
        self._queue = WorkQueue(world, self._reconcile)
        world.store.listen(QUOTA, self._hear)
        graph.listen(self._hear_content)

    def _hear(self, batch: Batch, now: Instant) -> None:
        if batch.type is not DELETED:
            for key in batch.keys:
                self._queue.add(key, now)

    def _hear_content(self, uid: str, before: KubeObject | None, after: KubeObject | None, now: Instant) -> None:
        """Count again when something is gone, or a pod has ended."""
        if before is None or not self._store.entries(QUOTA):
            return
        if after is None or (after.get("kind") == "Pod" and is_finished(after) and not is_finished(before)):
            prefix = f"{before['metadata'].get('namespace', '')}/"
            for key in self._store.entries(QUOTA):
                if key.startswith(prefix):
                    self._queue.add(key, now)

    def _reconcile(self, key: Key, now: Instant) -> None:
        quota = self._store.get(QUOTA, key)
        if quota is None:
            return
        hard = quota["spec"].get("hard") or {}
        used = {name: parse_quantity(0) for name in hard}
        for storage, obj_key in self._graph.content(namespace_of(key)):
            obj = self._store.get(storage, obj_key)
            if obj is not None:
                for name, amount in self._usage_of(storage, obj, quota).items():
                    if name in used:
                        used[name] = used[name] + amount
        status = {"hard": hard, "used": {name: str(amount) for name, amount in used.items()}}
        if status != quota.get("status"):
            self._client.update(QUOTA, {**quota, "status": status}, now, subresource="status")
