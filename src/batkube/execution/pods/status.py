"""Generates the status of a pod, as a kubelet writes it.

Kubernetes: pkg/kubelet/kubelet_pods.go, generateAPIPodStatus, and pkg/kubelet/status/generate.go.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Sequence

from batkube.cluster.object_meta import Condition, with_condition
from batkube.cluster.store import KubeObject
from batkube.execution.pods.state import ContainerState, EndedRun, PodState, Stage
from batkube.kernel.instants import Instant, rfc3339

#: The conditions of a pod that is being resized, in the kubelet's order (`kubelet.pod_resizes`).
RESIZE_PENDING, RESIZE_IN_PROGRESS = "PodResizePending", "PodResizeInProgress"
#: The reason and the message of a pod that was ended at its deadline.
DEADLINE_EXCEEDED = "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
#: The conditions that a kubelet owns; it keeps all others unchanged.
_KUBELET_CONDITIONS = (
    *(RESIZE_PENDING, RESIZE_IN_PROGRESS),
    *("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"),
)


def status_of(pod: KubeObject, pod_state: PodState, now: Instant) -> KubeObject:
    """Return the status of `pod` for its current state."""
    old = pod.get("status", {})
    phase = pod_state.phase
    status: KubeObject = {
        "observedGeneration": pod["metadata"].get("generation"),
        "phase": phase,
        "conditions": _conditions(pod, pod_state, phase, now),
        "message": pod_state.message,
        "reason": pod_state.reason,
        "nominatedNodeName": old.get("nominatedNodeName"),
        "hostIP": pod_state.host_ip,
        "hostIPs": [{"ip": pod_state.host_ip}] if pod_state.host_ip else None,
        "podIP": pod_state.pod_ip,
        "podIPs": [{"ip": pod_state.pod_ip}] if pod_state.pod_ip else None,
        "startTime": rfc3339(pod_state.admitted),
        "initContainerStatuses": [_container_status(pod_state, container) for container in pod_state.init],
        "containerStatuses": [_container_status(pod_state, container) for container in pod_state.main],
        "ephemeralContainerStatuses": [_container_status(pod_state, container) for container in pod_state.ephemeral],
        "qosClass": old.get("qosClass"),
        "resourceClaimStatuses": old.get("resourceClaimStatuses"),
    }
    return {name: value for name, value in status.items() if value}


def status_with_identity(status: KubeObject, uid: str, host_ip: str, pod_ip: str) -> KubeObject:
    """Return a copy of a status for another pod in the same state, with that pod's addresses and container ids."""
    containers = []
    for container in status["containerStatuses"]:
        identity, state = _container_id(uid, container["name"], container["restartCount"]), container["state"]
        if "terminated" in state:
            state = {"terminated": {**state["terminated"], "containerID": identity}}
        containers.append({**container, "state": state, "containerID": identity})
    host = {"hostIP": host_ip, "hostIPs": [{"ip": host_ip}]} if host_ip else {}
    return {**status, **host, "podIP": pod_ip, "podIPs": [{"ip": pod_ip}], "containerStatuses": containers}


def rejected_status(pod: KubeObject, reason: str, message: str) -> KubeObject:
    """Return the status of a pod that the kubelet does not admit (Kubernetes: Kubelet.rejectPod)."""
    old = pod.get("status", {})
    status = {
        "phase": "Failed",
        "conditions": old.get("conditions"),
        "message": f"Pod was rejected: {message}",
        "reason": reason,
        "qosClass": old.get("qosClass"),
        "resourceClaimStatuses": old.get("resourceClaimStatuses"),
    }
    return {name: value for name, value in status.items() if value}


def _container_status(pod_state: PodState, container: ContainerState) -> KubeObject:
    status: KubeObject = {
        "name": container.name,
        "state": _state(pod_state, container),
        "lastState": {}
        if container.last_run is None
        else {"terminated": _terminated(pod_state, container, container.last_run)},
        "ready": container.is_done and not container.is_sidecar
        if container.is_init and not container.is_sidecar
        else container.is_ready,
        "restartCount": container.restarts,
        "image": container.image,
        "imageID": _image_id(container.image) if container.started is not None else "",
        "started": container.is_up,
    }
    if container.started is not None:
        status["containerID"] = _container_id(pod_state.uid, container.name, container.restarts)
        status["resources"] = container.actual if container.stage is Stage.RUNNING else container.allocated
        if requests := container.allocated.get("requests"):
            status["allocatedResources"] = requests
    return status


def _state(pod_state: PodState, container: ContainerState) -> KubeObject:
    if container.stage is Stage.RUNNING:
        assert container.started is not None
        return {"running": {"startedAt": rfc3339(container.started)}}
    if container.stage is Stage.TERMINATED:
        return {"terminated": _terminated(pod_state, container, container.ended_run)}
    if container.message:
        return {"waiting": {"reason": container.waiting_reason, "message": container.message}}
    return {"waiting": {"reason": container.waiting_reason}}


def _terminated(pod_state: PodState, container: ContainerState, run: EndedRun) -> KubeObject:
    restarts = (
        container.restarts
        if container.stage is Stage.TERMINATED
        else max(0, container.restarts - (container.stage is Stage.RUNNING))
    )
    return {
        "exitCode": run.exit_code,
        "reason": run.reason or ("Error" if run.exit_code else "Completed"),
        "startedAt": rfc3339(run.started),
        "finishedAt": rfc3339(run.finished),
        "containerID": _container_id(pod_state.uid, container.name, restarts),
    }


@functools.lru_cache(maxsize=1024)
def _image_id(image: str) -> str:
    name = image.partition("@")[0].rpartition(":")[0] or image
    return f"{name}@sha256:{hashlib.sha256(image.encode()).hexdigest()}"


def _container_id(uid: str, name: str, restarts: int) -> str:
    return f"containerd://{hashlib.sha256(f'{uid}/{name}/{restarts}'.encode()).hexdigest()}"


def _conditions(pod: KubeObject, pod_state: PodState, phase: str, now: Instant) -> list[Condition]:
    old: list[Condition] = pod.get("status", {}).get("conditions") or []
    containers_ready = _containers_ready(pod_state, phase)
    own_conditions: list[Condition] = [
        {"type": "PodReadyToStartContainers", "status": _bool_text(pod_state.has_sandbox and not pod_state.has_ended)},
        {"type": "Initialized", **_initialized(pod_state, phase)},
        {"type": "Ready", **_ready(pod, containers_ready, old)},
        {"type": "ContainersReady", **containers_ready},
        {"type": "PodScheduled", "status": "True"},
    ]
    generation = pod["metadata"].get("generation")
    result = [condition for condition in old if condition["type"] not in _KUBELET_CONDITIONS]
    if not pod_state.has_ended:
        result += [
            pod_state.resize_conditions[name]
            for name in (RESIZE_PENDING, RESIZE_IN_PROGRESS)
            if name in pod_state.resize_conditions
        ]
    for new in own_conditions:
        earlier = [condition for condition in old if condition["type"] == new["type"]]
        observed = {"observedGeneration": generation} if generation else {}
        result += with_condition(earlier, {**new, "lastProbeTime": None, **observed}, now)
    return result


def _bool_text(value: bool) -> str:
    return "True" if value else "False"


def _format_names(names: Iterable[str]) -> str:
    return f"[{' '.join(names)}]"


def _initialized(pod_state: PodState, phase: str) -> Condition:
    if phase == "Succeeded":
        return {"status": "True", "reason": "PodCompleted"}
    waiting = [container.name for container in pod_state.init if not container.is_done]
    if not waiting or any(container.started is not None for container in pod_state.main):
        return {"status": "True"}
    message = f"containers with incomplete status: {_format_names(waiting)}"
    return {"status": "False", "reason": "ContainersNotInitialized", "message": message}


def _containers_ready(pod_state: PodState, phase: str) -> Condition:
    if phase in ("Succeeded", "Failed"):
        return {"status": "False", "reason": "PodCompleted" if phase == "Succeeded" else "PodFailed"}
    unready = [
        container.name
        for container in pod_state.containers()
        if not container.is_ready and (container.is_sidecar or not container.is_init)
    ]
    if unready:
        message = f"containers with unready status: {_format_names(unready)}"
        return {"status": "False", "reason": "ContainersNotReady", "message": message}
    return {"status": "True"}


def _ready(pod: KubeObject, containers_ready: Condition, conditions: Sequence[Condition]) -> Condition:
    if containers_ready["status"] != "True":
        return containers_ready
    status_by_type = {condition["type"]: condition["status"] for condition in conditions}
    problems = []
    for gate in pod["spec"].get("readinessGates") or ():
        kind = gate["conditionType"]
        status = status_by_type.get(kind)
        if status is None:
            problems.append(f'corresponding condition of pod readiness gate "{kind}" does not exist.')
        elif status != "True":
            problems.append(f'the status of pod readiness gate "{kind}" is not "True", but {status}')
    if problems:
        return {"status": "False", "reason": "ReadinessGatesNotReady", "message": ", ".join(problems)}
    return {"status": "True"}
