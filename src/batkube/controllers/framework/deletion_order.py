"""Order in which a controller deletes surplus pods.

Pods that matter least go first: unbound, not running, not ready, with a low deletion cost, sharing a node with similar
pods, young (Kubernetes: pkg/controller/controller_utils.go, ActivePods and ActivePodsWithRanks).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from batkube.cluster.object_meta import annotations_of
from batkube.cluster.pods.accessors import is_active, node_of_pod, phase_of, ready_since, restarts_of
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant, instant_of

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def by_readiness(pods: Iterable[KubeObject]) -> list[KubeObject]:
    """Sort pods in the order of deletion used by Jobs (Kubernetes: ActivePods)."""

    def order(pod: KubeObject) -> tuple[int, ...]:
        ready, created = ready_since(pod), instant_of(pod["metadata"]["creationTimestamp"])
        return (*_startup_stage(pod, ready), -(ready or 0), -restarts_of(pod), -created)

    return sorted(pods, key=order)


def by_rank(pods: Iterable[KubeObject], related: Iterable[KubeObject], now: Instant) -> Sequence[KubeObject]:
    """Sort pods in the order of deletion used by ReplicaSets (Kubernetes: ActivePodsWithRanks).

    `related` are the pods of all ReplicaSets with the same owner. Ages are compared by their binary logarithm only, so
    that the youngest pods are not always the ones deleted.
    """
    pods_per_node = Counter(node_of_pod(pod) for pod in related if is_active(pod))

    def order(pod: KubeObject) -> tuple[int, int, int, int, int, int, int, int, str]:
        metadata, ready = pod["metadata"], ready_since(pod)
        return (
            *_startup_stage(pod, ready),
            _deletion_cost(pod),
            -pods_per_node[node_of_pod(pod)],
            -1 if ready is None else _log2(now - ready),
            -restarts_of(pod),
            _log2(now - instant_of(metadata["creationTimestamp"])),
            metadata["uid"],
        )

    return sorted(pods, key=order)


def _startup_stage(pod: KubeObject, ready: Instant | None) -> tuple[int, int, int]:
    return int(bool(node_of_pod(pod))), _PHASES.get(phase_of(pod), 1), int(ready is not None)


def _deletion_cost(pod: KubeObject) -> int:
    text = annotations_of(pod).get(DELETION_COST, "0")
    try:
        return int(text)
    except ValueError:
        return 0


def _log2(ns: int) -> int:
    """Return the integer part of the binary logarithm; -1 if `ns` is not positive."""
    return ns.bit_length() - 1 if ns > 0 else -1
