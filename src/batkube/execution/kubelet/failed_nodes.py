"""Nodes without a running kubelet (failed, deleted or not created yet), and the pods bound to them.

A failed node is silent: its pods' processes are gone, and nothing reports that. When the node returns, its kubelet
restarts the pods or reports them as failed, and finishes those that were deleted meanwhile.
"""

from __future__ import annotations

import functools
from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple, Protocol

from batkube.cluster.mapping import NODE, POD
from batkube.cluster.object_meta import is_being_deleted
from batkube.cluster.pods.accessors import is_finished, node_of_pod
from batkube.cluster.pods.pod_groups import PodGroup
from batkube.cluster.store import ADDED, DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.execution.nodes.allocations import NodeAllocations
from batkube.execution.pods.runtime import AnyRuntime
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import Instant


class PodManager(Protocol):
    """The operations of the kubelets that failed nodes need."""

    live_groups: dict[PodGroup, AnyRuntime]

    def drop(self, runtime: AnyRuntime, group: PodGroup, ranks: Sequence[int], now: Instant) -> None:
        """Release pods whose node is lost."""

    def admit(
        self,
        runtime: AnyRuntime,
        group: PodGroup,
        ranks: Sequence[int],
        nodes: Sequence[str],
        pod: KubeObject,
        now: Instant,
    ) -> None:
        """Admit pods, all equal to `pod`, or reject them."""

    def remove(self, key: Key, now: Instant) -> None:
        """Delete a pod from the API server."""


class _HeldPod(NamedTuple):
    runtime: AnyRuntime
    group: PodGroup
    rank: int


class FailedNodes:
    """Holds the pods of nodes without a running kubelet, and returns them to the kubelets when the nodes are back."""

    def __init__(self, world: World, allocations: NodeAllocations, kubelets: PodManager) -> None:
        self._store = world.store
        self._agenda = world.agenda
        self._silent = world.heartbeats.silent
        self._allocations = allocations
        self._kubelets = kubelets
        #: The held pods by node, each with its runtime, group and rank.
        self._waiting: dict[str, dict[Key, _HeldPod]] = {}
        world.store.subscribe(NODE, self._on_nodes_changed)
        world.heartbeats.subscribe(self._on_node_failed, self._on_node_returned)

    def __contains__(self, node: str) -> bool:
        return node in self._silent or node not in self._allocations

    def among(self, nodes: Sequence[str]) -> Container[str]:
        """Return which of the nodes have no running kubelet."""
        unknown = self._allocations.unknown_nodes(nodes)
        return {*unknown, *self._silent} if unknown or not self._silent.keys().isdisjoint(nodes) else ()

    def hold(
        self,
        runtime: AnyRuntime,
        group: PodGroup,
        ranks: Sequence[int],
        nodes: Sequence[str],
        failed: Container[str],
        now: Instant,
    ) -> tuple[Sequence[int], Sequence[str]]:
        """Hold the pods on `failed` nodes until these are back; return ranks and nodes of the others."""
        held: dict[int, str] = {}
        for rank, node in zip(ranks, nodes, strict=True):
            if node in failed and group.keys[rank] not in self._waiting.get(node, ()):
                held[rank] = node
                self._waiting.setdefault(node, {})[group.keys[rank]] = _HeldPod(runtime, group, rank)
        if held:
            runtime.on_held(group, list(held), list(held.values()), now)
        others = [(rank, node) for rank, node in zip(ranks, nodes, strict=True) if node not in failed]
        return [rank for rank, _ in others], [node for _, node in others]

    def forget(self, keys: Sequence[Key]) -> None:
        """Remove deleted pods from the held ones."""
        for node, waiting in list(self._waiting.items()):
            for key in keys:
                waiting.pop(key, None)
            if not waiting:
                del self._waiting[node]

    def _on_nodes_changed(self, batch: Batch, now: Instant) -> None:
        for name in batch.keys:
            if batch.type is DELETED:
                self._on_node_failed(name, now)
            elif batch.type is ADDED:
                self._on_node_returned(name, now)

    def _on_node_failed(self, node: str, now: Instant) -> None:
        """Take the pods of a failed or deleted node from the kubelets, and report the loss to their runtimes."""
        lost = [
            (runtime, group, [rank for rank, pod_node in enumerate(group.nodes) if pod_node == node])
            for group, runtime in self._kubelets.live_groups.items()
            if node in group.nodes
        ]
        for runtime, group, ranks in lost:
            waiting = self._waiting.setdefault(node, {})
            waiting |= {group.keys[rank]: _HeldPod(runtime, group, rank) for rank in ranks}
            self._kubelets.drop(runtime, group, ranks, now)
        for runtime, group, _ in lost:
            runtime.on_node_lost(group, now)

    def _on_node_returned(self, node: str, now: Instant) -> None:
        """Restart the held pods of a node that was created or has returned."""
        if waiting := self._waiting.pop(node, {}):
            self._agenda.book(now, Rank.START, functools.partial(self._resume_pods, node, waiting))

    def _resume_pods(self, node: str, waiting: Mapping[Key, _HeldPod], now: Instant) -> None:
        for key, (runtime, group, rank) in waiting.items():
            pod = self._store.get(POD, key)
            # Meanwhile another pod of the same name may exist on another node.
            if pod is None or node_of_pod(pod) != node:
                continue
            resumed = None if is_finished(pod) else runtime.resume(group, rank, pod, now)
            if is_being_deleted(pod):
                self._kubelets.remove(key, now)
            elif resumed is not None:
                self._kubelets.admit(runtime, resumed, [rank], [node], pod, now)
