"""The status of a pod on a served node, as a kubelet writes it.

Kubernetes: pkg/kubelet, kubelet_pods.go and status/generate.go.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Sequence

from batkube.cluster.object_meta import Condition, with_condition
from batkube.cluster.store import KubeObject
from batkube.execution.pods.state import ContainerState, EndedRun, PodState, Stage
from batkube.kernel.instants import Instant, rfc3339

#: The conditions of a pod that is given other resources, in the kubelet's order (`pod_resizes`).
RESIZE_PENDING, RESIZE_IN_PROGRESS = "PodResizePending", "PodResizeInProgress"
#: The reason and the message of a pod that was ended at its deadline.
DEADLINE_EXCEEDED = "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
#: The conditions that a kubelet keeps; others in a pod's status are not its own and stay.
_KUBELET_CONDITIONS = (
    *(RESIZE_PENDING, RESIZE_IN_PROGRESS),
    *("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"),
)


def status_of(pod: KubeObject, life: PodState, now: Instant) -> KubeObject:
    """Return the status of `pod` whose life has come so far."""
    old = pod.get("status", {})
    phase = life.phase
    status: KubeObject = {
        "observedGeneration": pod["metadata"].get("generation"),
        "phase": phase,
        "conditions": _conditions(pod, life, phase, now),
        "message": life.message,
        "reason": life.reason,
        "nominatedNodeName": old.get("nominatedNodeName"),
        "hostIP": life.host_ip,
        "hostIPs": [{"ip": life.host_ip}] if life.host_ip else None,
        "podIP": life.pod_ip,
        "podIPs": [{"ip": life.pod_ip}] if life.pod_ip else None,
        "startTime": rfc3339(life.admitted),
        "initContainerStatuses": [_container_status(life, one) for one in life.init],
        "containerStatuses": [_container_status(life, one) for one in life.main],
        "ephemeralContainerStatuses": [_container_status(life, one) for one in life.ephemeral],
        "qosClass": old.get("qosClass"),
        "resourceClaimStatuses": old.get("resourceClaimStatuses"),
    }
    return {name: value for name, value in status.items() if value}


def status_with_identity(status: KubeObject, uid: str, host_ip: str, pod_ip: str) -> KubeObject:
    """Return `status`, which is that of a pod in the same state, as that of another: it has its own addresses and ids.

    All else is shared.
    """
    containers = []
    for one in status["containerStatuses"]:
        identity, state = _container_id(uid, one["name"], one["restartCount"]), one["state"]
        if "terminated" in state:
            state = {"terminated": {**state["terminated"], "containerID": identity}}
        containers.append({**one, "state": state, "containerID": identity})
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


def _container_status(life: PodState, one: ContainerState) -> KubeObject:
    status: KubeObject = {
        "name": one.name,
        "state": _state(life, one),
        "lastState": {} if one.last_run is None else {"terminated": _terminated(life, one, one.last_run)},
        "ready": one.is_done and not one.is_sidecar if one.is_init and not one.is_sidecar else one.is_ready,
        "restartCount": one.restarts,
        "image": one.image,
        "imageID": _image_id(one.image) if one.started is not None else "",
        "started": one.is_up,
    }
    if one.started is not None:
        status["containerID"] = _container_id(life.uid, one.name, one.restarts)
        status["resources"] = one.actual if one.stage is Stage.RUNNING else one.allocated
        if requests := one.allocated.get("requests"):
            status["allocatedResources"] = requests
    return status


def _state(life: PodState, one: ContainerState) -> KubeObject:
    if one.stage is Stage.RUNNING:
        assert one.started is not None
        return {"running": {"startedAt": rfc3339(one.started)}}
    if one.stage is Stage.TERMINATED:
        return {"terminated": _terminated(life, one, one.ended_run)}
    if one.message:
        return {"waiting": {"reason": one.waiting_reason, "message": one.message}}
    return {"waiting": {"reason": one.waiting_reason}}


def _terminated(life: PodState, one: ContainerState, run: EndedRun) -> KubeObject:
    restarts = one.restarts if one.stage is Stage.TERMINATED else max(0, one.restarts - (one.stage is Stage.RUNNING))
    return {
        "exitCode": run.exit_code,
        "reason": run.reason or ("Error" if run.exit_code else "Completed"),
        "startedAt": rfc3339(run.started),
        "finishedAt": rfc3339(run.finished),
        "containerID": _container_id(life.uid, one.name, restarts),
    }


@functools.lru_cache(maxsize=1024)
def _image_id(image: str) -> str:
    name = image.partition("@")[0].rpartition(":")[0] or image
    return f"{name}@sha256:{hashlib.sha256(image.encode()).hexdigest()}"


def _container_id(uid: str, name: str, restarts: int) -> str:
    return f"containerd://{hashlib.sha256(f'{uid}/{name}/{restarts}'.encode()).hexdigest()}"


def _conditions(pod: KubeObject, life: PodState, phase: str, now: Instant) -> list[Condition]:
    old: list[Condition] = pod.get("status", {}).get("conditions") or []
    containers_ready = _containers_ready(life, phase)
    made: list[Condition] = [
        {"type": "PodReadyToStartContainers", "status": _bool_text(life.has_sandbox and not life.has_ended)},
        {"type": "Initialized", **_initialized(life, phase)},
        {"type": "Ready", **_ready(pod, containers_ready, old)},
        {"type": "ContainersReady", **containers_ready},
        {"type": "PodScheduled", "status": "True"},
    ]
    generation = pod["metadata"].get("generation")
    result = [one for one in old if one["type"] not in _KUBELET_CONDITIONS]
    if not life.has_ended:
        result += [
            life.resize_conditions[name]
            for name in (RESIZE_PENDING, RESIZE_IN_PROGRESS)
            if name in life.resize_conditions
        ]
    for new in made:
        earlier = [one for one in old if one["type"] == new["type"]]
        observed = {"observedGeneration": generation} if generation else {}
        result += with_condition(earlier, {**new, "lastProbeTime": None, **observed}, now)
    return result


def _bool_text(value: bool) -> str:
    return "True" if value else "False"


def _format_names(names: Iterable[str]) -> str:
    return f"[{' '.join(names)}]"


def _initialized(life: PodState, phase: str) -> Condition:
    if phase == "Succeeded":
        return {"status": "True", "reason": "PodCompleted"}
    waiting = [one.name for one in life.init if not one.is_done]
    if not waiting or any(one.started is not None for one in life.main):
        return {"status": "True"}
    message = f"containers with incomplete status: {_format_names(waiting)}"
    return {"status": "False", "reason": "ContainersNotInitialized", "message": message}


def _containers_ready(life: PodState, phase: str) -> Condition:
    if phase in ("Succeeded", "Failed"):
        return {"status": "False", "reason": "PodCompleted" if phase == "Succeeded" else "PodFailed"}
    unready = [one.name for one in life.containers() if not one.is_ready and (one.is_sidecar or not one.is_init)]
    if unready:
        message = f"containers with unready status: {_format_names(unready)}"
        return {"status": "False", "reason": "ContainersNotReady", "message": message}
    return {"status": "True"}


def _ready(pod: KubeObject, containers_ready: Condition, conditions: Sequence[Condition]) -> Condition:
    if containers_ready["status"] != "True":
        return containers_ready
    status_by_type = {one["type"]: one["status"] for one in conditions}
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
