"""The kubelets of all nodes: they run every pod that is bound to a node.

    bound ─▶ admitted (or rejected: OutOf…) ─▶ Running ─▶ Succeeded / Failed, its node's resources released
    deleted ─▶ stopped within its grace period ─▶ gone
    its node fails ─▶ no more updates until the node is back: then restarted or failed

Kubelets treat all pods in the same way, whatever created them. What happens inside pods is the task of their runtimes
(`pods.runtime`). Pods that change together, such as those of one job, are handled as one group.

Kubelets receive bindings and deletions through the store, and write results through the API. They never write while
they are notified of a change, but book an appointment.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence

from batkube.cluster.client import ApiError, Client
from batkube.cluster.decisions import Binding
from batkube.cluster.mapping import POD
from batkube.cluster.object_meta import is_being_deleted
from batkube.cluster.pods.accessors import TERMINAL_PHASES, is_finished, node_of_pod, phase_of
from batkube.cluster.pods.pod_groups import PodGroup
from batkube.cluster.store import DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.execution.containers.termination import TerminationDelays
from batkube.execution.kubelet.failed_nodes import FailedNodes
from batkube.execution.latencies.delays import NO_DELAYS, Delays
from batkube.execution.nodes import host_ports
from batkube.execution.nodes.allocations import NodeAllocations
from batkube.execution.pods.runtime import AnyRuntime
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import Instant

BusyListener = Callable[[int, Instant], None]
"""Called with the number of nodes that have pods, whenever it may have changed."""


class Kubelets:
    """Runs pods on every node of the store."""

    def __init__(
        self,
        world: World,
        allocations: NodeAllocations,
        client: Client,
        runtimes: Sequence[AnyRuntime],
        delays: Delays = NO_DELAYS,
        on_busy: BusyListener = lambda count, now: None,
    ) -> None:
        self._store = world.store
        self._agenda = world.agenda
        self._notes = world.notes
        self._allocations = allocations
        self._ports = host_ports.HostPortAllocator()
        self._client = client
        self._runtimes = runtimes
        self._delays = delays
        self._termination = TerminationDelays(world.notes, delays)
        self._on_busy = on_busy
        #: The groups of which any pod holds resources, with their runtimes.
        self.live_groups: dict[PodGroup, AnyRuntime] = {}
        self._failed_nodes = FailedNodes(world, allocations, self)
        for runtime in runtimes:
            runtime.on_ended = functools.partial(self._on_containers_ended, runtime)
        world.store.subscribe(POD, self._on_pods_changed)

    # Notifications

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        """Handle bindings, updates and deletions of pods."""
        if batch.type is DELETED:
            self._failed_nodes.forget(batch.keys)
        elif batch.status is not None and batch.status["phase"] not in TERMINAL_PHASES:
            return  # only the status has changed, to one that kubelets write
        for runtime in self._runtimes:
            for group, positions, ranks in runtime.groups_in(batch, now):
                if batch.type is DELETED:
                    self.drop(runtime, group, ranks, now)
                elif isinstance(batch.decision, Binding) and len(ranks) == len(batch.keys):
                    self.admit(runtime, group, ranks, batch.decision.nodes, batch.objects[0], now)
                elif batch.status is None:
                    self._sync(runtime, group, ranks, batch.at(positions), now)
                elif group in self.live_groups:
                    self.drop(runtime, group, ranks, now)

    def _sync(
        self, runtime: AnyRuntime, group: PodGroup, ranks: Sequence[int], pods: Sequence[KubeObject], now: Instant
    ) -> None:
        """Admit bound pods, stop deleted ones, release those that another component has ended, and apply updates.

        Kubernetes: pkg/kubelet/pod_workers.go, UpdatePod.
        """
        bound: dict[int, str] = {}
        for rank, pod in zip(ranks, pods, strict=True):
            node = node_of_pod(pod)
            if node and is_being_deleted(pod):
                terminate = functools.partial(self._terminate, runtime, group, rank)
                self._agenda.book(now, Rank.FINISH, terminate)
            elif group.nodes[rank] is not None and is_finished(pod):
                self.drop(runtime, group, [rank], now)
            elif group.nodes[rank] is not None:
                runtime.update(group, rank, pod, now)
            elif node and group.scheduled[rank] is None and phase_of(pod) == "Pending":
                bound[rank] = node
        if bound:
            self.admit(runtime, group, list(bound), list(bound.values()), pods[0], now)

    # Admission

    def admit(
        self,
        runtime: AnyRuntime,
        group: PodGroup,
        ranks: Sequence[int],
        nodes: Sequence[str],
        pod: KubeObject,
        now: Instant,
    ) -> None:
        """Allocate the resources of pods, all equal to `pod`, on their nodes and book their starts, or reject them.

        Pods on nodes that have failed wait for the nodes.
        """
        runtime.record_binding(group, ranks, nodes, now)
        if failed := self._failed_nodes.among(nodes):
            ranks, nodes = self._failed_nodes.hold(runtime, group, ranks, nodes, failed, now)
            if not ranks:
                return
        shortage = self._allocations.allocate(nodes, group.demand)
        if shortage is not None:
            self._notes.add(shortage.note, example=f"{group.title} on {shortage.node}")
            runtime.reject(group, ranks, f"OutOf{shortage.resource}", str(shortage), now)
            return
        if not self._ports.allocate(nodes, group.keys_of(ranks), pod):
            self._allocations.release(nodes, group.demand)
            runtime.reject(group, ranks, host_ports.REASON, host_ports.MESSAGE, now)
            return
        self.live_groups[group] = runtime
        group.record_admission(ranks, nodes, now)
        self._on_busy(self._allocations.busy_node_count, now)
        runtime.admit(group, self._delays.ranks_by_start(now, ranks, nodes, pod), now)

    # The end of containers

    def _on_containers_ended(self, runtime: AnyRuntime, group: PodGroup, ranks: Sequence[int], now: Instant) -> None:
        """Finish pods whose containers have ended by themselves, each after its report latency."""
        for reported, some_ranks in self._delays.ranks_by_report(now, ranks).items():
            if reported == now:
                self._finish(runtime, group, some_ranks, now)
            else:
                finish = functools.partial(self._finish_late, runtime, group, some_ranks)
                self._agenda.book(reported, Rank.FINISH, finish)

    def _finish_late(self, runtime: AnyRuntime, group: PodGroup, ranks: Sequence[int], now: Instant) -> None:
        """Finish pods, and remove those that were deleted meanwhile."""
        live_keys = group.keys_of(group.live_ranks(ranks))
        self._finish(runtime, group, ranks, now)
        for key in live_keys:
            pod = self._store.get(POD, key)
            if pod is not None and is_being_deleted(pod):
                self.remove(key, now)

    def _finish(self, runtime: AnyRuntime, group: PodGroup, ranks: Sequence[int], now: Instant) -> None:
        """Release pods, unless they are gone, and report their end."""
        if live_ranks := self._release(runtime, group, ranks, now):
            runtime.report_end(group, live_ranks, now)

    def _release(self, runtime: AnyRuntime, group: PodGroup, ranks: Sequence[int], now: Instant) -> Sequence[int]:
        """Release everything that pods hold; return the ranks of those that held anything."""
        live_ranks = group.live_ranks(ranks)
        if live_ranks:
            runtime.release(group, live_ranks, now)
            nodes = group.pop_nodes(live_ranks)
            self._ports.release(nodes, group.keys, live_ranks)
            if not group.is_live:
                del self.live_groups[group]
            self._allocations.release(nodes, group.demand)
            self._on_busy(self._allocations.busy_node_count, now)
        return live_ranks

    # Deletion

    def _terminate(self, runtime: AnyRuntime, group: PodGroup, rank: int, now: Instant) -> None:
        """Stop a deleted pod: at once if it has ended, else when its containers have stopped."""
        key = group.keys[rank]
        pod = self._store.get(POD, key)
        if pod is None or not is_being_deleted(pod):
            return
        if group.nodes[rank] is not None:
            stopped = self._termination.pod_stopped_at(pod, runtime.files_of(group), now)
            runtime.begin_stop(group, rank, now)
            self._agenda.book(stopped, Rank.FINISH, functools.partial(self._on_stopped, runtime, group, rank))
        elif node_of_pod(pod) not in self._failed_nodes:
            self.remove(key, now)

    def _on_stopped(self, runtime: AnyRuntime, group: PodGroup, rank: int, now: Instant) -> None:
        """Report the end of a deleted pod, whose owner must see it, and remove the pod."""
        if group.nodes[rank] is not None:
            runtime.kill(group, rank, now)
            self._finish(runtime, group, [rank], now)
            self.remove(group.keys[rank], now)

    def remove(self, key: Key, now: Instant) -> None:
        """Delete a pod that has ended from the API server; its finalizers may delay that."""
        pod = self._store.get(POD, key)
        if pod is not None:
            with contextlib.suppress(ApiError):
                self._client.delete(POD, key, now, grace_s=0, uid=pod["metadata"].get("uid"))

    def drop(self, runtime: AnyRuntime, group: PodGroup, ranks: Sequence[int], now: Instant) -> None:
        """Release pods that are gone or lost, or that another component has ended."""
        runtime.on_gone(group, ranks, now)
        if group in self.live_groups:
            self._release(runtime, group, ranks, now)
