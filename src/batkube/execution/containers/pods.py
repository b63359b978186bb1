"""The runtime of pods whose containers have plans of their own: those of controllers, of manifests and of kubectl."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from batkube.cluster.mapping import POD
from batkube.cluster.object_meta import is_being_deleted
from batkube.cluster.pods.accessors import node_of_pod, phase_of
from batkube.cluster.pods.resources import spec_demand
from batkube.cluster.store import DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.execution.containers.resizes import PodResizes
from batkube.execution.containers.runtime import ContainerRuntime
from batkube.execution.nodes.allocations import NodeAllocations
from batkube.execution.pods.runtime import OnEnded
from batkube.execution.pods.state import PodState
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import Instant

if TYPE_CHECKING:
    from batkube.execution.scripts.environment import ContainerFiles


class ContainerPods:
    """Implements `PodRuntime` for single pods, whose rank is 0."""

    def __init__(self, world: World, allocations: NodeAllocations, runtime: ContainerRuntime) -> None:
        self._store = world.store
        self._executions = world.executions
        self._runtime = runtime
        self._resizes = PodResizes(world, allocations, runtime)
        #: The pods that were admitted and are not gone.
        self._pod_states: dict[Key, PodState] = {}
        self.on_ended: OnEnded = lambda pod_state, ranks, now: None
        runtime.on_pod_ended = lambda pod_state, now: self.on_ended(pod_state, (0,), now)

    def groups_in(self, batch: Batch, now: Instant) -> Iterator[tuple[PodState, Sequence[int], Sequence[int]]]:
        """Yield the bound pods in a batch that belong to no workload job."""
        for position, (key, pod) in enumerate(zip(batch.keys, batch.objects, strict=True)):
            if node_of_pod(pod) and self._executions.find(key) is None:
                pod_state = self._pod_states.get(key)
                if pod_state is not None:
                    yield pod_state, (position,), (0,)
                elif batch.type is not DELETED and (phase_of(pod) == "Pending" or is_being_deleted(pod)):
                    yield _new_state(key, pod, now), (position,), (0,)

    def record_binding(self, pod_state: PodState, ranks: Sequence[int], nodes: Sequence[str], now: Instant) -> None:
        """Do nothing: the pod's spec has its node."""

    def reject(self, pod_state: PodState, ranks: Sequence[int], reason: str, message: str, now: Instant) -> None:
        """Report that a pod is rejected, by an appointment at this instant."""
        pod = self._store.get(POD, pod_state.key)
        if pod is not None:
            self._runtime.book_rejection(pod, reason, message, now)

    def admit(self, pod_state: PodState, starts: Mapping[Instant, Sequence[int]], now: Instant) -> None:
        """Book the report of the pod's admission and the start of its containers."""
        self._pod_states[pod_state.key] = pod_state
        (start,) = starts
        admitted = functools.partial(self._on_admitted, start=start)
        self._runtime.appointments.book(pod_state, "admitted", now, Rank.START, admitted)
        pod = self._store.get(POD, pod_state.key)
        if pod is not None:
            self._resizes.book_if_changed(pod_state, pod, now)

    def _on_admitted(self, pod_state: PodState, now: Instant, *, start: Instant) -> None:
        pod = self._store.get(POD, pod_state.key)
        if pod is not None:
            self._runtime.on_admitted(pod_state, pod, now)
            self._runtime.appointments.book(pod_state, "begin", start, Rank.START, self._runtime.start_containers)

    def update(self, pod_state: PodState, rank: int, pod: KubeObject, now: Instant) -> None:
        """Handle an update of a pod: of its containers, and of their resources."""
        self._resizes.handle_pod_update(pod_state, pod, now)

    def files_of(self, pod_state: PodState) -> Mapping[str, ContainerFiles]:
        """Return the files of the containers that have run, by container name."""
        return pod_state.files_by_container

    def begin_stop(self, pod_state: PodState, rank: int, now: Instant) -> None:
        """Stop the containers of a deleted pod."""
        self._runtime.begin_stop(pod_state, now)

    def kill(self, pod_state: PodState, rank: int, now: Instant) -> None:
        """End the containers that still run."""
        self._runtime.end_containers(pod_state, now)

    def release(self, pod_state: PodState, ranks: Sequence[int], now: Instant) -> None:
        """Cancel the pod's appointments, and release its files and address."""
        pod_state.has_ended = True
        self._runtime.release(pod_state)

    def report_end(self, pod_state: PodState, ranks: Sequence[int], now: Instant) -> None:
        """Write the final status."""
        self._runtime.write_status(pod_state, now)

    def on_gone(self, pod_state: PodState, ranks: Sequence[int], now: Instant) -> None:
        """Forget the pod, and retry the resizes that wait for its resources."""
        self._pod_states.pop(pod_state.key, None)
        self._resizes.remove_pod(pod_state, now)

    def on_held(self, pod_state: PodState, ranks: Sequence[int], nodes: Sequence[str], now: Instant) -> None:
        """Do nothing: the pod stays Pending until its node is back or a controller deletes it."""

    def on_node_lost(self, pod_state: PodState, now: Instant) -> None:
        """Do nothing: controllers decide what happens to the pod."""

    def resume(self, pod_state: PodState, rank: int, pod: KubeObject, now: Instant) -> PodState | None:
        """Return the state with which a pod restarts; None if it was deleted, or has failed with restartPolicy Never.

        Kubernetes: pkg/kubelet/kuberuntime/kuberuntime_manager.go, computePodActions.
        """
        if is_being_deleted(pod):
            return None
        was_admitted = pod_state.scheduled[0] is not None and pod_state.uid == pod["metadata"]["uid"]
        if not was_admitted:
            return _new_state(pod_state.key, pod, now)
        if pod_state.has_started and pod_state.restart_policy == "Never":
            self._runtime.mark_lost(pod_state, now)
            return None
        resumed = PodState(pod_state.key, pod, pod_state.demand, now)
        resumed.restore_from(pod_state, now)
        return resumed


def _new_state(key: Key, pod: KubeObject, now: Instant) -> PodState:
    return PodState(key, pod, tuple(spec_demand(pod["spec"]).items()), now)
