"""Nodes without a running kubelet (failed, deleted or not created yet), and the pods bound to them.

A failed node is silent: its pods' processes are gone, and nothing reports that. When the node returns, its kubelet
restarts the pods or reports them as failed, and finishes those that were deleted meanwhile.

A scheduler that does not know of the failure may bind pods to such a node. They stay there until the node returns, or
for the default toleration time (Kubernetes: plugin/pkg/admission/defaulttolerationseconds). A scheduler that ignores
node failures altogether would do that forever; the run then fails.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Protocol

from batkube.cluster.jobs.executions import ExecutionDriver, JobExecution
from batkube.cluster.mapping import NODE, POD
from batkube.cluster.object_meta import is_being_deleted
from batkube.cluster.pods.accessors import is_finished, node_of_pod
from batkube.cluster.store import ADDED, DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.execution.nodes.allocations import NodeAllocations
from batkube.execution.pods.state import PodState
from batkube.kernel.agenda import Rank
from batkube.kernel.errors import RunFailed
from batkube.kernel.instants import Duration, Instant, after, seconds

#: How long pods stay bound to a node that has failed.
_TOLERATION: Duration = seconds(300)
#: The run fails when a job was bound this often in a row to failed nodes, without doing any work.
_MAX_FAILED_BINDINGS = 100

PodEntry = JobExecution | PodState
"""A kubelet's record of a pod: the execution of its job, or the state of its containers."""


class PodManager(Protocol):
    """The operations of the kubelets that failed nodes need."""

    pod_states: dict[Key, PodEntry]

    @property
    def driver(self) -> ExecutionDriver:
        """The driver of job executions."""

    def forget(self, keys: Sequence[Key], now: Instant) -> None:
        """Remove pods from the kubelets."""

    def admit_pod(self, key: Key, pod: KubeObject, now: Instant, before: PodState | None = None) -> None:
        """Admit a pod; `before` is its state before its node failed."""

    def remove(self, key: Key, uid: str, now: Instant) -> None:
        """Delete a pod from the API server."""

    def mark_lost(self, key: Key, now: Instant) -> None:
        """Write that a pod of a job execution was lost with its node."""


class FailedNodes:
    """Holds the pods of nodes that are away, and returns them to the kubelets when the nodes are back."""

    def __init__(self, world: World, allocations: NodeAllocations, kubelets: PodManager) -> None:
        self._store = world.store
        self._agenda = world.agenda
        self._silent = world.heartbeats.silent
        self._allocations = allocations
        self._executions = world.executions
        self._kubelets = kubelets
        #: The held pods by node, each with its record from before the node failed, if it had one.
        self._waiting: dict[str, dict[Key, PodEntry | None]] = {}
        #: By job: how often in a row it was bound to a failed node, and its lost work before that.
        self._failed_bindings: dict[str, tuple[int, int]] = {}
        world.store.subscribe(NODE, self._on_nodes_changed)
        world.store.subscribe(POD, self._on_pods_changed)
        world.heartbeats.subscribe(self._on_node_failed, self._on_node_returned)

    def __contains__(self, node: str) -> bool:
        return node in self._silent or node not in self._allocations

    def hold_pod(self, node: str, key: Key) -> None:
        """Hold a pod until its node is back."""
        self._waiting.setdefault(node, {})[key] = None

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        """Remove deleted pods from the held ones."""
        if self._waiting and batch.type is DELETED:
            for node, waiting in list(self._waiting.items()):
                for key in batch.keys:
                    waiting.pop(key, None)
                if not waiting:
                    del self._waiting[node]

    def hold_pods(self, execution: JobExecution, keys: Sequence[Key], nodes: Sequence[str], now: Instant) -> bool:
        """Hold the pods of an execution that were bound to a failed node; return whether there are any."""
        if not self._silent or self._silent.keys().isdisjoint(nodes):
            return False
        for key, node in zip(keys, nodes, strict=True):
            if node in self._silent:
                self.hold_pod(node, key)
        if not execution.has_lost_node:
            execution.has_lost_node = True
            self._count_failed_binding(execution, now)
            self._agenda.book(after(now, _TOLERATION), Rank.FINISH, functools.partial(self._report_lost, execution))
        return True

    def _count_failed_binding(self, execution: JobExecution, now: Instant) -> None:
        """Count how often in a row a job was bound to a failed node, and fail the run beyond the limit."""
        count, work = self._failed_bindings.get(execution.job.key, (0, -1))
        count = count + 1 if work == execution.past.lost_work else 1
        self._failed_bindings[execution.job.key] = count, execution.past.lost_work
        if count > _MAX_FAILED_BINDINGS:
            self._agenda.book(now, Rank.FINISH, functools.partial(_fail_run, execution))

    def _report_lost(self, execution: JobExecution, now: Instant) -> None:
        """Report that an execution is lost, unless it has ended or was replaced meanwhile."""
        entry = self._executions.find(execution.keys[0])
        if entry is not None and entry[0] is execution:
            self._kubelets.driver.handle_node_loss(execution, now)

    def _on_nodes_changed(self, batch: Batch, now: Instant) -> None:
        for name in batch.keys:
            if batch.type is DELETED:
                self._on_node_failed(name, now)
            elif batch.type is ADDED:
                self._on_node_returned(name, now)

    def _on_node_failed(self, node: str, now: Instant) -> None:
        """Take the pods of a failed or deleted node from the kubelets, and report the node loss of their jobs."""
        lost = _entries_on(node, self._kubelets.pod_states)
        if lost:
            self._waiting.setdefault(node, {}).update(lost)
        self._kubelets.forget(list(lost), now)
        for execution in dict.fromkeys(pod_state for pod_state in lost.values() if isinstance(pod_state, JobExecution)):
            self._kubelets.driver.handle_node_loss(execution, now)

    def _on_node_returned(self, node: str, now: Instant) -> None:
        """Restart the held pods of a node that was created or has returned."""
        if waiting := self._waiting.pop(node, {}):
            self._agenda.book(now, Rank.START, functools.partial(self._restart_pods, node, waiting))

    def _restart_pods(self, node: str, waiting: Mapping[Key, PodEntry | None], now: Instant) -> None:
        for key, before in waiting.items():
            pod = self._store.get(POD, key)
            # Meanwhile another pod of the same name may exist on another node.
            if pod is None or node_of_pod(pod) != node or key in self._kubelets.pod_states or is_finished(pod):
                continue
            if is_being_deleted(pod):
                self._kubelets.remove(key, pod["metadata"]["uid"], now)
            elif self._executions.find(key) is not None:
                self._kubelets.mark_lost(key, now)
            else:
                self._kubelets.admit_pod(key, pod, now, before if isinstance(before, PodState) else None)


def _fail_run(execution: JobExecution, now: Instant) -> None:
    raise RunFailed(
        f"job {execution.job.key} was bound {_MAX_FAILED_BINDINGS} times in a row to nodes that had failed: "
        "its scheduler ignores node failures, and the run would not end\n"
        "  remedy: use a scheduler that watches nodes, let nodes return, or let such jobs fail with --on-failure fail"
    )


def _entries_on(node: str, records: Mapping[Key, PodEntry]) -> dict[Key, PodEntry]:
    """Return the records of the pods on a node; each job execution is examined once."""
    entries: dict[Key, PodEntry] = {}
    for key, record in records.items():
        if isinstance(record, PodState):
            if record.node == node:
                entries[key] = record
        elif key == record.keys[0] or record.keys[0] not in records:
            pairs = zip(record.keys, record.nodes, strict=True)
            entries |= {pod: record for pod, pod_node in pairs if pod_node == node}
    return entries
