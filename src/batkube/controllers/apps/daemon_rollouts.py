"""How a DaemonSet's pods are renewed when its template has changed: which go, and where new ones come beside old ones.

Without a surge pods of the older template are ended, as many as may be missing, and new ones follow. With one, a new
pod comes beside the old one, which is ended as soon as the new one is available: on as many nodes at a time as the
surge allows, and wherever the old one is of no use anyway. Kubernetes: pkg/controller/daemon/update.go, rollingUpdate;
daemon_controller.go, podsShouldBeOnNode.
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
    """What to do next: the pods to end, and the nodes that get a new pod beside their old one."""

    pods_to_delete: list[KubeObject]
    nodes_to_surge: list[str]


def max_surge(owner: KubeObject, desired: int) -> int:
    """Return on how many nodes at a time a new pod may come beside the old one."""
    return scaled_value(_rolling_update_limits(owner).get("maxSurge", 0), desired, round_up=True)


def next_step(owner: KubeObject, pods: PodsByNode, eligible: Sequence[str], digest: str, now: Instant) -> RolloutStep:
    """Return what brings the pods of a DaemonSet nearer to the template whose hash is `digest`."""
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
    """Return those of a node's pods, in the order of their age, that are too many where a surge is allowed.

    A new one and an old one may be there, as long as the old one is of use and the new one is not yet.
    """
    new = [pod for pod in running if hash_of_pod(pod) == digest]
    old = [pod for pod in running if hash_of_pod(pod) != digest]
    surplus = [*new[1:], *old[1:]]
    if new and old and (not is_ready(old[0]) or is_available(owner, new[0], now)):
        surplus.append(old[0])
    return surplus


def hash_of_pod(pod: KubeObject) -> str:
    """Return the hash of the template that a pod was made from."""
    return str(labels_of(pod).get(REVISION_LABEL, ""))


def is_available(owner: KubeObject, pod: KubeObject, now: Instant) -> bool:
    """Return whether a pod has been ready for as long as its DaemonSet wants."""
    return is_ready(pod) and time_until_available(pod, owner["spec"].get("minReadySeconds", 0), now) == 0


def _rolling_update_limits(owner: KubeObject) -> KubeObject:
    return (owner["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}


class _Nodes:
    """The nodes of a DaemonSet, each with its oldest new and its oldest old pod that are not being deleted."""

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
        self.new = {name: _first_pod(some, digest, is_new=True) for name, some in alive.items()}
        self.old = {name: _first_pod(some, digest, is_new=False) for name, some in alive.items()}

    def has_available(self, pod: KubeObject | None) -> bool:
        """Return whether there is such a pod and it is available."""
        return pod is not None and is_available(self._owner, pod, self._now)


def _first_pod(pods: Sequence[KubeObject], digest: str, *, is_new: bool) -> KubeObject | None:
    return next((pod for pod in pods if (hash_of_pod(pod) == digest) == is_new), None)


def _replacement_step(nodes: _Nodes, limit: int | str) -> RolloutStep:
    """End old pods that are not well, which are missing already, and as many others as may be missing."""
    most = scaled_value(limit, len(nodes.eligible), round_up=True) or 1
    old = [pod for name in nodes.eligible if (pod := nodes.old[name]) is not None]
    ill = [pod for pod in old if not nodes.has_available(pod)]
    missing = sum(not nodes.has_available(nodes.old[name] or nodes.new[name]) for name in nodes.eligible)
    others = [pod for pod in old if nodes.has_available(pod)]
    return RolloutStep([*ill, *others[: max(0, most - missing)]], [])


def _surge_step(nodes: _Nodes, surge: int) -> RolloutStep:
    """Put new pods beside old ones, and end old ones that have a successor, or that a node should not have any more."""
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
    # Who surges expects everything to be available: a pod goes from a node only when there is another one elsewhere.
    outgoing += misplaced[: max(0, available - len(nodes.eligible))]
    return RolloutStep(outgoing, [*replaced, *candidates[: max(0, surge)]])
