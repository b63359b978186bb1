"""What `kubectl get pods` prints (Kubernetes: printPod of pkg/printers/internalversion/printers.go).

The STATUS of a pod is not its phase: it is the most telling word found in the phase, the reason, the conditions and the
states of all containers. The functions below look at them in the order of the original, since later ones win.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from batkube.api.printing.ages import age, time_since
from batkube.api.printing.cell_texts import NONE, container_cells, format_labels
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

#: Why a pod's row is shown as finished, by phase.
ROW_CONDITIONS = {
    phase: [{"type": "Completed", "status": "True", "reason": phase, "message": message}]
    for phase, message in (
        ("Succeeded", "The pod has completed successfully."),
        ("Failed", "The pod failed."),
    )
}
_FINISHED = tuple(ROW_CONDITIONS)
#: The reason that the node life-cycle controller gives to pods of a node it has lost.
_NODE_LOST = "NodeLost"


class _ContainerSummary(msgspec.Struct):
    """What is learnt from the containers."""

    reason: str
    ready: int = 0
    restarts: int = 0
    #: When the last restart was: RFC 3339, so that texts compare as instants do; "" if there was none.
    last_restart: str = ""

    def add_restarts(self, status: Mapping[str, Any]) -> None:
        """Take in how often a container was restarted, and when last."""
        self.restarts += status.get("restartCount", 0)
        ended = status.get("lastState", {}).get("terminated")
        if ended:
            self.last_restart = max(self.last_restart, ended.get("finishedAt") or "")

    def restarts_text(self, now: Instant) -> str:
        """Return the number of restarts, and how long ago the last one was."""
        if self.restarts and self.last_restart:
            return f"{self.restarts} ({time_since(self.last_restart, now)} ago)"
        return str(self.restarts)


def pod_cells(pod: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a pod."""
    spec, status = pod.get("spec", {}), pod.get("status", {})
    conditions = status.get("conditions") or ()
    count = _ContainerSummary(_reason_without_containers(status, conditions))
    sidecars = {part["name"] for part in spec.get("initContainers") or () if part.get("restartPolicy") == "Always"}
    sidecar_count = _ContainerSummary("")
    initializing = _summarize_init_containers(spec, status, sidecars, count, sidecar_count)
    if not initializing or _first_condition_status(conditions, "Initialized") == "True":
        count.restarts, count.last_restart = sidecar_count.restarts, sidecar_count.last_restart
        _summarize_containers(status, conditions, count)
    total = len(spec.get("containers") or ()) + len(sidecars)
    # The older field wins where both are set (Kubernetes: Convert_v1_PodStatus_To_core_PodStatus).
    address = status.get("podIP") or next((part.get("ip") for part in status.get("podIPs") or ()), None)
    return [
        pod["metadata"].get("name", ""),
        f"{count.ready}/{total}",
        _terminating_reason(pod, status) or count.reason,
        count.restarts_text(now),
        age(pod, now),
        address or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _readiness_gates(spec, conditions),
    ]


def pod_row_conditions(pod: KubeObject) -> list[dict[str, str]] | None:
    """Return the conditions of a pod's row, which tell clients that it has finished."""
    return ROW_CONDITIONS.get(pod.get("status", {}).get("phase", ""))


def _reason_without_containers(status: Mapping[str, Any], conditions: Sequence[Mapping[str, Any]]) -> str:
    for condition in conditions:
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    return str(status.get("reason") or status.get("phase", ""))


def _summarize_init_containers(
    spec: Mapping[str, Any],
    status: Mapping[str, Any],
    sidecars: set[str],
    count: _ContainerSummary,
    sidecar_count: _ContainerSummary,
) -> bool:
    """Find the first init container that has not done its part; return whether there is one."""
    for number, container in enumerate(status.get("initContainerStatuses") or ()):
        count.add_restarts(container)
        is_sidecar = container.get("name") in sidecars
        if is_sidecar:
            sidecar_count.add_restarts(container)
        state = container.get("state", {})
        ended, waiting = state.get("terminated"), state.get("waiting") or {}
        if ended is not None and not ended.get("exitCode"):
            continue
        if is_sidecar and container.get("started"):
            count.ready += bool(container.get("ready"))
            continue
        if ended is not None:
            count.reason = "Init:" + _terminated_reason(ended)
        elif waiting.get("reason", "") not in ("", "PodInitializing"):
            count.reason = "Init:" + waiting["reason"]
        else:
            count.reason = f"Init:{number}/{len(spec.get('initContainers') or ())}"
        return True
    return False


def _summarize_containers(
    status: Mapping[str, Any], conditions: Sequence[Mapping[str, Any]], count: _ContainerSummary
) -> None:
    """Take in the containers, last first, so that the first one's word stands."""
    is_running = False
    for container in reversed(status.get("containerStatuses") or ()):
        count.add_restarts(container)
        state = container.get("state", {})
        waiting, ended = state.get("waiting") or {}, state.get("terminated")
        if waiting.get("reason"):
            count.reason = waiting["reason"]
        elif ended is not None:
            count.reason = _terminated_reason(ended)
        elif container.get("ready") and state.get("running") is not None:
            is_running = True
            count.ready += 1
    if count.reason == "Completed" and is_running:
        is_ready = any(part.get("type") == "Ready" and part.get("status") == "True" for part in conditions)
        count.reason = "Running" if is_ready else "NotReady"


def _terminated_reason(ended: Mapping[str, Any]) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _terminating_reason(pod: KubeObject, status: Mapping[str, Any]) -> str:
    """Return the word for a pod that is being deleted, "" for any other."""
    if pod["metadata"].get("deletionTimestamp") is None:
        return ""
    if status.get("reason") == _NODE_LOST:
        return "Unknown"
    return "" if status.get("phase") in _FINISHED else "Terminating"


def _first_condition_status(conditions: Sequence[Mapping[str, Any]], wanted: str) -> str | None:
    return next((condition.get("status") for condition in conditions if condition.get("type") == wanted), None)


def _readiness_gates(spec: Mapping[str, Any], conditions: Sequence[Mapping[str, Any]]) -> str:
    gates = spec.get("readinessGates")
    if not gates:
        return NONE
    passed = sum(_first_condition_status(conditions, gate.get("conditionType", "")) == "True" for gate in gates)
    return f"{passed}/{len(gates)}"


def pod_template_cells(template: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a PodTemplate."""
    inner = template.get("template", {})
    return [
        template["metadata"].get("name", ""),
        *container_cells(inner),
        format_labels(inner.get("metadata", {}).get("labels")),
    ]
