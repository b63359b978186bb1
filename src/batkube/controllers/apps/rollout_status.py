"""Status of a Deployment's rollout, as `kubectl rollout status` expects it.

Kubernetes: pkg/controller/deployment/progress.go and sync.go.
"""

from __future__ import annotations

from collections.abc import Sequence

from batkube.cluster.object_meta import Condition, condition_of, new_condition
from batkube.cluster.store import KubeObject
from batkube.controllers.apps.rollout_plan import OwnedReplicaSets, max_unavailable, replicas_of, total_replicas
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Duration, Instant, instant_of

PROGRESSING = "Progressing"
AVAILABLE = "Available"
FAILURE = "ReplicaFailure"
TIMED_OUT = "ProgressDeadlineExceeded"
PAUSED = "DeploymentPaused"
COMPLETE = "NewReplicaSetAvailable"
#: This deadline means no deadline (math.MaxInt32).
_NO_LIMIT = 2**31 - 1


def has_progress_deadline(deployment: KubeObject) -> bool:
    """Return whether the deployment has a progress deadline."""
    return bool(deployment["spec"].get("progressDeadlineSeconds", _NO_LIMIT) != _NO_LIMIT)


def _condition(kind: str, status: str, reason: str, message: str, now: Instant) -> Condition:
    return new_condition(kind, status, reason, message, now, "lastUpdateTime")


def with_progressing_condition(
    deployment: KubeObject, status: str, reason: str, message: str, now: Instant
) -> KubeObject:
    """Return the deployment's status with a new Progressing condition."""
    status_now = deployment.get("status", {})
    condition = _condition(PROGRESSING, status, reason, message, now)
    return {**status_now, "conditions": _set_condition(status_now.get("conditions") or (), condition)}


def _set_condition(conditions: Sequence[Condition], new: Condition) -> list[Condition]:
    """Return the conditions with `new` last, unless one with the same type, status and reason exists.

    Kubernetes: SetDeploymentCondition.
    """
    old = next((condition for condition in conditions if condition["type"] == new["type"]), None)
    if old is not None and old["status"] == new["status"]:
        if old["reason"] == new["reason"]:
            return list(conditions)
        new = {**new, "lastTransitionTime": old["lastTransitionTime"]}
    return [*_remove_condition(conditions, new["type"]), new]


def _remove_condition(conditions: Sequence[Condition], kind: str) -> list[Condition]:
    """Return the conditions without type `kind`."""
    return [condition for condition in conditions if condition["type"] != kind]


def calculate_status(deployment: KubeObject, owned: OwnedReplicaSets, now: Instant) -> KubeObject:
    """Return the status: counts of the ReplicaSets, the previous conditions, and an updated condition Available.

    Kubernetes: sync.go, calculateStatus.
    """
    replica_sets, new = owned.all, owned.new
    available = _sum_of(replica_sets, "availableReplicas")
    counts = {
        "observedGeneration": deployment["metadata"].get("generation", 0),
        "replicas": _sum_of(replica_sets, "replicas"),
        "updatedReplicas": 0 if new is None else _sum_of([new], "replicas"),
        "readyReplicas": _sum_of(replica_sets, "readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(0, total_replicas(replica_sets) - available),
    }
    old = deployment.get("status", {})
    status: KubeObject = {name: count for name, count in counts.items() if count}
    if available >= replicas_of(deployment) - max_unavailable(deployment):
        status_reason_message = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        status_reason_message = (
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        )
    status["conditions"] = _set_condition(
        old.get("conditions") or (), _condition(AVAILABLE, *status_reason_message, now)
    )
    if "collisionCount" in old:
        status["collisionCount"] = old["collisionCount"]
    return status


def _sum_of(replica_sets: Sequence[KubeObject], field: str) -> int:
    return sum(replica_set.get("status", {}).get(field, 0) for replica_set in replica_sets)


def is_complete(deployment: KubeObject, status: KubeObject) -> bool:
    """Return whether all pods are new and available, and no old ones remain (Kubernetes: DeploymentComplete)."""
    desired = replicas_of(deployment)
    return all(status.get(field, 0) == desired for field in ("updatedReplicas", "replicas", "availableReplicas")) and (
        status.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 0)
    )


def status_during_rollout(deployment: KubeObject, owned: OwnedReplicaSets, now: Instant) -> KubeObject:
    """Return the status during a rollout, with its progress and the first failure."""
    status = calculate_status(deployment, owned, now)
    conditions: list[Condition] = status["conditions"]
    current = condition_of(deployment, PROGRESSING)
    if not has_progress_deadline(deployment):
        conditions = _remove_condition(conditions, PROGRESSING)
    elif not (
        status.get("replicas", 0) == status.get("updatedReplicas", 0)
        and current is not None
        and current["reason"] == COMPLETE
    ):
        conditions = _update_progressing(deployment, owned.new, status, conditions, current, now)
    failure = _replica_failure([replica_set for replica_set in (owned.new, *owned.old) if replica_set is not None])
    conditions = _remove_condition(conditions, FAILURE) if failure is None else _set_condition(conditions, failure)
    return {**status, "conditions": conditions}


def _update_progressing(
    deployment: KubeObject,
    new: KubeObject | None,
    status: KubeObject,
    conditions: Sequence[Condition],
    current: Condition | None,
    now: Instant,
) -> list[Condition]:
    subject_object = deployment if new is None else new
    subject = f'{subject_object["kind"]} "{subject_object["metadata"]["name"]}"'
    if is_complete(deployment, status):
        complete = _condition(PROGRESSING, "True", COMPLETE, f"{subject} has successfully progressed.", now)
        return _set_condition(conditions, complete)
    if _has_progressed(deployment.get("status", {}), status):
        progressing = _condition(PROGRESSING, "True", "ReplicaSetUpdated", f"{subject} is progressing.", now)
        if current is not None and current["status"] == "True":
            progressing["lastTransitionTime"] = current["lastTransitionTime"]
        return [*_remove_condition(conditions, PROGRESSING), progressing]
    if _has_timed_out(deployment, current, now):
        timed_out = _condition(PROGRESSING, "False", TIMED_OUT, f"{subject} has timed out progressing.", now)
        return _set_condition(conditions, timed_out)
    return list(conditions)


def _has_progressed(old: KubeObject, new: KubeObject) -> bool:
    # Kubernetes: DeploymentProgressing.
    def old_pods(status: KubeObject) -> int:
        count: int = status.get("replicas", 0) - status.get("updatedReplicas", 0)
        return count

    return old_pods(new) < old_pods(old) or any(
        new.get(field, 0) > old.get(field, 0) for field in ("updatedReplicas", "readyReplicas", "availableReplicas")
    )


def _has_timed_out(deployment: KubeObject, progressing: Condition | None, now: Instant) -> bool:
    # Kubernetes: DeploymentTimedOut.
    if progressing is None or progressing["reason"] == COMPLETE:
        return False
    return progressing["reason"] == TIMED_OUT or _deadline(deployment, progressing) < now


def _deadline(deployment: KubeObject, progressing: Condition) -> Instant:
    allowed_s = deployment["spec"]["progressDeadlineSeconds"]
    return Instant(instant_of(progressing["lastUpdateTime"]) + allowed_s * NANOSECONDS_PER_SECOND)


def delay_until_check(deployment: KubeObject, status: KubeObject, now: Instant) -> Duration | None:
    """Return the delay until the progress deadline must be checked again; None if not at all.

    Kubernetes: requeueStuckDeployment.
    """
    current = condition_of(deployment, PROGRESSING)
    if not has_progress_deadline(deployment) or current is None or current["reason"] == TIMED_OUT:
        return None
    if is_complete(deployment, status):
        return None
    # A second more than the deadline: timestamps are whole seconds.
    return Duration(max(0, _deadline(deployment, current) - now) + NANOSECONDS_PER_SECOND)


def _replica_failure(replica_sets: Sequence[KubeObject]) -> Condition | None:
    """Return the first ReplicaFailure of the ReplicaSets as a condition of the Deployment."""
    for replica_set in replica_sets:
        failure = condition_of(replica_set, FAILURE)
        if failure is not None:
            return {**failure, "lastUpdateTime": failure["lastTransitionTime"]}
    return None
