"""Writes the statuses of the pods of workload jobs.

With API clients, the statuses are complete, as those of any other pod. With an in-process policy only, nothing reads
more than the phase of a pod that has ended, so that is all that is written, one status for all pods of a job.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from batkube.cluster.jobs.executions import JobExecution
from batkube.cluster.jobs.outcomes import FinalState
from batkube.cluster.mapping import NODE, POD
from batkube.cluster.store import Key, KubeObject
from batkube.cluster.world import World
from batkube.execution.nodes.addresses import AddressPool, internal_ip_of
from batkube.execution.pods.container_plan import EXIT_KILLED, ContainerPlan
from batkube.execution.pods.state import PodState
from batkube.execution.pods.status import DEADLINE_EXCEEDED, status_of, status_with_identity
from batkube.kernel.instants import Instant

#: The containers run until the execution of their job ends.
_UNTIL_STOPPED = ContainerPlan(None)
_EXIT_FAILED = 1
#: The fields of the previous status that a kubelet keeps.
_PRESERVED_FIELDS = ("conditions", "nominatedNodeName", "qosClass", "resourceClaimStatuses")


class _Termination(NamedTuple):
    """How the containers of a pod ended."""

    exit_code: int
    reason: str
    message: str


class ExecutionPodStatuses:
    """Writes the statuses of the pods of job executions."""

    def __init__(self, world: World, addresses: AddressPool | None, author: object) -> None:
        """`addresses` is None if nothing but phases is read; `author` is not notified of the writes."""
        self._store = world.store
        self._executions = world.executions
        self._addresses = addresses
        self._author = author
        #: The addresses of running pods.
        self._addresses_by_pod: dict[Key, str] = {}
        #: The latest status with its inputs: usually the next pod has an equal status.
        self._cached_status: tuple[tuple[object, ...], KubeObject] = (), {}

    def set_running(self, keys: Sequence[Key], now: Instant) -> None:
        """Write that pods run, as far as they still exist."""
        if self._addresses is not None:
            keys = self._store.existing(POD, keys)
            pods = self._store.objects(POD, keys)
            self._addresses_by_pod |= {key: self._addresses.allocate() for key in keys}
            pairs = zip(keys, pods, strict=True)
            self._write(
                keys, pods, [self._status(key, pod, self._addresses_by_pod[key], None, now) for key, pod in pairs], now
            )

    def set_completed(self, execution: JobExecution, keys: Sequence[Key], now: Instant) -> None:
        """Write that pods have ended with their execution."""
        if execution.state is FinalState.WALLTIME:
            self.set_terminated(keys, EXIT_KILLED, now, *DEADLINE_EXCEEDED)
        else:
            self.set_terminated(keys, 0 if execution.state is FinalState.SUCCESS else _EXIT_FAILED, now)

    def set_terminated(
        self, keys: Sequence[Key], exit_code: int, now: Instant, reason: str = "", message: str = ""
    ) -> None:
        """Write that pods, as far as they still exist, have ended with this exit code, or were never started."""
        keys = self._store.existing(POD, keys)
        if self._addresses is None:
            status = {"phase": "Failed" if exit_code else "Succeeded"} | ({"reason": reason} if reason else {})
            self._store.set_status(POD, keys, status, now, author=self._author)
            return
        pods, end = self._store.objects(POD, keys), _Termination(exit_code, reason, message)
        pairs = zip(keys, pods, strict=True)
        statuses = [self._status(key, pod, pod["status"].get("podIP", ""), end, now) for key, pod in pairs]
        self._write(keys, pods, statuses, now)

    def release_addresses(self, keys: Sequence[Key]) -> None:
        """Release the addresses of pods that have left their nodes."""
        if self._addresses is not None:
            for key in keys:
                if address := self._addresses_by_pod.pop(key, ""):
                    self._addresses.release(address)

    def _status(self, key: Key, pod: KubeObject, address: str, end: _Termination | None, now: Instant) -> KubeObject:
        """Return the status of a pod that runs or has ended."""
        execution, rank = self._executions.find(key) or (None, 0)
        started = None if execution is None else execution.started[rank]
        old, spec = pod["status"], pod["spec"]
        if execution is None or started is None:
            fields = {} if end is None else {"reason": end.reason, "message": end.message}
            return {**old, "phase": "Failed", **{name: text for name, text in fields.items() if text}}
        accepted, host = execution.scheduled[rank] or now, internal_ip_of(self._store.get(NODE, Key(spec["nodeName"])))
        generation, preserved = pod["metadata"].get("generation"), tuple(map(old.get, _PRESERVED_FIELDS))
        shape = (spec["containers"], generation, preserved, bool(host), accepted, started, end, now)
        if self._cached_status[0] != shape:
            pod_state = PodState(key, pod, (), accepted)
            pod_state.host_ip, pod_state.pod_ip, pod_state.has_sandbox = host, address, True
            _run_containers(pod_state, started, end, now)
            self._cached_status = shape, status_of(pod, pod_state, now)
        return status_with_identity(self._cached_status[1], pod["metadata"]["uid"], host, address)

    def _write(
        self, keys: Sequence[Key], pods: Sequence[KubeObject], statuses: Sequence[KubeObject], now: Instant
    ) -> None:
        changed = [{**pod, "status": status} for pod, status in zip(pods, statuses, strict=True)]
        self._store.replace(POD, keys, changed, now, author=self._author)


def _run_containers(pod_state: PodState, started: Instant, end: _Termination | None, now: Instant) -> None:
    """Set the containers of a pod to running since an instant, and to terminated now if there is an `end`."""
    for container in pod_state.main:
        container.start(_UNTIL_STOPPED, None, started)
        container.mark_up()
        container.is_ready = True
        if end is not None:
            container.end(end.exit_code, now)
    if end is not None:
        pod_state.has_ended, pod_state.reason, pod_state.message = True, end.reason, end.message
