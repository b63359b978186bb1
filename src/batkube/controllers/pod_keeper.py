"""What every controller does that keeps pods of its own: it looks at an object when it or one of its pods has changed.

Pods without a controller whose labels match are adopted, those whose labels no longer do are released.
"""

from __future__ import annotations

from collections.abc import Callable

from batkube.cluster.client import Client
from batkube.cluster.event_recorder import EventRecorder
from batkube.cluster.references import namespace_of
from batkube.cluster.selectors import selector_of
from batkube.cluster.store import DELETED, Batch, Change, Key, KubeObject
from batkube.cluster.world import World
from batkube.controllers.controlled import Controlled, may_be_adopted_anew
from batkube.controllers.pod_control import POD, PodControl, Words, claim, owner_key_if
from batkube.controllers.work_queue import WorkQueue
from batkube.kernel.instants import Instant


class PodKeeper:
    """Looks after the objects of one kind of the group `apps`, which its kinds reconcile."""

    #: The name of the kind in the store, and in references.
    storage: str
    kind: str
    words = Words()

    def __init__(self, world: World, client: Client, events: EventRecorder, pods: Controlled) -> None:
        self.store = world.store
        self.client = client
        self.pods = pods
        self.pod_control = PodControl(client, events, self.storage, self.words)
        self.queue = WorkQueue(world, self._look)
        world.store.listen(self.storage, self._hear)
        pods.listen(self._hear_pod)

    def reconcile(self, key: Key, obj: KubeObject, now: Instant) -> None:
        """Bring what there is closer to what `obj` asks for."""
        raise NotImplementedError

    def _hear(self, batch: Batch, now: Instant) -> None:
        if batch.type is not DELETED:
            for key in batch.keys:
                self.queue.add(key, now)

    def _hear_pod(self, controller: KubeObject | None, change: Change, now: Instant) -> None:
        namespace = namespace_of(change.key)
        if controller is None:
            if may_be_adopted_anew(change):
                for key in self._matching(namespace, change.object):
                    self.queue.add(key, now)
        elif (name := owner_key_if(controller, "apps", self.kind)) is not None:
            self.queue.add(Key(f"{namespace}/{name}"), now)

    def _matching(self, namespace: str, pod: KubeObject) -> list[Key]:
        """Return the objects that would adopt a pod without controller."""
        labels = pod["metadata"].get("labels")
        if not labels:
            return []
        prefix = f"{namespace}/"
        return [
            key
            for key, (owner, _) in self.store.entries(self.storage).items()
            if key.startswith(prefix) and selector_of(owner["spec"].get("selector")).matches(labels)
        ]

    def _look(self, key: Key, now: Instant) -> None:
        obj = self.store.get(self.storage, key)
        if obj is not None:
            self.reconcile(key, obj, now)

    def claimed(
        self, owner: KubeObject, now: Instant, wanted: Callable[[KubeObject], bool] = lambda pod: True
    ) -> list[KubeObject]:
        """Return the pods that `owner` has, of those that are `wanted`."""
        metadata = owner["metadata"]
        own = [pod for pod in self.pods.of(metadata["uid"]) if wanted(pod)]
        orphans = [pod for pod in self.pods.orphans(metadata["namespace"]) if wanted(pod)]
        return claim(self.client, POD, owner, selector_of(owner["spec"].get("selector")), own, orphans, now)

    def write_status(self, owner: KubeObject, status: KubeObject, now: Instant) -> None:
        """Tell how things stand, unless that is told."""
        if status != owner.get("status"):
            self.client.update(self.storage, {**owner, "status": status}, now, subresource="status")
