"""What a pod's status says, in the questions that controllers, kubelets and schedulers ask of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from batkube.cluster.object_meta import (
    annotations_of,
    condition_of,
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
    """Return the pod's phase; Pending when it has none yet."""
    phase: str = pod.get("status", {}).get("phase", "Pending")
    return phase


def is_running(pod: KubeObject) -> bool:
    """Return whether the pod's phase says that it runs."""
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
    """Return how important the pod is; 0 where nobody has said."""
    priority: int = pod["spec"].get("priority", 0)
    return priority


def duration_annotation(pod: KubeObject, annotation: str) -> Duration | None:
    """Return the length of time that an annotation of the pod tells; one that cannot be read tells nothing."""
    text = annotations_of(pod).get(annotation)
    try:
        return None if text is None else max(Duration(0), duration(text))
    except ValueError:
        return None


def eviction_of(key: Key) -> KubeObject:
    """Return what is posted to a pod's sub-resource `eviction` to ask it to leave."""
    metadata = {"namespace": namespace_of(key), "name": name_of(key)}
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}


def disruption_status(pod: KubeObject, reason: str, message: str, now: Instant) -> KubeObject:
    """Return the pod's status with what is said of one that somebody is about to end (condition DisruptionTarget)."""
    kind = {"type": "DisruptionTarget", "status": "True", "lastProbeTime": None}
    return status_with_condition(pod, {**kind, "reason": reason, "message": message}, now)


def is_finished(pod: KubeObject) -> bool:
    """Return whether the pod's containers have ended and will not start again."""
    return phase_of(pod) in TERMINAL_PHASES


def finished_pods(pods: Sequence[KubeObject], status: KubeObject | None) -> Sequence[KubeObject]:
    """Return those pods of a batch that have ended; it is enough to look at the `status` that all were given, if so."""
    if status is None:
        return [pod for pod in pods if pod["status"]["phase"] in TERMINAL_PHASES]
    return pods if status["phase"] in TERMINAL_PHASES else ()


def is_active(pod: KubeObject) -> bool:
    """Return whether the pod runs or will run (Kubernetes: controller.IsPodActive)."""
    return not is_finished(pod) and not is_being_deleted(pod)


def ready_since(pod: KubeObject) -> Instant | None:
    """Return since when the pod is ready, or None when it is not."""
    condition = condition_of(pod, "Ready")
    if condition is None or condition["status"] != "True":
        return None
    since = condition.get("lastTransitionTime")
    return START if since is None else instant_of(since)


def is_ready(pod: KubeObject) -> bool:
    """Return whether the pod is ready to serve."""
    return has_condition(pod, "Ready")


def time_until_available(pod: KubeObject, min_ready_s: int, now: Instant) -> Duration | None:
    """Return in how long the pod will count as available: 0 when it does already, None when it is not ready."""
    since = ready_since(pod)
    if since is None:
        return None
    return Duration(max(0, since + min_ready_s * NANOSECONDS_PER_SECOND - now) if min_ready_s else 0)


def restarts_of(pod: KubeObject) -> int:
    """Return how often the container that was restarted most often was."""
    statuses = pod.get("status", {}).get("containerStatuses") or ()
    return max((status["restartCount"] for status in statuses), default=0)
