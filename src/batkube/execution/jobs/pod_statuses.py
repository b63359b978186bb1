"""Writes the statuses of the pods of workload jobs.

With API clients, the statuses are complete, as those of any other pod (`WholeStatuses`). In a run with policies alone,
nothing reads more than the phase and the reason, so that is all that is written, one status for all pods that change
together (`PhaseStatuses`). `components.access` chooses between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from batkube.cluster.client import BulkClient
from batkube.cluster.jobs.executions import JobExecution
from batkube.cluster.mapping import NODE, POD
from batkube.cluster.store import Key, KubeObject
from batkube.cluster.world import World
from batkube.execution.nodes.addresses import AddressPool, internal_ip_of
from batkube.execution.pods.container_plan import ContainerPlan
from batkube.execution.pods.state import PodState
from batkube.execution.pods.status import status_of, status_with_identity
from batkube.kernel.instants import Instant

#: The containers run until the execution of their job ends.
_UNTIL_STOPPED = ContainerPlan(None)
_RUNNING: KubeObject = {"phase": "Running"}
#: The fields of the previous status that a kubelet keeps.
_PRESERVED_FIELDS = ("conditions", "nominatedNodeName", "qosClass", "resourceClaimStatuses")


class Termination(NamedTuple):
    """How the containers of a pod ended, or why the pod was not admitted."""

    exit_code: int
    reason: str = ""
    message: str = ""


class JobPodStatuses(Protocol):
    """Writes the statuses of pods of a job execution, as far as the pods still exist."""

    def set_running(self, execution: JobExecution, ranks: Sequence[int], now: Instant) -> None:
        """Write that pods run."""

    def set_terminated(self, execution: JobExecution, ranks: Sequence[int], end: Termination, now: Instant) -> None:
        """Write that the containers of pods have ended, or were never started."""

    def release(self, execution: JobExecution, ranks: Sequence[int]) -> None:
        """Release the addresses of pods that have left their nodes."""


class PhaseStatuses:
    """Writes phases and reasons only."""

    def __init__(self, world: World, client: BulkClient) -> None:
        self._store = world.store
        self._client = client

    def set_running(self, execution: JobExecution, ranks: Sequence[int], now: Instant) -> None:
        """Write that pods run."""
        self._write(execution, ranks, _RUNNING, now)

    def set_terminated(self, execution: JobExecution, ranks: Sequence[int], end: Termination, now: Instant) -> None:
        """Write that the containers of pods have ended, or were never started."""
        status = {"phase": "Failed" if end.exit_code else "Succeeded"} | ({"reason": end.reason} if end.reason else {})
        self._write(execution, ranks, status, now)

    def _write(self, execution: JobExecution, ranks: Sequence[int], status: KubeObject, now: Instant) -> None:
        keys = self._store.existing(POD, execution.keys_of(ranks))
        self._client.set_statuses(POD, keys, status, now)

    def release(self, execution: JobExecution, ranks: Sequence[int]) -> None:
        """Do nothing: these pods have no addresses."""


class WholeStatuses:
    """Writes whole statuses, with the states of containers, conditions and addresses."""

    def __init__(self, world: World, client: BulkClient, addresses: AddressPool) -> None:
        """`addresses` are those of all pods of the cluster."""
        self._store = world.store
        self._client = client
        self._addresses = addresses
        #: The addresses of running pods.
        self._addresses_by_pod: dict[Key, str] = {}
        #: The latest status with its inputs: usually the next pod has an equal status.
        self._cached_status: tuple[tuple[object, ...], KubeObject] = (), {}

    def set_running(self, execution: JobExecution, ranks: Sequence[int], now: Instant) -> None:
        """Write that pods run, with a new address each."""
        ranks = self._existing(execution, ranks)
        for rank in ranks:
            self._addresses_by_pod[execution.keys[rank]] = self._addresses.allocate()
        self._write(execution, ranks, None, now)

    def set_terminated(self, execution: JobExecution, ranks: Sequence[int], end: Termination, now: Instant) -> None:
        """Write that the containers of pods have ended, or were never started."""
        self._write(execution, self._existing(execution, ranks), end, now)

    def release(self, execution: JobExecution, ranks: Sequence[int]) -> None:
        """Release the addresses of pods that have left their nodes."""
        for rank in ranks:
            if address := self._addresses_by_pod.pop(execution.keys[rank], ""):
                self._addresses.release(address)

    def _existing(self, execution: JobExecution, ranks: Sequence[int]) -> list[int]:
        return [rank for rank in ranks if self._store.get(POD, execution.keys[rank]) is not None]

    def _write(self, execution: JobExecution, ranks: Sequence[int], end: Termination | None, now: Instant) -> None:
        keys = [execution.keys[rank] for rank in ranks]
        pods = self._store.objects(POD, keys)
        statuses = [self._status(execution, rank, pod, end, now) for rank, pod in zip(ranks, pods, strict=True)]
        self._client.set_statuses(POD, keys, statuses, now)

    def _status(
        self, execution: JobExecution, rank: int, pod: KubeObject, end: Termination | None, now: Instant
    ) -> KubeObject:
        """Return the status of a pod that runs or has ended."""
        key, started = execution.keys[rank], execution.started[rank]
        old, spec = pod["status"], pod["spec"]
        if started is None:
            fields = {} if end is None else {"reason": end.reason, "message": end.message}
            return {**old, "phase": "Failed", **{name: text for name, text in fields.items() if text}}
        address = self._addresses_by_pod.get(key) or old.get("podIP", "")
        accepted, host = execution.scheduled[rank] or now, internal_ip_of(self._store.get(NODE, Key(spec["nodeName"])))
        generation, preserved = pod["metadata"].get("generation"), tuple(map(old.get, _PRESERVED_FIELDS))
        shape = (spec["containers"], generation, preserved, bool(host), accepted, started, end, now)
        if self._cached_status[0] != shape:
            pod_state = PodState(key, pod, (), accepted)
            pod_state.host_ip, pod_state.pod_ip, pod_state.has_sandbox = host, address, True
            _run_containers(pod_state, started, end, now)
            self._cached_status = shape, status_of(pod, pod_state, now)
        return status_with_identity(self._cached_status[1], pod["metadata"]["uid"], host, address)


def _run_containers(pod_state: PodState, started: Instant, end: Termination | None, now: Instant) -> None:
    """Set the containers of a pod to running since an instant, and to terminated now if there is an `end`."""
    for container in pod_state.main:
        container.start(_UNTIL_STOPPED, None, started)
        container.mark_up()
        container.is_ready = True
        if end is not None:
            container.end(end.exit_code, now)
    if end is not None:
        pod_state.has_ended, pod_state.reason, pod_state.message = True, end.reason, end.message
