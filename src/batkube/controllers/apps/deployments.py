"""Deployments: rolling from one ReplicaSet to the next, all at once or little by little, and back.

Kubernetes: pkg/controller/deployment.
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
#: A ReplicaSet has made or deleted its pods, and counted them, before its Deployment looks at it again: the real one
#: has to ask several times in between. A look at counts of before would scale old ReplicaSets down too far.
_REACTION_TIME = Duration(3 * REACTION_TIME)
_ALREADY_EXISTS = "AlreadyExists"
#: A history of this many revisions means all (math.MaxInt32).
_NO_LIMIT = 2**31 - 1


class DeploymentController(Controller):
    """Rolls every Deployment out."""

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

    # What it hears

    def _on_replica_set_changed(self, controller: KubeObject | None, change: Change, now: Instant) -> None:
        if controller is None:
            if is_newly_adoptable(change):
                for key in self.store.entries(DEPLOYMENT):
                    if namespace_of(key) == namespace_of(change.key):
                        self.queue.add(key, now)
        elif (owner := owner_key(controller, "apps", "Deployment", change.key)) is not None:
            self.queue.add(owner, now)

    def _on_pod_changed(self, controller: KubeObject | None, change: Change, now: Instant) -> None:
        """Recreation waits for the last of the old pods, of which no ReplicaSet may know any more."""
        if change.type is not DELETED or (owner := owner_key(controller, "apps", "ReplicaSet", change.key)) is None:
            return
        replica_set = self.store.get(REPLICA_SET, owner)
        if replica_set is not None:
            for reference in replica_set["metadata"].get("ownerReferences", ()):
                if (deployment := owner_key(reference, "apps", "Deployment", owner)) is not None:
                    self.queue.add(deployment, now)

    # What it does

    def reconcile(self, key: Key, deployment: KubeObject, now: Instant) -> None:
        """Take the next step of the rollout, or of a change of size."""
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
        """Say that the deployment is paused, or goes on: a pause does not count as lack of progress."""
        current = condition_of(deployment, progress.PROGRESSING)
        reason = None if current is None else current["reason"]
        paused = bool(deployment["spec"].get("paused"))
        was_paused = reason == progress.PAUSED
        if not progress.has_progress_deadline(deployment) or reason == progress.TIMED_OUT or paused == was_paused:
            return deployment
        word = ("DeploymentPaused", "paused") if paused else ("DeploymentResumed", "resumed")
        status = progress.with_progressing_condition(deployment, "Unknown", word[0], f"Deployment is {word[1]}", now)
        return self.write_status(deployment, status, now)

    # The new ReplicaSet

    def _sync_revision(
        self, deployment: KubeObject, new: KubeObject, others: list[KubeObject], now: Instant
    ) -> tuple[KubeObject, OwnedReplicaSets]:
        """Give the new ReplicaSet the highest revision and the annotations, and the deployment the revision."""
        revision = max((plan.revision_of(one) for one in others), default=0) + 1
        annotations = plan.annotations_for_new(deployment, annotations_of(new), revision)
        min_ready_s = deployment["spec"].get("minReadySeconds")
        if annotations != annotations_of(new) or min_ready_s != new["spec"].get("minReadySeconds"):
            spec = {name: value for name, value in new["spec"].items() if name != "minReadySeconds"}
            if min_ready_s:
                spec["minReadySeconds"] = min_ready_s
            new = self.client.update(REPLICA_SET, {**with_metadata(new, annotations=annotations), "spec": spec}, now)
        message = f'Found new replica set "{new["metadata"]["name"]}"'
        deployment = self._record_new_replica_set(
            deployment, new, ("FoundNewReplicaSet", message), now, only_if_silent=True
        )
        return deployment, OwnedReplicaSets(new, others)

    def _record_new_replica_set(
        self,
        deployment: KubeObject,
        new: KubeObject,
        condition: tuple[str, str],
        now: Instant,
        *,
        only_if_silent: bool,
    ) -> KubeObject:
        """Write the revision of the new ReplicaSet, and the reason and message of how it came, into the deployment."""
        status = deployment.get("status", {})
        is_silent = condition_of(deployment, progress.PROGRESSING) is None
        if progress.has_progress_deadline(deployment) and (is_silent or not only_if_silent):
            status = progress.with_progressing_condition(deployment, "True", *condition, now)
        revision = annotations_of(new).get(plan.REVISION, "")
        annotations = {**annotations_of(deployment), plan.REVISION: revision}
        if annotations == annotations_of(deployment) and status is deployment.get("status"):
            return deployment
        changed = {**with_metadata(deployment, annotations=annotations), "status": status}
        return self.client.update(DEPLOYMENT, changed, now, subresource="status")

    def _create_replica_set(
        self, deployment: KubeObject, others: Sequence[KubeObject], now: Instant
    ) -> tuple[KubeObject, KubeObject]:
        """Create the ReplicaSet of the present template."""
        replica_set = plan.new_replica_set(deployment, others)
        name = replica_set["metadata"]["name"]
        try:
            new = self.client.create(REPLICA_SET, replica_set, now)
        except ApiError as refusal:
            self._report_create_failure(deployment, name, refusal, now)
            raise
        if replicas_of(new):
            message = f"Scaled up replica set {name} from 0 to {replicas_of(new)}"
            self.record_event(deployment, "Normal", "ScalingReplicaSet", message, now)
        message = f'Created new replica set "{name}"'
        deployment = self._record_new_replica_set(
            deployment, new, ("NewReplicaSetCreated", message), now, only_if_silent=False
        )
        return deployment, new

    def _report_create_failure(self, deployment: KubeObject, name: str, refusal: ApiError, now: Instant) -> None:
        status = deployment.get("status", {})
        if refusal.reason == _ALREADY_EXISTS:
            # Another ReplicaSet has the name, by chance: the next attempt hashes the template differently.
            collisions = status.get("collisionCount", 0) + 1
            self.write_status(deployment, {**status, "collisionCount": collisions}, now)
            return
        message = f'Failed to create new replica set "{name}": {refusal.message}'
        if progress.has_progress_deadline(deployment):
            status = progress.with_progressing_condition(deployment, "False", "ReplicaSetCreateError", message, now)
            self.write_status(deployment, status, now)
        self.record_event(deployment, "Warning", "ReplicaSetCreateError", message, now)

    # The three ways of going on

    def _scale(self, deployment: KubeObject, owned: OwnedReplicaSets, now: Instant) -> None:
        """Give the ReplicaSets that have pods their share of a size that changed."""
        active = [one for one in owned.all if replicas_of(one)]
        if len(active) <= 1:
            sizes = [(one, replicas_of(deployment)) for one in active or owned.all[-1:]]
        elif plan.is_saturated(deployment, owned.new):
            sizes = [(one, 0) for one in active if one is not owned.new]
        else:
            sizes = plan.proportional_replicas(deployment, owned.all) if plan.is_rolling_update(deployment) else []
        changed = {one["metadata"]["uid"]: self._scale_replica_set(deployment, one, count, now) for one, count in sizes}
        new = owned.new and changed.get(owned.new["metadata"]["uid"], owned.new)
        owned = OwnedReplicaSets(new, [changed.get(one["metadata"]["uid"], one) for one in owned.old])
        if deployment["spec"].get("paused"):
            self._delete_old_replica_sets(deployment, owned.old, now)
        self.write_status(deployment, progress.calculate_status(deployment, owned, now), now)

    def _rolling_update(self, deployment: KubeObject, owned: OwnedReplicaSets, now: Instant) -> None:
        """Take one step of a rolling update: grow the new ReplicaSet, or shrink the old ones."""
        new, others = owned
        if new is None:
            deployment, new = self._create_replica_set(deployment, others, now)
        wanted = replicas_of(deployment)
        goal = wanted if replicas_of(new) > wanted else plan.desired_new_replicas(deployment, others, replicas_of(new))
        if goal != replicas_of(new):
            new = self._scale_replica_set(deployment, new, goal, now)
        else:
            others, has_shrunk = self._scale_down_old(deployment, new, others, now)
            if not has_shrunk and progress.is_complete(deployment, deployment.get("status", {})):
                self._delete_old_replica_sets(deployment, others, now)
        self._sync_rollout_status(deployment, OwnedReplicaSets(new, others), now)

    def _scale_down_old(
        self, deployment: KubeObject, new: KubeObject, others: Sequence[KubeObject], now: Instant
    ) -> tuple[list[KubeObject], bool]:
        """Delete old pods while enough stay available, those that are not available first."""
        min_available = replicas_of(deployment) - plan.max_unavailable(deployment)
        new_unavailable = replicas_of(new) - _available_replicas(new)
        spare = plan.total_replicas([*others, new]) - min_available - new_unavailable
        left = list(others)
        if spare <= 0 or not plan.total_replicas(others):
            return left, False
        for number, one in enumerate(left):
            cut = min(spare, replicas_of(one) - _available_replicas(one))
            if cut > 0:
                left[number] = self._scale_replica_set(deployment, one, replicas_of(one) - cut, now)
                spare -= cut
        surplus = sum(_available_replicas(one) for one in [*left, new]) - min_available
        for number, one in enumerate(left):
            cut = min(replicas_of(one), surplus)
            if cut > 0:
                left[number] = self._scale_replica_set(deployment, one, replicas_of(one) - cut, now)
                surplus -= cut
        return left, any(after is not before for after, before in zip(left, others, strict=True))

    def _recreate(self, deployment: KubeObject, owned: OwnedReplicaSets, now: Instant) -> None:
        """Delete all old pods; when they are gone, create the new ones."""
        new, others = owned
        if any(replicas_of(one) for one in others):
            others = [self._scale_replica_set(deployment, one, 0, now) for one in others]
        elif not self._has_running_old_pods(others):
            if new is None:
                deployment, new = self._create_replica_set(deployment, others, now)
            new = self._scale_replica_set(deployment, new, replicas_of(deployment), now)
            if progress.is_complete(deployment, deployment.get("status", {})):
                self._delete_old_replica_sets(deployment, others, now)
        self._sync_rollout_status(deployment, OwnedReplicaSets(new, others), now)

    def _has_running_old_pods(self, others: Sequence[KubeObject]) -> bool:
        return any(
            one.get("status", {}).get("replicas", 0)
            or any(not is_finished(pod) for pod in self._pods.owned_by(one["metadata"]["uid"]))
            for one in others
        )

    def _roll_back(self, deployment: KubeObject, owned: Sequence[KubeObject], now: Instant) -> None:
        """Take the template of an earlier revision, as the annotation of the old API asks."""
        changed, kind, reason, message = roll_back(deployment, owned)
        self.record_event(deployment, kind, reason, message, now)
        self.client.update(DEPLOYMENT, changed, now)

    # Writing

    def _scale_replica_set(
        self, deployment: KubeObject, replica_set: KubeObject, count: int, now: Instant
    ) -> KubeObject:
        """Give a ReplicaSet another size, and note the deployment's in it."""
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

    def _delete_old_replica_sets(self, deployment: KubeObject, others: Sequence[KubeObject], now: Instant) -> None:
        """Delete the oldest revisions beyond the limit of the history."""
        limit = deployment["spec"].get("revisionHistoryLimit", _NO_LIMIT)
        alive = sorted((one for one in others if not is_being_deleted(one)), key=plan.revision_of)
        for one in alive[: max(0, len(alive) - limit)]:
            status, metadata = one.get("status", {}), one["metadata"]
            is_seen = metadata.get("generation", 0) <= status.get("observedGeneration", 0)
            if not replicas_of(one) and not status.get("replicas", 0) and is_seen:
                self.client.delete(REPLICA_SET, key_of(one), now)

    def _sync_rollout_status(self, deployment: KubeObject, owned: OwnedReplicaSets, now: Instant) -> None:
        status = progress.status_during_rollout(deployment, owned, now)
        if self.write_status(deployment, status, now) is deployment:
            wait = progress.delay_until_check(deployment, status, now)
            if wait is not None:
                self.queue.add_after(key_of(deployment), now, wait)


def _available_replicas(replica_set: KubeObject) -> int:
    count: int = replica_set.get("status", {}).get("availableReplicas", 0)
    return count
