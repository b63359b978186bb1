"""Rolling updates of DaemonSets: which pods to delete, and where to create a new pod next to the old one.

Without a surge, up to maxUnavailable old pods are deleted, and new ones replace them. With a surge, a new pod is
created next to the old one, which is deleted once the new one is available; this happens on up to maxSurge nodes at a
time, and on every node whose old pod is not available. Kubernetes: pkg/controller/daemon/update.go, rollingUpdate;
pkg/controller/daemon/daemon_controller.go, podsShouldBeOnNode.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from batkube.cluster.object_meta import is_being_deleted, labels_of
from batkube.cluster.pods.accessors import is_ready, time_until_available
from batkube.cluster.store import KubeObject
from batkube.controllers.apps.revisions import REVISION_LABEL
from batkube.controllers.framework.int_or_percent import scaled_value
from batkube.kernel.instants import Instant

PodsByNode = Mapping[str, Sequence[KubeObject]]


class RolloutStep(NamedTuple):
    """The next step of a rollout: pods to delete, and nodes that get a new pod next to the old one."""

    pods_to_delete: list[KubeObject]
    nodes_to_surge: list[str]


def max_surge(owner: KubeObject, desired: int) -> int:
    """Return on how many nodes at a time a new pod may run next to the old one."""
    return scaled_value(_rolling_update_limits(owner).get("maxSurge", 0), desired, round_up=True)


def next_step(owner: KubeObject, pods: PodsByNode, eligible: Sequence[str], digest: str, now: Instant) -> RolloutStep:
    """Return the next step towards the template whose hash is `digest`."""
    strategy = owner["spec"].get("updateStrategy") or {}
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return RolloutStep([], [])
    nodes = _Nodes(owner, pods, eligible, digest, now)
    surge = max_surge(owner, len(eligible))
    return (
        _surge_step(nodes, surge)
        if surge
        else _replacement_step(nodes, _rolling_update_limits(owner).get("maxUnavailable", 1))
    )


def surplus_pods(owner: KubeObject, running: Sequence[KubeObject], digest: str, now: Instant) -> list[KubeObject]:
    """Return the surplus pods of a node, given its pods ordered by age, if a surge is allowed.

    A new and an old pod may coexist while the old one is ready and the new one is not yet available.
    """
    new = [pod for pod in running if hash_of_pod(pod) == digest]
    old = [pod for pod in running if hash_of_pod(pod) != digest]
    surplus = [*new[1:], *old[1:]]
    if new and old and (not is_ready(old[0]) or is_available(owner, new[0], now)):
        surplus.append(old[0])
    return surplus


def hash_of_pod(pod: KubeObject) -> str:
    """Return the template hash of a pod."""
    return str(labels_of(pod).get(REVISION_LABEL, ""))


def is_available(owner: KubeObject, pod: KubeObject, now: Instant) -> bool:
    """Return whether a pod has been ready for minReadySeconds."""
    return is_ready(pod) and time_until_available(pod, owner["spec"].get("minReadySeconds", 0), now) == 0


def _rolling_update_limits(owner: KubeObject) -> KubeObject:
    return (owner["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}


class _Nodes:
    """The nodes of a DaemonSet, each with its oldest new and oldest old pod that is not being deleted."""

    def __init__(
        self, owner: KubeObject, pods: PodsByNode, eligible: Collection[str], digest: str, now: Instant
    ) -> None:
        self.eligible = eligible
        self._owner = owner
        self._now = now
        alive = {
            name: [pod for pod in pods.get(name, ()) if not is_being_deleted(pod)]
            for name in dict.fromkeys([*eligible, *pods])
        }
        self.new = {name: _first_pod(node_pods, digest, is_new=True) for name, node_pods in alive.items()}
        self.old = {name: _first_pod(node_pods, digest, is_new=False) for name, node_pods in alive.items()}

    def has_available(self, pod: KubeObject | None) -> bool:
        """Return whether `pod` exists and is available."""
        return pod is not None and is_available(self._owner, pod, self._now)


def _first_pod(pods: Sequence[KubeObject], digest: str, *, is_new: bool) -> KubeObject | None:
    return next((pod for pod in pods if (hash_of_pod(pod) == digest) == is_new), None)


def _replacement_step(nodes: _Nodes, limit: int | str) -> RolloutStep:
    """Delete unhealthy old pods first, then as many others as maxUnavailable allows."""
    limit_count = scaled_value(limit, len(nodes.eligible), round_up=True) or 1
    old = [pod for name in nodes.eligible if (pod := nodes.old[name]) is not None]
    unhealthy = [pod for pod in old if not nodes.has_available(pod)]
    unavailable = sum(not nodes.has_available(nodes.old[name] or nodes.new[name]) for name in nodes.eligible)
    healthy = [pod for pod in old if nodes.has_available(pod)]
    return RolloutStep([*unhealthy, *healthy[: max(0, limit_count - unavailable)]], [])


def _surge_step(nodes: _Nodes, surge: int) -> RolloutStep:
    """Create new pods next to old ones; delete old pods with an available successor, and those on wrong nodes."""
    outgoing: list[KubeObject] = []
    misplaced: list[KubeObject] = []
    replaced: list[str] = []
    candidates: list[str] = []
    available = 0
    for name, old in nodes.old.items():
        new = nodes.new[name]
        available += nodes.has_available(old if old is not None else new)
        if old is None:
            continue
        if new is not None:
            if nodes.has_available(new):
                outgoing.append(old)
            else:
                surge -= 1
        elif name in nodes.eligible:
            (candidates if nodes.has_available(old) else replaced).append(name)
        elif nodes.has_available(old):
            misplaced.append(old)
        else:
            outgoing.append(old)
    # With a surge all pods are expected to stay available: delete a misplaced pod only if there are more than enough.
    outgoing += misplaced[: max(0, available - len(nodes.eligible))]
    return RolloutStep(outgoing, [*replaced, *candidates[: max(0, surge)]])
