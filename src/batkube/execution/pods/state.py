"""The state of a pod whose containers have plans of their own, and of these containers.

This is state only: `execution.containers` changes it, and `execution.pods.status` converts it into a pod status.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from batkube.cluster.object_meta import Condition
from batkube.cluster.pods.pod_groups import PodGroup
from batkube.cluster.store import Key, KubeObject
from batkube.execution.pods.container_plan import EXIT_LOST, ContainerPlan, ContainerRole
from batkube.kernel.instants import Duration, Instant, seconds
from batkube.workloads.model import Requests

if TYPE_CHECKING:
    from batkube.execution.pods.container_errors import StartFailure
    from batkube.execution.scripts.environment import ContainerFiles

#: The back-off before a container restart doubles from the minimum to the maximum. It is reset after a run of twice the
#: maximum (Kubernetes: pkg/kubelet/kubelet.go, MaxContainerBackOff).
_MIN_BACK_OFF: Duration = seconds(10)
_MAX_BACK_OFF: Duration = seconds(300)


class Stage(enum.Enum):
    """The state of a container; the value is its field in a container status."""

    WAITING = "waiting"
    RUNNING = "running"
    TERMINATED = "terminated"


class EndedRun(NamedTuple):
    """A run of a container that is over."""

    started: Instant
    finished: Instant
    exit_code: int
    #: "" for the reason that the exit code implies.
    reason: str = ""


class ContainerState:
    """The state of one container of a pod."""

    def __init__(self, pod: KubeObject, spec: KubeObject, role: ContainerRole, position: int) -> None:
        """`position` is that among the containers of this role; it never changes."""
        self.name: str = spec["name"]
        self._position = position
        self.image: str = spec.get("image", "")
        #: The plan of its latest run, without its limits.
        self.plan = ContainerPlan(None)
        #: The resources allocated by its node, and those in effect; they differ during a resize.
        self.allocated: KubeObject = spec.get("resources") or {}
        self.actual = self.allocated
        #: The age of its latest run when the actual resources took effect.
        self.resized_after = Duration(0)
        self.role = role
        self.is_init = role is ContainerRole.INIT
        #: The field of the pod's spec that contains it.
        self.field = role.value
        #: A sidecar is an init container that keeps running beside the others (restartPolicy: Always).
        self.is_sidecar = self.is_init and spec.get("restartPolicy") == "Always"
        self.stage = Stage.WAITING
        self.waiting_reason = "PodInitializing" if pod["spec"].get("initContainers") else "ContainerCreating"
        self.message = ""
        #: The reason in its status why it cannot be started, or "".
        self.failure_reason = ""
        self.started: Instant | None = None
        self.finished: Instant | None = None
        self.exit_code = 0
        self.reason = ""
        self.is_ready = False
        self.is_up = False
        #: Whether any of its runs has passed its startup probe.
        self.has_been_up = False
        #: The files that its latest run reads and writes.
        self.files: ContainerFiles | None = None
        self.restarts = 0
        #: The previous run, while a later one runs or waits.
        self.last_run: EndedRun | None = None
        self._crash_back_off = self._pull_back_off = Duration(0)

    def start(self, plan: ContainerPlan, disk: ContainerFiles | None, now: Instant) -> None:
        """Start a run with this plan; its probes determine when it is up and ready."""
        self.plan, self.files, self.actual, self.resized_after = plan, disk, self.allocated, Duration(0)
        if self.started is not None:
            self.restarts += 1
        self.stage, self.started, self.finished, self.message = Stage.RUNNING, now, None, ""

    def mark_up(self) -> None:
        """Record that the run has passed its startup probe."""
        self.is_up = self.has_been_up = True

    def exit(self, now: Instant) -> None:
        """End the run as planned."""
        plan = self.limited_plan
        self.end(plan.exit_code, now, plan.reason)

    def end(self, exit_code: int, now: Instant, reason: str = "") -> None:
        """End the run, if any; a container that waits for a restart takes the end of its previous run."""
        self.is_ready = self.is_up = False
        if self.stage is Stage.WAITING and self.last_run is None:
            return
        if self.stage is Stage.WAITING and self.last_run is not None:
            _, self.finished, self.exit_code, self.reason = self.last_run
        elif self.stage is Stage.RUNNING:
            self.finished, self.exit_code, self.reason = now, exit_code, reason
            if self.files is not None:
                self.files.discard_after(now)
        self.stage = Stage.TERMINATED

    def set_waiting(self, reason: str, message: str) -> None:
        """Set the container to waiting, and keep the run that has ended as the last one."""
        if self.stage is Stage.TERMINATED:
            self.last_run = self.ended_run
        self.stage, self.waiting_reason, self.message = Stage.WAITING, reason, message

    @property
    def limited_plan(self) -> ContainerPlan:
        """The plan of its latest run with its current limits."""
        return self.plan.limited_by(self.actual.get("limits") or {}, self.resized_after)

    def apply_resize(self, now: Instant) -> None:
        """Put the allocated resources into effect while the container runs."""
        assert self.started is not None
        self.actual, self.resized_after = self.allocated, Duration(now - self.started)

    @property
    def ended_run(self) -> EndedRun:
        """The run that has ended."""
        assert self.started is not None
        assert self.finished is not None
        return EndedRun(self.started, self.finished, self.exit_code, self.reason)

    def next_back_off(self, now: Instant) -> Duration:
        """Return the back-off before the next run: 0 the first time, then 10 s, 20 s, … up to 5 minutes.

        A run of more than ten minutes resets it; the back-off before that run does not count as part of it.
        """
        assert self.started is not None
        # Kubernetes: client-go/util/flowcontrol/backoff.go, Backoff.Next, called as the container is restarted.
        if not self._crash_back_off or now - self.started > 2 * _MAX_BACK_OFF:
            self._crash_back_off = _MIN_BACK_OFF
            return Duration(0)
        wait = self._crash_back_off
        self._crash_back_off = min(Duration(2 * wait), _MAX_BACK_OFF)
        return wait

    def next_retry(self, failure: StartFailure) -> Duration:
        """Return the delay before the next attempt to start: 10 s, doubled after each failed image pull."""
        if not failure.is_backed_off:
            return _MIN_BACK_OFF
        self._pull_back_off = min(Duration(2 * self._pull_back_off) or _MIN_BACK_OFF, _MAX_BACK_OFF)
        return self._pull_back_off

    def restore_from(self, old: ContainerState, policy: str, now: Instant) -> None:
        """Restore the state from before its node failed; a run at that time is lost."""
        self.allocated = self.actual = old.allocated
        if old.started is None:
            return
        old.end(EXIT_LOST, now)
        if old.exit_code == 0 and not old.is_init and not old.restarts_after(policy):
            self.stage, self.started, self.finished = old.stage, old.started, old.finished
        else:
            self.restarts, self.last_run = old.restarts + 1, old.ended_run

    def spec_in(self, pod: KubeObject) -> KubeObject:
        """Return the container's spec in the pod."""
        spec: KubeObject = pod["spec"][self.field][self._position]
        return spec

    def has_other_image(self, pod: KubeObject) -> bool:
        """Return whether it has been started and its image in the spec has changed since."""
        if self.started is None or self.stage is Stage.TERMINATED:
            return False
        return bool(self.spec_in(pod).get("image", "") != self.image)

    @property
    def is_done(self) -> bool:
        """Whether an init container no longer blocks the next ones; a sidecar does not once it has been up."""
        if self.is_sidecar:
            return self.has_been_up
        return self.stage is Stage.TERMINATED and self.exit_code == 0

    def restarts_after(self, policy: str) -> bool:
        """Return whether it is restarted after the run that has just ended."""
        if self.is_sidecar:
            return True
        if self.exit_code == 0:
            return policy == "Always" and not self.is_init
        return policy != "Never"


class PodState(PodGroup):
    """The state of one pod on its node, from its admission until it is gone: a group of one."""

    def __init__(self, key: Key, pod: KubeObject, demand: Requests, now: Instant) -> None:
        super().__init__([key], demand)
        spec = pod["spec"]
        self.key = key
        self.uid: str = pod["metadata"]["uid"]
        self.node: str = spec["nodeName"]
        self.restart_policy: str = spec.get("restartPolicy", "Always")
        self.init = [
            ContainerState(pod, container, ContainerRole.INIT, position)
            for position, container in enumerate(spec.get("initContainers") or ())
        ]
        self.main = [
            ContainerState(pod, container, ContainerRole.MAIN, position)
            for position, container in enumerate(spec["containers"])
        ]
        #: The number of containers at the beginning of `init` and of `main` that have ended for good.
        self._ended_init = self._ended_main = 0
        #: Ephemeral containers, which do not affect the pod's phase.
        self.ephemeral: list[ContainerState] = []
        self.add_ephemeral(pod)
        #: The fields of the pod that the kubelet uses, as last seen.
        self.relevant_fields = relevant_fields_of(pod)
        #: The containers' resources that its spec last requested.
        self.wanted_resources = resources_of(pod)
        #: The conditions of a resize in progress, by type.
        self.resize_conditions: dict[str, Condition] = {}
        #: The longest time that it may run.
        self.deadline: Duration | None = None
        #: When the kubelet admitted the pod (`status.startTime`).
        self.admitted = now
        #: When a change of a container was last reported.
        self.reported: Instant | None = None
        self.host_ip = ""
        self.pod_ip = ""
        #: Reason and message of a pod that the kubelet ended, for instance at its deadline.
        self.reason = ""
        self.message = ""
        #: Whether its sandbox exists, so that containers can start.
        self.has_sandbox = False
        #: Whether the containers have ended for good and the node's resources are released.
        self.has_ended = False
        #: Whether it is being stopped because it was deleted.
        self.is_stopping = False
        #: The numbers of its appointments, by name.
        self.appointments: dict[str, int] = {}

    def add_ephemeral(self, pod: KubeObject) -> None:
        """Add the ephemeral containers that are new in the pod."""
        for spec in (pod["spec"].get("ephemeralContainers") or ())[len(self.ephemeral) :]:
            self.ephemeral.append(ContainerState(pod, spec, ContainerRole.EPHEMERAL, len(self.ephemeral)))

    def restore_from(self, before: PodState, now: Instant) -> None:
        """Restore the state from before its node failed; containers that ran are restarted."""
        self.admitted = before.admitted
        for container, old in zip(self.containers(), before.containers(), strict=True):
            container.restore_from(old, self.restart_policy, now)
        self.wanted_resources = [container.allocated for container in self.containers()]

    @property
    def files_by_container(self) -> dict[str, ContainerFiles]:
        """The files of the containers that have run, by container name."""
        return {container.name: container.files for container in self.containers() if container.files is not None}

    @property
    def has_started(self) -> bool:
        """Whether any of its containers ever ran."""
        return any(container.started is not None for container in self.containers())

    def containers(self) -> Iterator[ContainerState]:
        """Yield all containers except ephemeral ones, init containers first."""
        yield from self.init
        yield from self.main

    def unfinished_init(self) -> Iterator[ContainerState]:
        """Yield the init containers from the first that has not ended, or is a sidecar."""
        while self._ended_init < len(self.init):
            first = self.init[self._ended_init]
            if first.is_sidecar or not first.is_done:
                break
            self._ended_init += 1
        return itertools.islice(self.init, self._ended_init, None)

    @property
    def has_ended_main(self) -> bool:
        """Whether all main containers have ended, none of which is restarted."""
        while self._ended_main < len(self.main) and self.main[self._ended_main].stage is Stage.TERMINATED:
            self._ended_main += 1
        return self._ended_main == len(self.main)

    @property
    def phase(self) -> str:
        """The pod's phase (Kubernetes: pkg/kubelet/kubelet_pods.go, getPhase)."""
        if self.has_ended:
            if self.reason or any(container.exit_code for container in self.containers() if not container.is_sidecar):
                return "Failed"
            return "Succeeded" if all(container.stage is Stage.TERMINATED for container in self.main) else "Failed"
        return "Running" if any(container.started is not None for container in self.main) else "Pending"


def resources_of(pod: KubeObject) -> list[KubeObject]:
    """Return the resources of all containers of a pod, in the order of `PodState.containers`."""
    spec = pod["spec"]
    return [
        container.get("resources") or {} for container in (*(spec.get("initContainers") or ()), *spec["containers"])
    ]


def relevant_fields_of(pod: KubeObject) -> tuple[object, ...]:
    """Return the fields of a pod to which a kubelet reacts; the status is not among them."""
    metadata = pod["metadata"]
    return pod["spec"], metadata.get("labels"), metadata.get("annotations")
