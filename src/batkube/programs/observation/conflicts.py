"""Conflicts between schedulers that share a cluster.

Each decides on what it has heard of the cluster so far, and none asks the others. Two things can go wrong: a pod that
another has bound already is not bound again (HTTP 409, Kubernetes: pkg/registry/core/pod/storage, assignPod), and a pod
for which another's pods have left no room is turned away by the kubelet of its node (`OutOfcpu`: pkg/kubelet/lifecycle,
predicateAdmitHandler).
"""

from __future__ import annotations

from collections import Counter

from batkube.cluster.mapping import DEFAULT_SCHEDULER, POD
from batkube.cluster.store import MODIFIED, Batch, KubeObject
from batkube.cluster.world import World
from batkube.kernel.instants import Instant

_CONFLICT = 409
_REJECTION_PREFIX = "OutOf"


class SchedulerConflicts:
    """Counts the bindings of each program, those that came too late, and the pods that kubelets turned away."""

    def __init__(self, world: World) -> None:
        #: By the folder of the program, which no two of a run share.
        self.bindings: Counter[str] = Counter()
        self.refused_bindings: Counter[str] = Counter()
        #: By the scheduler that the pods named.
        self.rejected_pods: Counter[str] = Counter()
        world.store.subscribe(POD, self._on_pods_changed)

    def record_response(self, program: str, method: str, path: str, status: int) -> None:
        """Take note of what a program was answered, if it asked for a binding."""
        if method != "POST" or not path.endswith(("/binding", "/bindings")):
            return
        self.bindings[program] += status < 300
        self.refused_bindings[program] += status == _CONFLICT

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        if batch.type is not MODIFIED:
            return
        for change in batch.changes():
            if _is_rejected(change.object) and not _is_rejected(change.previous or {}):
                self.rejected_pods[change.object["spec"].get("schedulerName", DEFAULT_SCHEDULER)] += 1


def _is_rejected(pod: KubeObject) -> bool:
    return str(pod.get("status", {}).get("reason", "")).startswith(_REJECTION_PREFIX)
