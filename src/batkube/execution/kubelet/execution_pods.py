"""The statuses of pods of courses, which their kubelets write as they do those of any other pod.

Where only an in-process policy looks at pods, nothing of a status is read but the phase of one that has ended: then
that is all there is, one status for all pods of a course.
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

#: Its end is that of the course.
_UNTIL_STOPPED = ContainerPlan(None)
_EXIT_FAILED = 1
#: What a kubelet keeps of a pod's former status.
_PRESERVED_FIELDS = ("conditions", "nominatedNodeName", "qosClass", "resourceClaimStatuses")


class _Termination(NamedTuple):
    """How the containers of a pod ended."""

    exit_code: int
    reason: str
    message: str


class ExecutionPodStatuses:
    """Writes the statuses of pods of courses."""

    def __init__(self, world: World, addresses: AddressPool | None, author: object) -> None:
        """`addresses` is None where nothing but phases is read; `author` is not notified of the writes."""
        self._store = world.store
        self._executions = world.executions
        self._addresses = addresses
        self._author = author
        #: The addresses of pods that run.
        self._addresses_by_pod: dict[Key, str] = {}
        #: What the latest status was made of, and that status: the next pod's is mostly like it.
        self._cached_status: tuple[tuple[object, ...], KubeObject] = (), {}

    def set_running(self, keys: Sequence[Key], now: Instant) -> None:
        """Write that pods run, as far as they are still there."""
        if self._addresses is not None:
            keys = self._store.existing(POD, keys)
            pods = self._store.objects(POD, keys)
            self._addresses_by_pod |= {key: self._addresses.allocate() for key in keys}
            each = zip(keys, pods, strict=True)
            self._write(
                keys, pods, [self._status(key, pod, self._addresses_by_pod[key], None, now) for key, pod in each], now
            )

    def set_completed(self, course: JobExecution, keys: Sequence[Key], now: Instant) -> None:
        """Write that pods have ended as their course did."""
        if course.state is FinalState.WALLTIME:
            self.set_terminated(keys, EXIT_KILLED, now, *DEADLINE_EXCEEDED)
        else:
            self.set_terminated(keys, 0 if course.state is FinalState.SUCCESS else _EXIT_FAILED, now)

    def set_terminated(
        self, keys: Sequence[Key], exit_code: int, now: Instant, reason: str = "", message: str = ""
    ) -> None:
        """Write that pods, as far as they are still there, have ended with this exit code, or never came up."""
        keys = self._store.existing(POD, keys)
        if self._addresses is None:
            status = {"phase": "Failed" if exit_code else "Succeeded"} | ({"reason": reason} if reason else {})
            self._store.set_status(POD, keys, status, now, author=self._author)
            return
        pods, end = self._store.objects(POD, keys), _Termination(exit_code, reason, message)
        each = zip(keys, pods, strict=True)
        statuses = [self._status(key, pod, pod["status"].get("podIP", ""), end, now) for key, pod in each]
        self._write(keys, pods, statuses, now)

    def release_addresses(self, keys: Sequence[Key]) -> None:
        """Give back the addresses of pods whose nodes are rid of them."""
        if self._addresses is not None:
            for key in keys:
                if address := self._addresses_by_pod.pop(key, ""):
                    self._addresses.release(address)

    def _status(self, key: Key, pod: KubeObject, address: str, end: _Termination | None, now: Instant) -> KubeObject:
        """Return the status of a pod that runs, or has ended."""
        course, rank = self._executions.find(key) or (None, 0)
        started = None if course is None else course.started[rank]
        old, spec = pod["status"], pod["spec"]
        if course is None or started is None:
            words = {} if end is None else {"reason": end.reason, "message": end.message}
            return {**old, "phase": "Failed", **{name: text for name, text in words.items() if text}}
        accepted, host = course.scheduled[rank] or now, internal_ip_of(self._store.get(NODE, Key(spec["nodeName"])))
        generation, kept = pod["metadata"].get("generation"), tuple(map(old.get, _PRESERVED_FIELDS))
        shape = (spec["containers"], generation, kept, bool(host), accepted, started, end, now)
        if self._cached_status[0] != shape:
            life = PodState(key, pod, (), accepted)
            life.host_ip, life.pod_ip, life.has_sandbox = host, address, True
            _run_containers(life, started, end, now)
            self._cached_status = shape, status_of(pod, life, now)
        return status_with_identity(self._cached_status[1], pod["metadata"]["uid"], host, address)

    def _write(
        self, keys: Sequence[Key], pods: Sequence[KubeObject], statuses: Sequence[KubeObject], now: Instant
    ) -> None:
        changed = [{**pod, "status": status} for pod, status in zip(pods, statuses, strict=True)]
        self._store.replace(POD, keys, changed, now, author=self._author)


def _run_containers(life: PodState, started: Instant, end: _Termination | None, now: Instant) -> None:
    """Let the containers of a pod run since an instant, and end now if they do."""
    for one in life.main:
        one.start(_UNTIL_STOPPED, None, started)
        one.mark_up()
        one.is_ready = True
        if end is not None:
            one.end(end.exit_code, now)
    if end is not None:
        life.has_ended, life.reason, life.message = True, end.reason, end.message
