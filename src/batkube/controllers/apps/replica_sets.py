"""ReplicaSets and ReplicationControllers: exactly as many pods as requested.

Kubernetes: pkg/controller/replicaset/replica_set.go.
"""

from __future__ import annotations

from collections.abc import Sequence

from batkube.cluster.client import ApiError, Client
from batkube.cluster.event_recorder import EventRecorder
from batkube.cluster.object_meta import Condition, controller_of, is_being_deleted, labels_of, new_condition
from batkube.cluster.pods.accessors import is_active, is_ready, time_until_available
from batkube.cluster.store import Key, KubeObject
from batkube.cluster.world import World
from batkube.controllers.framework.deletion_order import by_rank
from batkube.controllers.framework.owner_index import OwnerIndex
from batkube.controllers.framework.pod_control import claim_objects
from batkube.controllers.framework.pod_owner_controller import PodOwnerController
from batkube.kernel.instants import Instant

REPLICA_SET, REPLICATION_CONTROLLER = "replicasets.apps", "replicationcontrollers"
#: Maximum number of pods to create or delete in one reconciliation (Kubernetes: BurstReplicas).
_BURST = 500
_FAILURE = "ReplicaFailure"


class ReplicaSetController(PodOwnerController):
    """Maintains the size of ReplicaSets."""

    storage, kind = REPLICA_SET, "ReplicaSet"

    def __init__(
        self, world: World, client: Client, events: EventRecorder, pods: OwnerIndex, replica_sets: OwnerIndex
    ) -> None:
        super().__init__(world, client, events, pods)
        self._replica_sets = replica_sets

    def reconcile(self, key: Key, replica_set: KubeObject, now: Instant) -> None:
        """Create or delete pods until the size is right, and update the status."""
        pods = claim_objects(self.client, self.pods, replica_set, now, eligible=is_active)
        problem: ApiError | None = None
        if not is_being_deleted(replica_set):
            problem = self._manage_pods(replica_set, pods, now)
        self.write_status(replica_set, _status(replica_set, pods, problem, now), now)
        if problem is not None:
            raise problem
        self.requeue_when_available(key, replica_set, pods, now)

    def _manage_pods(self, replica_set: KubeObject, pods: Sequence[KubeObject], now: Instant) -> ApiError | None:
        """Create or delete pods; return the first error, if any (Kubernetes: manageReplicas)."""
        spec = replica_set["spec"]
        missing = spec.get("replicas", 1) - len(pods)
        if missing > 0:
            templates = [(spec["template"], "")] * min(missing, _BURST)
            return self.pod_control.create_many(replica_set, templates, now)[1]
        problem: ApiError | None = None
        if missing < 0:
            victims = by_rank(pods, self._sibling_pods(replica_set), now)[: min(-missing, _BURST)]
            for pod in victims:
                try:
                    self.pod_control.delete(replica_set, pod, now)
                except ApiError as error:
                    problem = problem or error
        return problem

    def _sibling_pods(self, replica_set: KubeObject) -> list[KubeObject]:
        """Return the pods of all ReplicaSets with the same controller (Kubernetes: getIndirectlyRelatedPods)."""
        reference = controller_of(replica_set)
        siblings = [replica_set] if reference is None else self._replica_sets.owned_by(reference["uid"])
        return [pod for sibling in siblings for pod in self.pods.owned_by(sibling["metadata"]["uid"])]


class ReplicationManager(ReplicaSetController):
    """Maintains ReplicationControllers in the same way (pkg/controller/replication/replication_controller.go)."""

    storage, group, kind = REPLICATION_CONTROLLER, "", "ReplicationController"


def _status(replica_set: KubeObject, pods: Sequence[KubeObject], problem: ApiError | None, now: Instant) -> KubeObject:
    # Kubernetes: replica_set_utils.go, calculateStatus.
    spec = replica_set["spec"]
    min_ready_s = spec.get("minReadySeconds", 0)
    template_labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    counts = {
        "fullyLabeledReplicas": sum(template_labels.items() <= labels_of(pod).items() for pod in pods),
        "readyReplicas": sum(is_ready(pod) for pod in pods),
        "availableReplicas": sum(time_until_available(pod, min_ready_s, now) == 0 for pod in pods),
    }
    conditions = _conditions(replica_set, len(pods), problem, now)
    return {
        "replicas": len(pods),
        **{name: count for name, count in counts.items() if count},
        "observedGeneration": replica_set["metadata"].get("generation", 0),
        **({"conditions": conditions} if conditions else {}),
    }


def _conditions(replica_set: KubeObject, pod_count: int, problem: ApiError | None, now: Instant) -> list[Condition]:
    """Return the conditions; while pods cannot be created or deleted, one of them is ReplicaFailure."""
    current = replica_set.get("status", {}).get("conditions") or []
    others = [condition for condition in current if condition["type"] != _FAILURE]
    if problem is None:
        return others
    if len(others) < len(current):
        return list(current)
    reason = "FailedCreate" if pod_count < replica_set["spec"].get("replicas", 1) else "FailedDelete"
    return [*others, new_condition(_FAILURE, "True", reason, problem.message, now)]
