"""PodDisruptionBudgets: how many of the protected pods may be evicted.

Kubernetes: pkg/controller/disruption/disruption.go. The eviction subresource checks and decrements the number; this
controller recalculates it from the pods.
"""

from __future__ import annotations

from collections.abc import Sequence

from batkube.cluster.client import Client
from batkube.cluster.event_recorder import EventRecorder
from batkube.cluster.object_meta import Condition, controller_of, is_being_deleted, namespace_of, with_condition
from batkube.cluster.pods.accessors import is_ready
from batkube.cluster.selectors import selector_of
from batkube.cluster.store import Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.controllers.framework.controller import Controller
from batkube.controllers.framework.int_or_percent import scaled_value
from batkube.kernel.instants import Duration, Instant, instant_of, seconds

BUDGET, POD = "poddisruptionbudgets.policy", "pods"
#: After this time an evicted pod that still exists counts as healthy again (Kubernetes: DeletionTimeout).
_DELETION_TIMEOUT: Duration = seconds(120)
#: Kinds with a scale, by the kind in an owner reference.
_SCALABLE_KINDS = {
    "ReplicaSet": "replicasets.apps",
    "StatefulSet": "statefulsets.apps",
    "Deployment": "deployments.apps",
    "ReplicationController": "replicationcontrollers",
}


class DisruptionController(Controller):
    """Updates the status of PodDisruptionBudgets."""

    storage = BUDGET

    def __init__(self, world: World, client: Client, events: EventRecorder) -> None:
        super().__init__(world, client, events)
        world.store.subscribe(POD, self._on_pods_changed)

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        if not self.store.entries(BUDGET):
            return
        for change in batch.changes():
            for key, budget in self.store.in_namespace(BUDGET, namespace_of(change.key)):
                if _selects(budget, change.object):
                    self.queue.add(key, now)

    def reconcile(self, key: Key, budget: KubeObject, now: Instant) -> None:
        """Count the selected pods, and how many of them may be disrupted."""
        pods = [pod for _, pod in self.store.in_namespace(POD, namespace_of(key)) if _selects(budget, pod)]
        if not pods:
            self.record_event(budget, "Normal", "NoPods", "No matching pods found", now)
        disrupted = self._disrupted_pods(budget, pods, now)
        expected, desired = self._expected_and_desired(budget, pods)
        healthy = sum(
            is_ready(pod) and not is_being_deleted(pod) and pod["metadata"]["name"] not in disrupted for pod in pods
        )
        allowed = max(0, healthy - desired) if expected > 0 else 0
        self.write_status(budget, _status(budget, (healthy, desired, expected, allowed), disrupted, now), now)
        if disrupted:
            self.queue.add_after(key, now, _DELETION_TIMEOUT)

    def _disrupted_pods(self, budget: KubeObject, pods: Sequence[KubeObject], now: Instant) -> dict[str, str]:
        """Return the evicted pods that will soon be deleted, and when each was evicted.

        Kubernetes: buildDisruptedPodMap.
        """
        eviction_times: dict[str, str] = budget.get("status", {}).get("disruptedPods") or {}
        existing = {pod["metadata"]["name"] for pod in pods if not is_being_deleted(pod)}
        return {
            name: at
            for name, at in eviction_times.items()
            if name in existing and instant_of(at) + _DELETION_TIMEOUT > now
        }

    def _expected_and_desired(self, budget: KubeObject, pods: Sequence[KubeObject]) -> tuple[int, int]:
        """Return how many pods are expected, and how many of them must be healthy (Kubernetes: getExpectedPodCount)."""
        spec = budget["spec"]
        min_available = spec.get("minAvailable")
        if "maxUnavailable" in spec:
            count = self._expected_scale(pods)
            return count, max(0, count - scaled_value(spec["maxUnavailable"], count, round_up=True))
        if isinstance(min_available, str):
            count = self._expected_scale(pods)
            return count, scaled_value(min_available, count, round_up=True)
        return len(pods), min_available or 0

    def _expected_scale(self, pods: Sequence[KubeObject]) -> int:
        """Return the total of `replicas` of the controllers that own `pods`."""
        sizes: dict[str, int] = {}
        for pod in pods:
            reference = controller_of(pod)
            owner = reference and self._owner(reference, pod["metadata"]["namespace"])
            while owner:
                sizes[owner["metadata"]["uid"]] = owner["spec"].get("replicas", 1)
                reference = controller_of(owner)
                parent = reference and self._owner(reference, pod["metadata"]["namespace"])
                if not parent:
                    break
                del sizes[owner["metadata"]["uid"]]
                owner = parent
        return sum(sizes.values())

    def _owner(self, reference: KubeObject, namespace: str) -> KubeObject | None:
        storage = _SCALABLE_KINDS.get(reference["kind"])
        owner = None if storage is None else self.store.get(storage, Key(f"{namespace}/{reference['name']}"))
        return owner if owner is not None and owner["metadata"]["uid"] == reference["uid"] else None


def _selects(budget: KubeObject, pod: KubeObject) -> bool:
    return selector_of(budget["spec"].get("selector")).matches(pod["metadata"].get("labels"))


def _status(
    budget: KubeObject, counts: tuple[int, int, int, int], disrupted: dict[str, str], now: Instant
) -> KubeObject:
    healthy, desired, expected, allowed = counts
    generation = budget["metadata"].get("generation", 0)
    condition: Condition = {
        "type": "DisruptionAllowed",
        "status": "True" if allowed else "False",
        "observedGeneration": generation,
        "reason": "SufficientPods" if allowed else "InsufficientPods",
        "message": "",
    }
    conditions = with_condition(budget.get("status", {}).get("conditions") or [], condition, now)
    status: KubeObject = {
        "observedGeneration": generation,
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "conditions": conditions,
    }
    return {**status, "disruptedPods": disrupted} if disrupted else status
