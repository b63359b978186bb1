"""Nodes without a kubelet, because they failed, are gone or are not there yet, and the pods that wait for them.

A failed node is silent: its pods' processes are gone, and nobody says so. When it comes back, its kubelet starts the
pods again, or says that they have failed, and finishes those that were deleted meanwhile.

A scheduler that has not heard of it may bind pods to such a node. They are stranded there until the node is back, or
for as long as pods tolerate it by default (Kubernetes: plugin/pkg/admission/defaulttolerationseconds). One that never
hears of it may do so for ever; then the run has failed.
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
#: A job that was bound so often to nodes that had failed, and did nothing in between, will not do anything else.
_MAX_FAILED_BINDINGS = 100

PodEntry = JobExecution | PodState
"""What a kubelet knows of a pod: the course it has part in, or the state of its containers."""


class PodManager(Protocol):
    """The kubelets, as far as it takes to take pods from them and to give them back."""

    pod_states: dict[Key, PodEntry]

    @property
    def driver(self) -> ExecutionDriver:
        """Who knows the courses."""

    def forget(self, keys: Sequence[Key], now: Instant) -> None:
        """Let go of pods."""

    def admit_pod(self, key: Key, pod: KubeObject, now: Instant, before: PodState | None = None) -> None:
        """Start a pod, again if it ran `before`."""

    def remove(self, key: Key, uid: str, now: Instant) -> None:
        """Let the API forget a pod."""

    def mark_lost(self, key: Key, now: Instant) -> None:
        """Write that a pod of a course was lost with its node."""


class FailedNodes:
    """Which nodes are away, and which pods wait for them; takes pods from the kubelets, and gives them back."""

    def __init__(self, world: World, accounts: NodeAllocations, kubelets: PodManager) -> None:
        self._store = world.store
        self._agenda = world.agenda
        self._silent = world.heartbeats.silent
        self._allocations = accounts
        self._executions = world.executions
        self._kubelets = kubelets
        #: Pods by the name of the node they are bound to; with their life until the node went away, if they had one.
        self._waiting: dict[str, dict[Key, PodEntry | None]] = {}
        #: How often jobs were stranded in a row, and what work was lost of them before.
        self._failed_bindings: dict[str, tuple[int, int]] = {}
        world.store.subscribe(NODE, self._on_nodes_changed)
        world.store.subscribe(POD, self._on_pods_changed)
        world.heartbeats.subscribe(self._on_node_failed, self._on_node_returned)

    def __contains__(self, node: str) -> bool:
        return node in self._silent or node not in self._allocations

    def hold_pod(self, node: str, key: Key) -> None:
        """Let a pod wait for its node."""
        self._waiting.setdefault(node, {})[key] = None

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        """Forget pods that are gone, where any wait."""
        if self._waiting and batch.type is DELETED:
            for node, waiting in list(self._waiting.items()):
                for key in batch.keys:
                    waiting.pop(key, None)
                if not waiting:
                    del self._waiting[node]

    def hold_pods(self, execution: JobExecution, keys: Sequence[Key], nodes: Sequence[str], now: Instant) -> bool:
        """Let those of a course's pods wait that were bound to a node that has failed; return whether there are any."""
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
        """Count how often a job was stranded in a row; if that goes on and on, the run has failed."""
        count, work = self._failed_bindings.get(execution.job.key, (0, -1))
        count = count + 1 if work == execution.past.lost_work else 1
        self._failed_bindings[execution.job.key] = count, execution.past.lost_work
        if count > _MAX_FAILED_BINDINGS:
            self._agenda.book(now, Rank.FINISH, functools.partial(_fail_run, execution))

    def _report_lost(self, execution: JobExecution, now: Instant) -> None:
        """Say that a course is lost, unless it is over: the node may have come back."""
        place = self._executions.find(execution.keys[0])
        if place is not None and place[0] is execution:
            self._kubelets.driver.handle_node_loss(execution, now)

    def _on_nodes_changed(self, batch: Batch, now: Instant) -> None:
        for name in batch.keys:
            if batch.type is DELETED:
                self._on_node_failed(name, now)
            elif batch.type is ADDED:
                self._on_node_returned(name, now)

    def _on_node_failed(self, node: str, now: Instant) -> None:
        """A node failed or is gone, and the processes of its pods with it; who knows courses is told."""
        lost = _entries_on(node, self._kubelets.pod_states)
        if lost:
            self._waiting.setdefault(node, {}).update(lost)
        self._kubelets.forget(list(lost), now)
        for execution in dict.fromkeys(pod_state for pod_state in lost.values() if isinstance(pod_state, JobExecution)):
            self._kubelets.driver.handle_node_loss(execution, now)

    def _on_node_returned(self, node: str, now: Instant) -> None:
        """A node came, or came back: its kubelet sees the pods that it should have."""
        if waiting := self._waiting.pop(node, {}):
            self._agenda.book(now, Rank.START, functools.partial(self._restart_pods, node, waiting))

    def _restart_pods(self, node: str, waiting: Mapping[Key, PodEntry | None], now: Instant) -> None:
        for key, before in waiting.items():
            pod = self._store.get(POD, key)
            # Meanwhile there may be another pod of the name, elsewhere.
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
        "its scheduler does not hear of them, and the run would not end\n"
        "  remedy: let the scheduler hear of nodes, let nodes come back, or let such jobs fail with --on-failure fail"
    )


def _entries_on(node: str, pod_states: Mapping[Key, PodEntry]) -> dict[Key, PodEntry]:
    """Return those of the pods that are on a node; each course is looked through once."""
    there: dict[Key, PodEntry] = {}
    for key, pod_state in pod_states.items():
        if isinstance(pod_state, PodState):
            if pod_state.node == node:
                there[key] = pod_state
        elif key == pod_state.keys[0] or pod_state.keys[0] not in pod_states:
            there |= {one: pod_state for one, on in zip(pod_state.keys, pod_state.nodes, strict=True) if on == node}
    return there
