"""Conflicts between schedulers that share a cluster.

Schedulers decide independently, each on its own view of the cluster. Two conflicts are possible:

* A binding fails if another scheduler has already bound the pod (HTTP 409, Kubernetes: pkg/registry/core/pod/storage,
  assignPod).
* A kubelet rejects a pod if pods of another scheduler have used up its node (`OutOfcpu`: pkg/kubelet/lifecycle,
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
    """Counts each program's bindings, its conflicting bindings, and the pods rejected by kubelets."""

    def __init__(self, world: World) -> None:
        #: Successful and conflicting bindings, by the folder of the program, which is unique in a run.
        self.bindings: Counter[str] = Counter()
        self.refused_bindings: Counter[str] = Counter()
        #: Rejected pods, by `schedulerName`.
        self.rejected_pods: Counter[str] = Counter()
        world.store.subscribe(POD, self._on_pods_changed)

    def record_response(self, program: str, method: str, path: str, status: int) -> None:
        """Count a response to a binding request."""
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
