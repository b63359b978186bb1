"""Base class of controllers that own pods: an object is reconciled when it or one of its pods changes.

Orphaned pods with matching labels are adopted, and pods whose labels no longer match are released.
"""

from __future__ import annotations

from collections.abc import Sequence

from batkube.cluster.client import Client
from batkube.cluster.event_recorder import EventRecorder
from batkube.cluster.object_meta import namespace_of
from batkube.cluster.pods.accessors import time_until_available
from batkube.cluster.store import Change, Key, KubeObject
from batkube.cluster.world import World
from batkube.controllers.framework.controller import Controller
from batkube.controllers.framework.owner_index import OwnerIndex, is_newly_adoptable
from batkube.controllers.framework.pod_control import EventMessages, PodControl, owner_key, pod_selector
from batkube.kernel.instants import Instant


class PodOwnerController(Controller):
    """Reconciles objects of one kind and their pods."""

    #: The API group of the kind.
    group = "apps"
    #: The kind as in owner references.
    kind: str
    event_messages = EventMessages()

    def __init__(self, world: World, client: Client, events: EventRecorder, pods: OwnerIndex) -> None:
        super().__init__(world, client, events)
        self.pods = pods
        self.pod_control = PodControl(world.agenda, client, events, self.storage, self.event_messages)
        pods.subscribe(self._on_pod_changed)

    def _on_pod_changed(self, controller: KubeObject | None, change: Change, now: Instant) -> None:
        if controller is None:
            if is_newly_adoptable(change):
                for key in self._possible_adopters(namespace_of(change.key), change.object):
                    self.queue.add(key, now)
        elif (owner := owner_key(controller, self.group, self.kind, change.key)) is not None:
            self.queue.add(owner, now)

    def _possible_adopters(self, namespace: str, pod: KubeObject) -> list[Key]:
        """Return the objects that may adopt an orphaned pod."""
        labels = pod["metadata"].get("labels")
        if not labels:
            return []
        owners = self.store.in_namespace(self.storage, namespace)
        return [key for key, owner in owners if pod_selector(owner).matches(labels)]

    def requeue_when_available(self, key: Key, owner: KubeObject, pods: Sequence[KubeObject], now: Instant) -> None:
        """Reconcile again when the next ready pod becomes available (minReadySeconds)."""
        if min_ready_s := owner["spec"].get("minReadySeconds", 0):
            waits = [wait for pod in pods if (wait := time_until_available(pod, min_ready_s, now))]
            if waits:
                self.queue.add_after(key, now, min(waits))
