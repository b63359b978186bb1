"""Accessors of pods: phase, node, conditions and annotations, for controllers, kubelets and schedulers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from batkube.cluster.object_meta import (
    annotations_of,
    condition_of,
    controller_of,
    has_condition,
    is_being_deleted,
    name_of,
    namespace_of,
    status_with_condition,
)
from batkube.cluster.store import Key, KubeObject, Store
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, START, Duration, Instant, duration, instant_of

TERMINAL_PHASES = ("Succeeded", "Failed")


def phase_of(pod: KubeObject) -> str:
    """Return the pod's phase; Pending if it is not set yet."""
    phase: str = pod.get("status", {}).get("phase", "Pending")
    return phase


def is_running(pod: KubeObject) -> bool:
    """Return whether the pod's phase is Running."""
    return phase_of(pod) == "Running"


def node_of_pod(pod: KubeObject) -> str:
    """Return the name of the node that the pod is bound to, or ""."""
    name: str = pod["spec"].get("nodeName", "")
    return name


def pods_on(store: Store, nodes: Iterable[str]) -> list[tuple[Key, KubeObject]]:
    """Return the pods that are bound to one of these nodes, with their keys, oldest first."""
    names = frozenset(nodes)
    return [(key, pod) for key, (pod, _) in store.entries("pods").items() if node_of_pod(pod) in names]


def priority_of(pod: KubeObject) -> int:
    """Return the pod's priority; 0 if it is not set."""
    priority: int = pod["spec"].get("priority", 0)
    return priority


def duration_annotation(pod: KubeObject, annotation: str) -> Duration | None:
    """Return the duration in an annotation of the pod; None if it is missing or not a duration."""
    text = annotations_of(pod).get(annotation)
    try:
        return None if text is None else max(Duration(0), duration(text))
    except ValueError:
        return None


def eviction_of(key: Key) -> KubeObject:
    """Return the Eviction object to post to a pod's subresource `eviction`."""
    metadata = {"namespace": namespace_of(key), "name": name_of(key)}
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}


def is_evicted_by_drain(pod: KubeObject) -> bool:
    """Return whether `kubectl drain` evicts a pod; pods of DaemonSets and finished pods stay."""
    return is_active(pod) and (controller_of(pod) or {}).get("kind") != "DaemonSet"


def disruption_status(pod: KubeObject, reason: str, message: str, now: Instant) -> KubeObject:
    """Return the pod's status with the condition DisruptionTarget, which precedes the deletion of a pod."""
    condition = {"type": "DisruptionTarget", "status": "True", "lastProbeTime": None}
    return status_with_condition(pod, {**condition, "reason": reason, "message": message}, now)


def is_finished(pod: KubeObject) -> bool:
    """Return whether the pod's containers have ended and will not start again."""
    return phase_of(pod) in TERMINAL_PHASES


def finished_pods(pods: Sequence[KubeObject], status: KubeObject | None) -> Sequence[KubeObject]:
    """Return the pods of a batch that have ended; `status` is the status that they share, if they do."""
    if status is None:
        return [pod for pod in pods if pod["status"]["phase"] in TERMINAL_PHASES]
    return pods if status["phase"] in TERMINAL_PHASES else ()


def is_active(pod: KubeObject) -> bool:
    """Return whether the pod runs or will run (Kubernetes: pkg/controller/controller_utils.go, IsPodActive)."""
    return not is_finished(pod) and not is_being_deleted(pod)


def ready_since(pod: KubeObject) -> Instant | None:
    """Return when the pod became ready, or None if it is not ready."""
    condition = condition_of(pod, "Ready")
    if condition is None or condition["status"] != "True":
        return None
    since = condition.get("lastTransitionTime")
    return START if since is None else instant_of(since)


def is_ready(pod: KubeObject) -> bool:
    """Return whether the pod has condition Ready."""
    return has_condition(pod, "Ready")


def time_until_available(pod: KubeObject, min_ready_s: int, now: Instant) -> Duration | None:
    """Return how long until the pod counts as available: 0 if it already does, None if it is not ready.

    Kubernetes: pkg/api/v1/pod/util.go, IsPodAvailable.
    """
    since = ready_since(pod)
    if since is None:
        return None
    return Duration(max(0, since + min_ready_s * NANOSECONDS_PER_SECOND - now) if min_ready_s else 0)


def restarts_of(pod: KubeObject) -> int:
    """Return the largest restart count of the pod's containers."""
    statuses = pod.get("status", {}).get("containerStatuses") or ()
    return max((status["restartCount"] for status in statuses), default=0)
