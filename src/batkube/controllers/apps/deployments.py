"""Deployments: rolling updates, recreation, scaling and rollback through ReplicaSets.

Kubernetes: pkg/controller/deployment/deployment_controller.go, sync.go, rolling.go, recreate.go and progress.go.
"""

from __future__ import annotations

from collections.abc import Sequence

from batkube.cluster.client import ApiError, Client
from batkube.cluster.event_recorder import EventRecorder
from batkube.cluster.object_meta import (
    annotations_of,
    condition_of,
    is_being_deleted,
    key_of,
    namespace_of,
    with_metadata,
)
from batkube.cluster.pods.accessors import is_finished
from batkube.cluster.store import DELETED, Change, Key, KubeObject
from batkube.cluster.world import World
from batkube.controllers.apps import rollout_plan as plan
from batkube.controllers.apps import rollout_status as progress
from batkube.controllers.apps.replica_sets import REPLICA_SET
from batkube.controllers.apps.rollbacks import roll_back
from batkube.controllers.apps.rollout_plan import OwnedReplicaSets, replicas_of
from batkube.controllers.framework.controller import Controller
from batkube.controllers.framework.owner_index import OwnerIndex, is_newly_adoptable
from batkube.controllers.framework.pod_control import claim_objects, owner_key
from batkube.controllers.framework.work_queue import REACTION_TIME
from batkube.kernel.instants import Duration, Instant

DEPLOYMENT = "deployments.apps"
#: Longer than the reaction time of ReplicaSets, so that a ReplicaSet has updated its pods and status before its
#: Deployment is reconciled again. With an outdated status, old ReplicaSets would be scaled down too far. The real
#: controller reconciles several times meanwhile.
_REACTION_TIME = Duration(3 * REACTION_TIME)
_ALREADY_EXISTS = "AlreadyExists"
#: This history limit means no limit (math.MaxInt32).
_NO_LIMIT = 2**31 - 1


class DeploymentController(Controller):
    """Rolls out Deployments."""

    storage = DEPLOYMENT

    def __init__(
        self,
        world: World,
        client: Client,
        events: EventRecorder,
        pods: OwnerIndex,
        replica_sets: OwnerIndex,
    ) -> None:
        super().__init__(world, client, events, reaction=_REACTION_TIME)
        self._pods = pods
        self._replica_sets = replica_sets
        replica_sets.subscribe(self._on_replica_set_changed)
        pods.subscribe(self._on_pod_changed)

    # Subscriptions

    def _on_replica_set_changed(self, controller: KubeObject | None, change: Change, now: Instant) -> None:
        if controller is None:
            if is_newly_adoptable(change):
                for key in self.store.entries(DEPLOYMENT):
                    if namespace_of(key) == namespace_of(change.key):
                        self.queue.add(key, now)
        elif (owner := owner_key(controller, "apps", "Deployment", change.key)) is not None:
            self.queue.add(owner, now)

    def _on_pod_changed(self, controller: KubeObject | None, change: Change, now: Instant) -> None:
        """Queue the Deployment of a deleted pod: the strategy Recreate waits for the last old pod to be gone."""
        if change.type is not DELETED or (owner := owner_key(controller, "apps", "ReplicaSet", change.key)) is None:
            return
        replica_set = self.store.get(REPLICA_SET, owner)
        if replica_set is not None:
            for reference in replica_set["metadata"].get("ownerReferences", ()):
                if (deployment := owner_key(reference, "apps", "Deployment", owner)) is not None:
                    self.queue.add(deployment, now)

    # Reconciliation

    def reconcile(self, key: Key, deployment: KubeObject, now: Instant) -> None:
        """Perform the next step of a rollout, or of a change in size."""
        owned = plan.split_replica_sets(deployment, claim_objects(self.client, self._replica_sets, deployment, now))
        if is_being_deleted(deployment):
            self.write_status(deployment, progress.calculate_status(deployment, owned, now), now)
            return
        deployment = self._update_paused_condition(deployment, now)
        if not deployment["spec"].get("paused") and plan.ROLLBACK_TO in annotations_of(deployment):
            self._roll_back(deployment, owned.all, now)
            return
        if owned.new is not None:
            deployment, owned = self._sync_revision(deployment, owned.new, owned.old, now)
        if deployment["spec"].get("paused") or plan.is_scaling_event(deployment, owned.all):
            self._scale(deployment, owned, now)
        elif plan.is_rolling_update(deployment):
            self._rolling_update(deployment, owned, now)
        else:
            self._recreate(deployment, owned, now)

    def _update_paused_condition(self, deployment: KubeObject, now: Instant) -> KubeObject:
        """Record a pause or its end in the Progressing condition: a pause does not count towards the deadline.

        Kubernetes: sync.go, checkPausedConditions.
        """
        current = condition_of(deployment, progress.PROGRESSING)
        reason = None if current is None else current["reason"]
        paused = bool(deployment["spec"].get("paused"))
        was_paused = reason == progress.PAUSED
        if not progress.has_progress_deadline(deployment) or reason == progress.TIMED_OUT or paused == was_paused:
            return deployment
        reason_and_verb = ("DeploymentPaused", "paused") if paused else ("DeploymentResumed", "resumed")
        status = progress.with_progressing_condition(
            deployment, "Unknown", reason_and_verb[0], f"Deployment is {reason_and_verb[1]}", now
        )
        return self.write_status(deployment, status, now)

    # The new ReplicaSet

    def _sync_revision(
        self, deployment: KubeObject, new: KubeObject, old: list[KubeObject], now: Instant
    ) -> tuple[KubeObject, OwnedReplicaSets]:
        """Set revision and annotations of the new ReplicaSet, and the revision of the deployment.

        Kubernetes: sync.go, getNewReplicaSet.
        """
        revision = max((plan.revision_of(replica_set) for replica_set in old), default=0) + 1
        annotations = plan.annotations_for_new(deployment, annotations_of(new), revision)
        min_ready_s = deployment["spec"].get("minReadySeconds")
        if annotations != annotations_of(new) or min_ready_s != new["spec"].get("minReadySeconds"):
            spec = {name: value for name, value in new["spec"].items() if name != "minReadySeconds"}
            if min_ready_s:
                spec["minReadySeconds"] = min_ready_s
            new = self.client.update(REPLICA_SET, {**with_metadata(new, annotations=annotations), "spec": spec}, now)
        message = f'Found new replica set "{new["metadata"]["name"]}"'
        deployment = self._record_new_replica_set(
            deployment, new, ("FoundNewReplicaSet", message), now, only_if_missing=True
        )
        return deployment, OwnedReplicaSets(new, old)

    def _record_new_replica_set(
        self,
        deployment: KubeObject,
        new: KubeObject,
        condition: tuple[str, str],
        now: Instant,
        *,
        only_if_missing: bool,
    ) -> KubeObject:
        """Copy the new ReplicaSet's revision to the deployment, and set the Progressing condition to `condition`."""
        status = deployment.get("status", {})
        is_missing = condition_of(deployment, progress.PROGRESSING) is None
        if progress.has_progress_deadline(deployment) and (is_missing or not only_if_missing):
            status = progress.with_progressing_condition(deployment, "True", *condition, now)
        revision = annotations_of(new).get(plan.REVISION, "")
        annotations = {**annotations_of(deployment), plan.REVISION: revision}
        if annotations == annotations_of(deployment) and status is deployment.get("status"):
            return deployment
        changed = {**with_metadata(deployment, annotations=annotations), "status": status}
        return self.client.update(DEPLOYMENT, changed, now, subresource="status")

    def _create_replica_set(
        self, deployment: KubeObject, old: Sequence[KubeObject], now: Instant
    ) -> tuple[KubeObject, KubeObject]:
        """Create the ReplicaSet of the current template."""
        replica_set = plan.new_replica_set(deployment, old)
        name = replica_set["metadata"]["name"]
        try:
            new = self.client.create(REPLICA_SET, replica_set, now)
        except ApiError as error:
            self._report_create_failure(deployment, name, error, now)
            raise
        if replicas_of(new):
            message = f"Scaled up replica set {name} from 0 to {replicas_of(new)}"
            self.record_event(deployment, "Normal", "ScalingReplicaSet", message, now)
        message = f'Created new replica set "{name}"'
        deployment = self._record_new_replica_set(
            deployment, new, ("NewReplicaSetCreated", message), now, only_if_missing=False
        )
        return deployment, new

    def _report_create_failure(self, deployment: KubeObject, name: str, error: ApiError, now: Instant) -> None:
        status = deployment.get("status", {})
        if error.reason == _ALREADY_EXISTS:
            # A hash collision: the next attempt hashes the template with the new collisionCount.
            collisions = status.get("collisionCount", 0) + 1
            self.write_status(deployment, {**status, "collisionCount": collisions}, now)
            return
        message = f'Failed to create new replica set "{name}": {error.message}'
        if progress.has_progress_deadline(deployment):
            status = progress.with_progressing_condition(deployment, "False", "ReplicaSetCreateError", message, now)
            self.write_status(deployment, status, now)
        self.record_event(deployment, "Warning", "ReplicaSetCreateError", message, now)

    # Scaling, rolling update, recreation, rollback

    def _scale(self, deployment: KubeObject, owned: OwnedReplicaSets, now: Instant) -> None:
        """Distribute a changed size among the active ReplicaSets (Kubernetes: sync.go, scale)."""
        active = [replica_set for replica_set in owned.all if replicas_of(replica_set)]
        if len(active) <= 1:
            sizes = [(replica_set, replicas_of(deployment)) for replica_set in active or owned.all[-1:]]
        elif plan.is_saturated(deployment, owned.new):
            sizes = [(replica_set, 0) for replica_set in active if replica_set is not owned.new]
        else:
            sizes = plan.proportional_replicas(deployment, owned.all) if plan.is_rolling_update(deployment) else []
        changed = {
            replica_set["metadata"]["uid"]: self._scale_replica_set(deployment, replica_set, count, now)
            for replica_set, count in sizes
        }
        new = owned.new and changed.get(owned.new["metadata"]["uid"], owned.new)
        owned = OwnedReplicaSets(
            new, [changed.get(replica_set["metadata"]["uid"], replica_set) for replica_set in owned.old]
        )
        if deployment["spec"].get("paused"):
            self._delete_old_replica_sets(deployment, owned.old, now)
        self.write_status(deployment, progress.calculate_status(deployment, owned, now), now)

    def _rolling_update(self, deployment: KubeObject, owned: OwnedReplicaSets, now: Instant) -> None:
        """Perform one step of a rolling update: scale up the new ReplicaSet, or scale down the old ones.

        Kubernetes: rolling.go, rolloutRolling.
        """
        new, old = owned
        if new is None:
            deployment, new = self._create_replica_set(deployment, old, now)
        desired = replicas_of(deployment)
        target = desired if replicas_of(new) > desired else plan.desired_new_replicas(deployment, old, replicas_of(new))
        if target != replicas_of(new):
            new = self._scale_replica_set(deployment, new, target, now)
        else:
            old, has_shrunk = self._scale_down_old(deployment, new, old, now)
            if not has_shrunk and progress.is_complete(deployment, deployment.get("status", {})):
                self._delete_old_replica_sets(deployment, old, now)
        self._sync_rollout_status(deployment, OwnedReplicaSets(new, old), now)

    def _scale_down_old(
        self, deployment: KubeObject, new: KubeObject, old: Sequence[KubeObject], now: Instant
    ) -> tuple[list[KubeObject], bool]:
        """Delete unavailable old pods first, then as many available ones as maxUnavailable allows.

        Kubernetes: rolling.go, reconcileOldReplicaSets.
        """
        min_available = replicas_of(deployment) - plan.max_unavailable(deployment)
        new_unavailable = replicas_of(new) - _available_replicas(new)
        spare = plan.total_replicas([*old, new]) - min_available - new_unavailable
        replica_sets = list(old)
        if spare <= 0 or not plan.total_replicas(old):
            return replica_sets, False
        for number, replica_set in enumerate(replica_sets):
            cut = min(spare, replicas_of(replica_set) - _available_replicas(replica_set))
            if cut > 0:
                replica_sets[number] = self._scale_replica_set(
                    deployment, replica_set, replicas_of(replica_set) - cut, now
                )
                spare -= cut
        surplus = sum(_available_replicas(replica_set) for replica_set in [*replica_sets, new]) - min_available
        for number, replica_set in enumerate(replica_sets):
            cut = min(replicas_of(replica_set), surplus)
            if cut > 0:
                replica_sets[number] = self._scale_replica_set(
                    deployment, replica_set, replicas_of(replica_set) - cut, now
                )
                surplus -= cut
        return replica_sets, any(after is not previous for after, previous in zip(replica_sets, old, strict=True))

    def _recreate(self, deployment: KubeObject, owned: OwnedReplicaSets, now: Instant) -> None:
        """Delete all old pods; once they are gone, create the new ones (Kubernetes: recreate.go, rolloutRecreate)."""
        new, old = owned
        if any(replicas_of(replica_set) for replica_set in old):
            old = [self._scale_replica_set(deployment, replica_set, 0, now) for replica_set in old]
        elif not self._has_running_old_pods(old):
            if new is None:
                deployment, new = self._create_replica_set(deployment, old, now)
            new = self._scale_replica_set(deployment, new, replicas_of(deployment), now)
            if progress.is_complete(deployment, deployment.get("status", {})):
                self._delete_old_replica_sets(deployment, old, now)
        self._sync_rollout_status(deployment, OwnedReplicaSets(new, old), now)

    def _has_running_old_pods(self, old: Sequence[KubeObject]) -> bool:
        # Kubernetes: recreate.go, oldPodsRunning.
        return any(
            replica_set.get("status", {}).get("replicas", 0)
            or any(not is_finished(pod) for pod in self._pods.owned_by(replica_set["metadata"]["uid"]))
            for replica_set in old
        )

    def _roll_back(self, deployment: KubeObject, owned: Sequence[KubeObject], now: Instant) -> None:
        """Restore the template of an earlier revision, as the deprecated annotation requests."""
        changed, kind, reason, message = roll_back(deployment, owned)
        self.record_event(deployment, kind, reason, message, now)
        self.client.update(DEPLOYMENT, changed, now)

    # Writes

    def _scale_replica_set(
        self, deployment: KubeObject, replica_set: KubeObject, count: int, now: Instant
    ) -> KubeObject:
        """Set the size of a ReplicaSet, and record the deployment's size in its annotations."""
        annotations = {**annotations_of(replica_set), **plan.replicas_annotations(deployment)}
        before = replicas_of(replica_set)
        if before == count and annotations == annotations_of(replica_set):
            return replica_set
        changed = {
            **with_metadata(replica_set, annotations=annotations),
            "spec": {**replica_set["spec"], "replicas": count},
        }
        written = self.client.update(REPLICA_SET, changed, now)
        if before != count:
            direction, name = "up" if before < count else "down", replica_set["metadata"]["name"]
            message = f"Scaled {direction} replica set {name} from {before} to {count}"
            self.record_event(deployment, "Normal", "ScalingReplicaSet", message, now)
        return written

    def _delete_old_replica_sets(self, deployment: KubeObject, old: Sequence[KubeObject], now: Instant) -> None:
        """Delete the oldest revisions beyond revisionHistoryLimit (Kubernetes: sync.go, cleanupDeployment)."""
        limit = deployment["spec"].get("revisionHistoryLimit", _NO_LIMIT)
        existing = sorted(
            (replica_set for replica_set in old if not is_being_deleted(replica_set)), key=plan.revision_of
        )
        for replica_set in existing[: max(0, len(existing) - limit)]:
            status, metadata = replica_set.get("status", {}), replica_set["metadata"]
            is_observed = metadata.get("generation", 0) <= status.get("observedGeneration", 0)
            if not replicas_of(replica_set) and not status.get("replicas", 0) and is_observed:
                self.client.delete(REPLICA_SET, key_of(replica_set), now)

    def _sync_rollout_status(self, deployment: KubeObject, owned: OwnedReplicaSets, now: Instant) -> None:
        # Kubernetes: progress.go, syncRolloutStatus.
        status = progress.status_during_rollout(deployment, owned, now)
        if self.write_status(deployment, status, now) is deployment:
            wait = progress.delay_until_check(deployment, status, now)
            if wait is not None:
                self.queue.add_after(key_of(deployment), now, wait)


def _available_replicas(replica_set: KubeObject) -> int:
    count: int = replica_set.get("status", {}).get("availableReplicas", 0)
    return count
