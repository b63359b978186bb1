"""How far a pod with containers of its own has come: the state of each of them, and what that makes of the pod.

Only state, no writing: `execution.containers` moves it on, `execution.pod_statuses` tells it.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from batkube.cluster.object_meta import Condition
from batkube.cluster.store import Key, KubeObject
from batkube.execution.pods.container_plan import EXIT_LOST, ContainerPlan, ContainerRole
from batkube.kernel.instants import Duration, Instant, seconds
from batkube.workloads.model import Requests

if TYPE_CHECKING:
    from batkube.execution.pods.container_errors import StartFailure
    from batkube.execution.scripts.environment import ContainerFiles

#: The pause before a container is restarted grows from the first to the longest, and begins anew after a run of twice
#: the longest (Kubernetes: kubelet's container back-off, MaxContainerBackOff).
_MIN_BACK_OFF: Duration = seconds(10)
_MAX_BACK_OFF: Duration = seconds(300)


class Stage(enum.Enum):
    """What a container is doing; the word of its state in a pod's status."""

    WAITING = "waiting"
    RUNNING = "running"
    TERMINATED = "terminated"


class EndedRun(NamedTuple):
    """A run of a container that is over."""

    started: Instant
    finished: Instant
    exit_code: int
    #: "" for what the exit code says.
    reason: str = ""


class ContainerState:
    """One container of one pod."""

    def __init__(self, pod: KubeObject, spec: KubeObject, role: ContainerRole) -> None:
        self.name: str = spec["name"]
        self.image: str = spec.get("image", "")
        #: How its latest run goes, its limits aside.
        self.plan = ContainerPlan(None)
        #: The resources that its node gives it, and those that it has: others, while it is being resized.
        self.allocated: KubeObject = spec.get("resources") or {}
        self.actual = self.allocated
        #: How long its latest run had taken when it got those.
        self.resized_after = Duration(0)
        self.role = role
        self.is_init = role is ContainerRole.INIT
        #: The field of the pod's spec that it stands in.
        self.field = role.value
        #: An init container that stays while the others run.
        self.is_sidecar = self.is_init and spec.get("restartPolicy") == "Always"
        self.stage = Stage.WAITING
        self.waiting_reason = "PodInitializing" if pod["spec"].get("initContainers") else "ContainerCreating"
        self.message = ""
        #: Why it cannot be started, as its status says; "" when nothing is in its way.
        self.failure_reason = ""
        self.started: Instant | None = None
        self.finished: Instant | None = None
        self.exit_code = 0
        self.reason = ""
        self.is_ready = False
        self.is_up = False
        #: Whether any run of it has ever come up.
        self.has_been_up = False
        #: The files that its latest run sees and writes.
        self.files: ContainerFiles | None = None
        self.restarts = 0
        #: The latest run that ended, while there is another.
        self.last_run: EndedRun | None = None
        self._crash_back_off = self._pull_back_off = Duration(0)
        self._backed_off_at: Instant | None = None

    def start(self, plan: ContainerPlan, disk: ContainerFiles | None, now: Instant) -> None:
        """Begin a run that goes as planned; when it is up and ready, its probes say."""
        self.plan, self.files, self.actual, self.resized_after = plan, disk, self.allocated, Duration(0)
        if self.started is not None:
            self.restarts += 1
        self.stage, self.started, self.finished, self.message = Stage.RUNNING, now, None, ""

    def mark_up(self) -> None:
        """Take note that the run is under way, and not only its process."""
        self.is_up = self.has_been_up = True

    def exit(self, now: Instant) -> None:
        """End the run as it was to end."""
        plan = self.limited_plan
        self.end(plan.exit_code, now, plan.reason)

    def end(self, exit_code: int, now: Instant, reason: str = "") -> None:
        """End the run, if there is one."""
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
        """Wait for the next run, remembering the one that ended."""
        if self.stage is Stage.TERMINATED:
            self.last_run = self.ended_run
        self.stage, self.waiting_reason, self.message = Stage.WAITING, reason, message

    @property
    def limited_plan(self) -> ContainerPlan:
        """How its latest run goes within the limits that it has now."""
        return self.plan.limited_by(self.actual.get("limits") or {}, self.resized_after)

    def apply_resize(self, now: Instant) -> None:
        """Let it have what is allocated to it, while it runs."""
        assert self.started is not None
        self.actual, self.resized_after = self.allocated, Duration(now - self.started)

    @property
    def ended_run(self) -> EndedRun:
        """The run that has just ended."""
        assert self.started is not None
        assert self.finished is not None
        return EndedRun(self.started, self.finished, self.exit_code, self.reason)

    def next_back_off(self, now: Instant) -> Duration:
        """Return how long to wait before the next run: nothing the first time, then 10 s, 20 s, … 5 minutes."""
        since, self._backed_off_at = self._backed_off_at, now
        if since is None or now - since > 2 * _MAX_BACK_OFF:
            self._crash_back_off = _MIN_BACK_OFF
            return Duration(0)
        wait = self._crash_back_off
        self._crash_back_off = min(Duration(2 * wait), _MAX_BACK_OFF)
        return wait

    def next_retry(self, failure: StartFailure) -> Duration:
        """Return after how long to try again what did not work: 10 s, where pulls are tried ever more seldom."""
        if not failure.is_backed_off:
            return _MIN_BACK_OFF
        self._pull_back_off = min(Duration(2 * self._pull_back_off) or _MIN_BACK_OFF, _MAX_BACK_OFF)
        return self._pull_back_off

    def restore_from(self, old: ContainerState, policy: str, now: Instant) -> None:
        """Take over from the container's life before its node failed."""
        self.allocated = self.actual = old.allocated
        if old.started is None:
            return
        old.end(EXIT_LOST, now)
        if old.exit_code == 0 and not old.is_init and not old.restarts_after(policy):
            self.stage, self.started, self.finished = old.stage, old.started, old.finished
        else:
            self.restarts, self.last_run = old.restarts + 1, old.ended_run

    def spec_in(self, pod: KubeObject) -> KubeObject:
        """Return what the pod says of it."""
        return next(spec for spec in pod["spec"][self.field] if spec["name"] == self.name)

    def has_other_image(self, pod: KubeObject) -> bool:
        """Return whether it runs, or waits for its next run, and is to run another image than it did."""
        if self.started is None or self.stage is Stage.TERMINATED:
            return False
        images: dict[str, str] = {spec["name"]: spec.get("image", "") for spec in pod["spec"][self.field]}
        return images.get(self.name, self.image) != self.image

    @property
    def is_done(self) -> bool:
        """Whether an init container no longer holds up those after it, as a sidecar never does again once it was up."""
        if self.is_sidecar:
            return self.has_been_up
        return self.stage is Stage.TERMINATED and self.exit_code == 0

    def restarts_after(self, policy: str) -> bool:
        """Return whether it is started again after the run that just ended."""
        if self.is_sidecar:
            return True
        if self.exit_code == 0:
            return policy == "Always" and not self.is_init
        return policy != "Never"


class PodState:
    """One pod on its node, from admission until it is gone."""

    def __init__(self, key: Key, pod: KubeObject, demand: Requests, now: Instant) -> None:
        spec = pod["spec"]
        self.key = key
        self.uid: str = pod["metadata"]["uid"]
        self.node: str = spec["nodeName"]
        self.demand = demand
        self.restart_policy: str = spec.get("restartPolicy", "Always")
        self.init = [
            ContainerState(pod, container, ContainerRole.INIT) for container in spec.get("initContainers") or ()
        ]
        self.main = [ContainerState(pod, container, ContainerRole.MAIN) for container in spec["containers"]]
        #: Those that somebody added to look at the others; they count for nothing.
        self.ephemeral: list[ContainerState] = []
        self.add_ephemeral(pod)
        #: What of the pod it goes by.
        self.relevant_fields = relevant_fields_of(pod)
        #: The resources of the containers that its spec asked for at last.
        self.wanted_resources = resources_of(pod)
        #: How far a resize has come: its conditions, by type.
        self.resize_conditions: dict[str, Condition] = {}
        #: After how long it is ended.
        self.deadline: Duration | None = None
        #: When the kubelet took the pod up (`status.startTime`).
        self.admitted = now
        self.host_ip = ""
        self.pod_ip = ""
        #: Of a pod that ended otherwise than by its containers.
        self.reason = ""
        self.message = ""
        #: Whether its sandbox is there, so that containers may start.
        self.has_sandbox = False
        #: Whether the containers have ended for good; the node's resources are free then.
        self.has_ended = False
        #: Whether it is being stopped because it was deleted.
        self.is_stopping = False
        #: Numbers of the appointments made for it, by what they are for.
        self.appointments: dict[str, int] = {}

    def add_ephemeral(self, pod: KubeObject) -> None:
        """Take note of containers that were added to the pod."""
        for spec in (pod["spec"].get("ephemeralContainers") or ())[len(self.ephemeral) :]:
            self.ephemeral.append(ContainerState(pod, spec, ContainerRole.EPHEMERAL))

    def restore_from(self, before: PodState, now: Instant) -> None:
        """Take over from the pod's life before its node failed: what ran is started again."""
        self.admitted = before.admitted
        for container, old in zip(self.containers(), before.containers(), strict=True):
            container.restore_from(old, self.restart_policy, now)
        self.wanted_resources = [container.allocated for container in self.containers()]

    @property
    def files_by_container(self) -> dict[str, ContainerFiles]:
        """The files as the containers see them that ran or run, by their names."""
        return {container.name: container.files for container in self.containers() if container.files is not None}

    @property
    def has_started(self) -> bool:
        """Whether any of its containers ever ran."""
        return any(container.started is not None for container in self.containers())

    def containers(self) -> Iterator[ContainerState]:
        """Yield all containers, those of the beginning first."""
        yield from self.init
        yield from self.main

    @property
    def phase(self) -> str:
        """The pod's phase, as its containers and the kubelet's own verdict make it."""
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
    """Return what of a pod may change what becomes of it: its status does not."""
    metadata = pod["metadata"]
    return pod["spec"], metadata.get("labels"), metadata.get("annotations")
