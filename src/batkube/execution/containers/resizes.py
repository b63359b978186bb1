"""In-place pod resize: changes cpu and memory of running pods (`kubectl patch --subresource resize`).

    desired (the spec) ─▶ allocated, if the node has free resources ─▶ actual, in every running container ─▶ done
                       ├▶ Deferred: not free now; retried when a pod leaves or shrinks, or after three minutes
                       └▶ Infeasible: more than the node's allocatable resources

Allocated resources count on the node from that moment on; schedulers count the desired ones. A running container gets
its new resources without a restart, unless its resize policy requires one. A memory limit below the current usage is
not applied but retried. Kubernetes: pkg/kubelet/allocation/allocation_manager.go for the allocation,
pkg/kubelet/kuberuntime/kuberuntime_manager.go (computePodResizeAction, doPodResizeAction) for the containers.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from batkube.cluster.event_recorder import EventNote
from batkube.cluster.mapping import POD
from batkube.cluster.object_meta import Condition
from batkube.cluster.pods.resources import Amounts, spec_demand
from batkube.cluster.store import Key, KubeObject
from batkube.cluster.world import World
from batkube.execution.nodes.allocations import NodeAllocations
from batkube.execution.pods.state import ContainerState, PodState, Stage, resources_of
from batkube.execution.pods.status import RESIZE_IN_PROGRESS, RESIZE_PENDING
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import Duration, Instant, rfc3339, seconds
from batkube.kernel.quantities import CPU, MEMORY, parse_amount

if TYPE_CHECKING:
    from batkube.execution.containers.runtime import ContainerRuntime

#: The delay before a kubelet retries deferred resizes (allocation_manager.go: retryDelay).
_RETRY_INTERVAL: Duration = seconds(180)
#: The delay before it retries to apply a resize to containers (pkg/kubelet/pod_workers.go: backOffPeriod, no jitter).
_ACTUATION_RETRY_INTERVAL: Duration = seconds(10)
_SINCE = "lastTransitionTime"


class PodResizes:
    """Resizes the pods of all nodes."""

    def __init__(self, world: World, allocations: NodeAllocations, runtime: ContainerRuntime) -> None:
        self._store = world.store
        self._agenda = world.agenda
        self._allocations = allocations
        self._runtime = runtime
        #: Pods with a deferred resize, by node.
        self._pending: dict[str, dict[Key, PodState]] = {}
        #: The appointment of the next retry, by node.
        self._retries: dict[str, int] = {}

    def handle_pod_update(self, pod_state: PodState, pod: KubeObject, now: Instant) -> None:
        """Handle an update of a pod: of its containers, and of their resources."""
        if self._runtime.handle_pod_update(pod_state, pod, now):
            self.book_if_changed(pod_state, pod, now)

    def book_if_changed(self, pod_state: PodState, pod: KubeObject, now: Instant) -> None:
        """Book a resize if the pod's spec requests other resources than before."""
        resources = resources_of(pod)
        if resources != pod_state.wanted_resources:
            pod_state.wanted_resources = resources
            if "resize" not in pod_state.appointments:
                self._runtime.appointments.book(pod_state, "resize", now, Rank.START, self._add_pending)

    def remove_pod(self, pod_state: PodState, now: Instant) -> None:
        """Remove a pod that is gone, and retry the deferred resizes of its node."""
        waiting = self._pending.get(pod_state.node)
        if waiting is not None:
            waiting.pop(pod_state.key, None)
            self._book_retry(pod_state.node, now)

    def _add_pending(self, pod_state: PodState, now: Instant) -> None:
        self._pending.setdefault(pod_state.node, {})[pod_state.key] = pod_state
        self._retry_pending(pod_state.node, now)

    def _book_retry(self, node: str, at: Instant) -> None:
        """Book the next retry of a node's resizes, replacing an earlier appointment; cancel it if none is pending."""
        number = self._retries.pop(node, None)
        if number is not None:
            self._agenda.cancel(number)
        if self._pending.get(node):
            self._retries[node] = self._agenda.book(at, Rank.START, functools.partial(self._on_retry_due, node))
        else:
            self._pending.pop(node, None)

    def _on_retry_due(self, node: str, now: Instant) -> None:
        del self._retries[node]
        self._retry_pending(node, now)

    def _retry_pending(self, node: str, now: Instant) -> None:
        """Allocate the pending resizes of a node as far as possible, those that do not grow first."""
        waiting = self._pending[node]
        for pod_state in sorted(waiting.values(), key=self._sort_key):
            pod = self._store.get(POD, pod_state.key)
            is_live = pod_state.nodes[0] is not None and not pod_state.is_stopping
            if pod is None or not is_live or not self._try_allocate(pod_state, pod, now):
                del waiting[pod_state.key]
        self._book_retry(node, Instant(now + _RETRY_INTERVAL))

    def _sort_key(self, pod_state: PodState) -> tuple[bool, int, bool, str]:
        """Return the sort key of pending resizes (Kubernetes: allocation_manager.go, sortPendingResizes)."""
        pod = self._store.get(POD, pod_state.key) or {"spec": {}, "status": {}}
        current, requested = dict(pod_state.demand), spec_demand(pod["spec"])
        grows = any(requested.get(resource, 0) > current.get(resource, 0) for resource in (CPU, MEMORY))
        is_guaranteed = pod["status"].get("qosClass") == "Guaranteed"
        # "~" sorts after all timestamps, for a resize that was not tried yet.
        since = pod_state.resize_conditions.get(RESIZE_PENDING, {}).get(_SINCE, "~")
        return (grows, -pod["spec"].get("priority", 0), not is_guaranteed, since) if grows else (False, 0, False, "")

    # Allocation

    def _try_allocate(self, pod_state: PodState, pod: KubeObject, now: Instant) -> bool:
        """Allocate the desired resources of a pod, or set a condition; return whether to retry later."""
        before = dict(pod_state.resize_conditions)
        if [container.allocated for container in pod_state.containers()] == resources_of(pod):
            pod_state.resize_conditions.pop(RESIZE_PENDING, None)
            if before != pod_state.resize_conditions:
                self._runtime.write_status(pod_state, now)
            return False
        demand = spec_demand(pod["spec"])
        if problem := self._infeasible_reason(pod_state.node, demand):
            self._set_condition(pod_state, RESIZE_PENDING, pod, now, "Infeasible", problem)
        elif shortage := self._allocations.resize(pod_state.node, pod_state.demand, tuple(demand.items())):
            self._set_condition(pod_state, RESIZE_PENDING, pod, now, "Deferred", str(shortage))
        else:
            self._allocate(pod_state, pod, demand, now)
            return False
        if before != pod_state.resize_conditions:
            self._runtime.write_status(pod_state, now)
        return not problem

    def _infeasible_reason(self, node: str, demand: Amounts) -> str:
        """Return why a node can never satisfy a demand, or "" (Kubernetes: allocation_manager.go, canResizePod)."""
        for resource in (MEMORY, CPU):
            capacity = self._allocations.allocatable(node, resource)
            if demand.get(resource, 0) > capacity:
                shortage = f"{resource}, requested: {demand[resource]}, capacity: {capacity}"
                return f"Node didn't have enough capacity: {shortage}"
        return ""

    def _allocate(self, pod_state: PodState, pod: KubeObject, demand: Amounts, now: Instant) -> None:
        self._allocations.record_usage(now)
        pod_state.demand = tuple(demand.items())
        for container, resources in zip(pod_state.containers(), resources_of(pod), strict=True):
            container.allocated = resources
        pod_state.resize_conditions.clear()
        self._set_condition(pod_state, RESIZE_IN_PROGRESS, pod, now)
        self._runtime.write_status(pod_state, now)
        self._actuate(pod_state, now)

    # Actuation

    def _actuate(self, pod_state: PodState, now: Instant) -> None:
        """Apply the allocated resources to running containers, or set a condition and retry."""
        pod = self._store.get(POD, pod_state.key)
        if pod is None:
            return
        self._runtime.appointments.cancel(pod_state, "actuate")
        resized = [
            container
            for container in pod_state.containers()
            if container.stage is Stage.RUNNING and container.actual != container.allocated
        ]
        if problem := _limit_problem(pod_state, resized, now):
            self._set_condition(pod_state, RESIZE_IN_PROGRESS, pod, now, "Error", problem)
            self._runtime.appointments.book(
                pod_state, "actuate", Instant(now + _ACTUATION_RETRY_INTERVAL), Rank.START, self._actuate
            )
        else:
            for container in resized:
                if _must_restart(pod, container):
                    self._runtime.restart_container(pod_state, container, "resize requires restart", now)
                else:
                    container.apply_resize(now)
                    self._runtime.book_end(pod_state, container, now)
            del pod_state.resize_conditions[RESIZE_IN_PROGRESS]
            self._runtime.record_event(pod, EventNote("Normal", "ResizeCompleted", _completion_message(pod_state)), now)
        self._runtime.write_status(pod_state, now)

    def _set_condition(
        self, pod_state: PodState, kind: str, pod: KubeObject, now: Instant, reason: str = "", message: str = ""
    ) -> None:
        """Set a condition of a resize; `lastProbeTime` is the time of the last update, as in Kubernetes."""
        old = pod_state.resize_conditions.get(kind) or {}
        observed = pod["metadata"].get("generation")
        condition: Condition = {
            "type": kind,
            "status": "True",
            "reason": reason,
            "message": message,
            "lastProbeTime": rfc3339(now),
            _SINCE: rfc3339(now) if old.get("reason", "") != reason else old.get(_SINCE, rfc3339(now)),
            "observedGeneration": old.get("observedGeneration", observed) if kind == RESIZE_IN_PROGRESS else observed,
        }
        pod_state.resize_conditions[kind] = {name: value for name, value in condition.items() if value}


def _must_restart(pod: KubeObject, container: ContainerState) -> bool:
    """Return whether the resize policy of a container requires a restart for its new resources."""
    spec = container.spec_in(pod)
    restart_resources = [
        policy["resourceName"] for policy in spec.get("resizePolicy") or () if policy["restartPolicy"] != "NotRequired"
    ]
    return any(
        (container.actual.get(part) or {}).get(resource) != (container.allocated.get(part) or {}).get(resource)
        for resource in restart_resources
        for part in ("requests", "limits")
    )


def _limit_problem(pod_state: PodState, resized: list[ContainerState], now: Instant) -> str:
    """Return which memory limits are below the current usage (kuberuntime_manager.go: validateMemoryResizeAction)."""
    use, problems = sum(_memory_usage(container, now) for container in pod_state.main), []
    old, new = (
        _pod_limit([container.actual for container in pod_state.main]),
        _pod_limit([container.allocated for container in pod_state.main]),
    )
    if new is not None and (old is None or new < old) and use >= new:
        problems.append(f"attempting to set pod memory limit ({new}) below current usage ({use})")
    for container in resized:
        low, high = _memory_limit(container.allocated), _memory_limit(container.actual)
        if low is not None and (high is None or low < high) and _memory_usage(container, now) >= low:
            problems.append(
                f'attempting to set container "{container.name}" memory limit ({low}) below current usage ({use})'
            )
    message = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
    return f"cannot decrease memory limits: {message}" if problems else ""


def _memory_usage(container: ContainerState, now: Instant) -> int:
    if container.plan.memory is None or container.started is None or container.stage is not Stage.RUNNING:
        return 0
    return container.plan.memory.value_at(Duration(now - container.started))


def _memory_limit(resources: KubeObject) -> int | None:
    limit = (resources.get("limits") or {}).get(MEMORY)
    return None if limit is None else parse_amount(MEMORY, limit)


def _pod_limit(resources: list[KubeObject]) -> int | None:
    """Return the memory limit of a pod as a whole, which exists if each container has one."""
    limits = [limit for amounts in resources if (limit := _memory_limit(amounts)) is not None]
    return sum(limits) if len(limits) == len(resources) else None


def _completion_message(pod_state: PodState) -> str:
    """Return the message of the event ResizeCompleted, with the new resources in Go's JSON."""

    def summaries(containers: list[ContainerState]) -> Iterator[KubeObject]:
        for container in containers:
            parts = {
                part: container.allocated[part] for part in ("limits", "requests") if container.allocated.get(part)
            }
            yield {"name": container.name, "resources": parts}

    summary = {"initContainers": list(summaries(pod_state.init)), "containers": list(summaries(pod_state.main))}
    text = json.dumps({key: value for key, value in summary.items() if value}, separators=(",", ":"))
    return f"Pod resize completed: {text}"
