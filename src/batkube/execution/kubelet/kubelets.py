"""The kubelets of all nodes: they run every pod that is bound to a node.

    bound ─▶ admitted (or rejected: OutOf…) ─▶ Running ─▶ Succeeded / Failed, its node's resources released
    deleted ─▶ stopped within its grace period ─▶ gone
    its node fails ─▶ no more updates until the node is back: then restarted or failed

There are two kinds of pods. The pods of a workload job share an execution (`cluster.jobs.executions`), which begins
when the last of them runs and ends for all at once; changes to several of them are written as one batch. The containers
of any other pod are started, restarted and ended one by one (`execution.containers`).

Kubelets receive bindings and deletions through the store, and write results to it. They never write while they are
notified of a change, but book an appointment. A finished pod is kept until its owner deletes it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from batkube.cluster.decisions import Binding
from batkube.cluster.jobs.executions import ExecutionDriver, JobExecution
from batkube.cluster.mapping import NODE_LOST, POD
from batkube.cluster.object_meta import is_being_deleted
from batkube.cluster.pods.accessors import TERMINAL_PHASES, is_finished, node_of_pod, phase_of
from batkube.cluster.pods.resources import spec_demand
from batkube.cluster.store import ADDED, DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.execution.containers.termination import TerminationDelays
from batkube.execution.kubelet.execution_pods import ExecutionPodStatuses
from batkube.execution.kubelet.failed_nodes import FailedNodes, PodEntry
from batkube.execution.kubelet.pod_resizes import PodResizes
from batkube.execution.latencies.delays import Delays
from batkube.execution.nodes import host_ports
from batkube.execution.nodes.allocations import NodeAllocations
from batkube.execution.pods.container_plan import EXIT_LOST, EXIT_TERMINATED
from batkube.execution.pods.state import PodState
from batkube.kernel.agenda import Rank
from batkube.kernel.fidelity import FidelityNote, Severity
from batkube.kernel.instants import Instant

if TYPE_CHECKING:
    from batkube.execution.containers.runtime import ContainerRuntime

BusyListener = Callable[[int, Instant], None]
"""Called with the number of nodes that have pods, whenever it may have changed."""

_NO_SUCH_NODE = FidelityNote("scheduler", "bound a pod to a node that does not exist", Severity.VIOLATION)


class Kubelets:
    """Runs pods on every node of the store."""

    def __init__(
        self,
        world: World,
        allocations: NodeAllocations,
        driver: ExecutionDriver | None = None,
        containers: ContainerRuntime | None = None,
        delays: Delays | None = None,
        on_busy: BusyListener = lambda count, now: None,
    ) -> None:
        """Without `containers`, all pods belong to job executions, and pod statuses are not read by any client."""
        self._store = world.store
        self._agenda = world.agenda
        self._notes = world.notes
        self._allocations = allocations
        self._ports = host_ports.HostPortAllocator()
        self._executions = world.executions
        self._driver = driver
        self._runtime = containers
        self._delays = delays
        self._termination = TerminationDelays(world.notes, delays)
        self._on_busy = on_busy
        #: The records of all pods that a kubelet has admitted and that are not gone.
        self.pod_states: dict[Key, PodEntry] = {}
        self._execution_pods = ExecutionPodStatuses(
            world, None if containers is None else containers.addresses, author=self
        )
        self._failed_nodes = FailedNodes(world, allocations, self)
        if driver is not None:
            driver.on_end = self._end_execution
        if containers is not None:
            containers.on_pod_ended = self._on_pod_ended
            self._resizes = PodResizes(world, allocations, containers, self.pod_states)
        world.store.subscribe(POD, self._on_pods_changed, author=self)

    # Notifications

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        """Handle bindings, updates and deletions of pods."""
        if batch.type is DELETED:
            self.forget([key for key in batch.keys if key in self.pod_states], now)
            return
        if batch.type is ADDED and self._runtime is None:
            return  # new pods are not bound yet
        grouped = 0
        for execution, positions, ranks in self._executions.group_by_execution(batch.keys):
            grouped += len(positions)
            if batch.type is not ADDED:
                if isinstance(batch.decision, Binding) and len(ranks) == len(batch.keys):
                    self._admit_execution_pods(
                        execution, dict(zip(ranks, batch.decision.nodes, strict=True)), batch.objects[0], now
                    )
                else:
                    self._sync_execution(execution, ranks, batch.at(positions), now)
        if grouped < len(batch.keys):
            for key, pod in zip(batch.keys, batch.objects, strict=True):
                if node_of_pod(pod) and self._executions.find(key) is None:
                    self._sync_pod(key, pod, now)

    def _sync_execution(
        self, execution: JobExecution, ranks: Sequence[int], pods: Sequence[KubeObject], now: Instant
    ) -> None:
        """Admit bound pods, stop deleted pods, and remove pods that another component has ended."""
        bound: dict[int, str] = {}
        for rank, pod in zip(ranks, pods, strict=True):
            if "nodeName" not in pod["spec"]:
                continue
            if "deletionTimestamp" in pod["metadata"]:
                self._agenda.book(now, Rank.FINISH, functools.partial(self._terminate_pod, execution.keys[rank]))
            elif pod["status"]["phase"] in TERMINAL_PHASES:
                if execution.nodes[rank] is not None:
                    self.forget([execution.keys[rank]], now)
            elif execution.machine_ids[rank] is None and execution.scheduled[rank] is None:
                bound[rank] = pod["spec"]["nodeName"]
        if bound:
            self._admit_execution_pods(execution, bound, pods[0], now)

    def _sync_pod(self, key: Key, pod: KubeObject, now: Instant) -> None:
        """Admit a bound pod, stop a deleted one, or apply an update."""
        pod_state = self.pod_states.get(key)
        if isinstance(pod_state, PodState) and pod_state.uid != pod["metadata"]["uid"]:
            self.forget([key], now)
            pod_state = None
        if is_being_deleted(pod):
            self._agenda.book(now, Rank.FINISH, functools.partial(self._terminate_pod, key))
        elif pod_state is None and phase_of(pod) == "Pending":
            self.admit_pod(key, pod, now)
        elif isinstance(pod_state, PodState) and not pod_state.has_ended:
            self._resizes.handle_pod_update(pod_state, pod, now)

    # Pods of job executions

    def _admit_execution_pods(
        self, execution: JobExecution, bound: dict[int, str], pod: KubeObject, now: Instant
    ) -> None:
        """Allocate the resources of pods, all equal to `pod`, and book their starts, or reject them."""
        nodes, keys = list(bound.values()), [execution.keys[rank] for rank in bound]
        self.driver.record_binding(execution, list(bound), nodes, now)
        if self._failed_nodes.hold_pods(execution, keys, nodes, now):
            return
        if unknown := self._allocations.unknown_nodes(nodes):
            self._notes.add(_NO_SUCH_NODE, example=f"job {execution.job.key} on {unknown[0]}")
            self._reject_pods(keys, f"node {unknown[0]} does not exist", "", now)
            return
        shortage = self._allocations.allocate(nodes, execution.demand)
        if shortage is not None:
            self._notes.add(shortage.note, example=f"job {execution.job.key} on {shortage.node}")
            self._reject_pods(keys, f"OutOf{shortage.resource}", f"Pod was rejected: {shortage}", now)
            return
        self.pod_states.update(dict.fromkeys(keys, execution))
        for rank, node in bound.items():
            execution.nodes[rank] = node
            execution.scheduled[rank] = now
        self._on_busy(self._allocations.busy_node_count, now)
        starts = {now: list(bound)} if self._delays is None else self._delays.ranks_by_start(now, bound, pod)
        for start, started_ranks in starts.items():
            self._agenda.book(
                start, Rank.START, functools.partial(self._start_execution_pods, execution, started_ranks)
            )

    def _reject_pods(self, keys: Sequence[Key], reason: str, message: str, now: Instant) -> None:
        reject = functools.partial(self._execution_pods.set_terminated, keys, EXIT_LOST, reason=reason, message=message)
        self._agenda.book(now, Rank.FINISH, lambda at: reject(at))

    def _start_execution_pods(self, execution: JobExecution, ranks: Sequence[int], now: Instant) -> None:
        """Set pods to running; with the last pod of the execution, its work begins."""
        live_ranks = [rank for rank in ranks if execution.nodes[rank] is not None]
        for rank in live_ranks:
            execution.started[rank] = now
        execution.running_count += len(live_ranks)
        self._execution_pods.set_running([execution.keys[rank] for rank in live_ranks], now)
        if live_ranks and execution.running_count == len(execution.keys) and execution.aborted is None:
            ends, end = self.driver.start(execution, now), functools.partial(self._end_execution, execution)
            execution.end_appointment = None if ends is None else self._agenda.book(ends, Rank.FINISH, end)

    def _end_execution(self, execution: JobExecution, now: Instant) -> None:
        """End the work; the terminal status of each pod follows after its report latency."""
        execution.end_appointment = None
        execution.ended = now
        if self._delays is None:
            self._finish_execution_pods(execution, range(len(execution.keys)), now)
            return
        for reported, ranks in self._delays.ranks_by_report(now, len(execution.keys)).items():
            self._agenda.book(reported, Rank.FINISH, functools.partial(self._finish_execution_pods, execution, ranks))

    def _finish_execution_pods(self, execution: JobExecution, ranks: Sequence[int], now: Instant) -> None:
        """Release some pods of an ended execution, unless they are gone, and write their terminal status."""
        live_ranks = [rank for rank in ranks if execution.nodes[rank] is not None]
        self._release_execution_pods(execution, live_ranks, now)
        if self._runtime is None and len(live_ranks) == len(execution.keys):
            self.driver.complete(execution, now)
            return
        self._execution_pods.set_completed(execution, [execution.keys[rank] for rank in live_ranks], now)

    def _release_execution_pods(self, execution: JobExecution, ranks: Sequence[int], now: Instant) -> None:
        """Release the resources of pods of an execution, and remove their records."""
        nodes = [node for rank in ranks if (node := execution.nodes[rank]) is not None]
        self._execution_pods.release_addresses([execution.keys[rank] for rank in ranks])
        for rank in ranks:
            execution.nodes[rank] = None
            del self.pod_states[execution.keys[rank]]
        if execution.is_owned:
            execution.release_times.update(dict.fromkeys(ranks, now))
        self._allocations.release(nodes, execution.demand)
        self._on_busy(self._allocations.busy_node_count, now)

    # Other pods

    def admit_pod(self, key: Key, pod: KubeObject, now: Instant, before: PodState | None = None) -> None:
        """Allocate the pod's resources on its node and book its start; reject it if they are not available.

        A pod that ran `before` its node failed is restarted, or has failed.
        Kubernetes: pkg/kubelet/kuberuntime/kuberuntime_manager.go, computePodActions.
        """
        if before is not None and before.uid != pod["metadata"]["uid"]:
            before = None
        if before is not None and before.has_started and before.restart_policy == "Never":
            self.runtime.mark_lost(before, now)
            return
        node = node_of_pod(pod)
        demand = tuple(spec_demand(pod["spec"]).items()) if before is None else before.demand
        if node in self._failed_nodes:
            self._failed_nodes.hold_pod(node, key)
            return
        shortage = self._allocations.allocate([node], demand)
        if shortage is not None:
            self._notes.add(shortage.note, example=f"pod {key} on {shortage.node}")
            self.runtime.book_rejection(pod, f"OutOf{shortage.resource}", str(shortage), now)
            return
        if not self._ports.allocate(node, key, pod):
            self._allocations.release([node], demand)
            self.runtime.book_rejection(pod, host_ports.REASON, host_ports.MESSAGE, now)
            return
        pod_state = self.pod_states[key] = PodState(key, pod, demand, now)
        if before is not None:
            pod_state.restore_from(before, now)
        self._on_busy(self._allocations.busy_node_count, now)
        self.runtime.appointments.book(pod_state, "admitted", now, Rank.START, self._start_pod)
        self._resizes.book_if_changed(pod_state, pod, now)

    def _start_pod(self, pod_state: PodState, now: Instant) -> None:
        """Report that the pod was admitted, and book the start of its containers."""
        if (pod := self._store.get(POD, pod_state.key)) is None:
            return
        self.runtime.on_admitted(pod_state, pod, now)
        container = pod["spec"]["containers"][0]
        start = now if self._delays is None else self._delays.running_at(now, pod_state.node, container)
        self.runtime.appointments.book(pod_state, "begin", start, Rank.START, self.runtime.start_containers)

    def _on_pod_ended(self, pod_state: PodState, now: Instant) -> None:
        """Finish a pod whose last container has ended, after its report latency."""
        reported = now if self._delays is None else self._delays.reported_at(now)
        if reported == now:
            self._finish_pod(pod_state, now)
        else:
            self.runtime.appointments.book(pod_state, "report", reported, Rank.FINISH, self._finish_pod)

    def _finish_pod(self, pod_state: PodState, now: Instant) -> None:
        self._release_pod(pod_state, now)
        self.runtime.write_status(pod_state, now)

    def _release_pod(self, pod_state: PodState, now: Instant) -> None:
        """Release the resources of a pod once, and cancel its appointments."""
        if pod_state.has_ended:
            return
        pod_state.has_ended = True
        self._allocations.release([pod_state.node], pod_state.demand)
        self._ports.release(pod_state.node, pod_state.key)
        self.runtime.release(pod_state)
        self._on_busy(self._allocations.busy_node_count, now)

    # Deletion

    def _terminate_pod(self, key: Key, now: Instant) -> None:
        """Stop a deleted pod: at once if it has ended, else when its containers have stopped."""
        pod, pod_state = self._store.get(POD, key), self.pod_states.get(key)
        if pod is None or not is_being_deleted(pod):
            return
        if isinstance(pod_state, PodState) and not pod_state.has_ended:
            self.runtime.stop_pod(
                pod_state,
                self._termination.pod_stopped_at(pod, pod_state.files_by_container, now),
                self._on_pod_stopped,
                now,
            )
        elif isinstance(pod_state, JobExecution):
            self._abort_execution(pod_state, now)
            stop = functools.partial(self._on_execution_pod_stopped, pod_state, key)
            self._agenda.book(self._termination.pod_stopped_at(pod, {}, now), Rank.FINISH, stop)
        elif node_of_pod(pod) not in self._failed_nodes:
            self.remove(key, pod["metadata"]["uid"], now)

    def _on_pod_stopped(self, pod_state: PodState, now: Instant) -> None:
        if pod_state.has_ended:
            return
        self.runtime.end_containers(pod_state, now)
        self._finish_pod(pod_state, now)
        self.runtime.remove(pod_state.key, pod_state.uid, now)

    def _on_execution_pod_stopped(self, execution: JobExecution, key: Key, now: Instant) -> None:
        if self.pod_states.get(key) is execution:
            self.forget([key], now)
            self.remove(key, self._store.objects(POD, [key])[0]["metadata"]["uid"], now)

    def remove(self, key: Key, uid: str, now: Instant) -> None:
        """Delete a pod that has ended from the API server; its finalizers may delay that."""
        entry, pod = self._executions.find(key), self._store.objects(POD, [key])[0]
        if self._runtime is None or (entry is not None and not entry[0].is_owned):
            self._store.delete(POD, [key], now, author=self)
            return
        if entry is not None and not is_finished(pod):
            # A pod that ends by deletion has failed. Its controller must see that before the pod is gone.
            self._execution_pods.set_terminated([key], EXIT_TERMINATED, now)
        self._runtime.remove(key, uid, now)

    def mark_lost(self, key: Key, now: Instant) -> None:
        """Write that a pod of a job execution was lost with its node."""
        self._execution_pods.set_terminated([key], EXIT_LOST, now, NODE_LOST)

    def forget(self, keys: Sequence[Key], now: Instant) -> None:
        """Remove pods that are gone, or that another component has ended."""
        for key in keys:
            pod_state = self.pod_states[key]
            if isinstance(pod_state, JobExecution):
                self._abort_execution(pod_state, now)
                self._release_execution_pods(pod_state, [pod_state.keys.index(key)], now)
            else:
                del self.pod_states[key]
                self._release_pod(pod_state, now)
                self._resizes.remove_pod(pod_state, now)

    def _abort_execution(self, execution: JobExecution, now: Instant) -> None:
        """Abort an execution, which cannot continue without all of its pods."""
        if execution.ended is None and execution.aborted is None:
            execution.aborted = now
        if execution.end_appointment is not None:
            self._agenda.cancel(execution.end_appointment)
            execution.end_appointment = execution.state = None
        elif execution.ended is None:
            self.driver.abort(execution, now)

    @property
    def driver(self) -> ExecutionDriver:
        """The driver of job executions, which must exist if there are any."""
        assert self._driver is not None, "there are job executions without a driver"
        return self._driver

    @property
    def runtime(self) -> ContainerRuntime:
        """The container runtime of other pods, which must exist if there are any."""
        assert self._runtime is not None, "there are pods outside workload jobs without a container runtime"
        return self._runtime
