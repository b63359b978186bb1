"""Cells of pods (Kubernetes: printPod of pkg/printers/internalversion/printers.go).

The STATUS of a pod is not its phase, but the most specific reason found in the phase, the reason, the conditions and
the states of all containers. As in Kubernetes, a later source overrides an earlier one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from batkube.api.printing.ages import age, time_since
from batkube.api.printing.cell_texts import NONE, container_cells, format_labels
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

#: The reasons that mark a pod's row as completed, by phase.
ROW_CONDITIONS = {
    phase: [{"type": "Completed", "status": "True", "reason": phase, "message": message}]
    for phase, message in (
        ("Succeeded", "The pod has completed successfully."),
        ("Failed", "The pod failed."),
    )
}
_FINISHED = tuple(ROW_CONDITIONS)
#: The reason that the node lifecycle controller sets on pods of an unreachable node.
_NODE_LOST = "NodeLost"


class _ContainerSummary(msgspec.Struct):
    """The state of a pod's containers, summarized."""

    reason: str
    ready: int = 0
    restarts: int = 0
    #: The time of the last restart in RFC 3339, so that it can be compared as a string; "" without restarts.
    last_restart: str = ""

    def add_restarts(self, status: Mapping[str, Any]) -> None:
        """Add a container's restarts and the time of its last one."""
        self.restarts += status.get("restartCount", 0)
        ended = status.get("lastState", {}).get("terminated")
        if ended:
            self.last_restart = max(self.last_restart, ended.get("finishedAt") or "")

    def restarts_text(self, now: Instant) -> str:
        """Return the number of restarts, with the time since the last one."""
        if self.restarts and self.last_restart:
            return f"{self.restarts} ({time_since(self.last_restart, now)} ago)"
        return str(self.restarts)


def pod_cells(pod: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a pod."""
    spec, status = pod.get("spec", {}), pod.get("status", {})
    conditions = status.get("conditions") or ()
    count = _ContainerSummary(_reason_without_containers(status, conditions))
    sidecars = {item["name"] for item in spec.get("initContainers") or () if item.get("restartPolicy") == "Always"}
    sidecar_count = _ContainerSummary("")
    initializing = _summarize_init_containers(spec, status, sidecars, count, sidecar_count)
    if not initializing or _first_condition_status(conditions, "Initialized") == "True":
        count.restarts, count.last_restart = sidecar_count.restarts, sidecar_count.last_restart
        _summarize_containers(status, conditions, count)
    total = len(spec.get("containers") or ()) + len(sidecars)
    # The older field wins if both are set (Kubernetes: Convert_v1_PodStatus_To_core_PodStatus).
    address = status.get("podIP") or next((item.get("ip") for item in status.get("podIPs") or ()), None)
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
    """Return the conditions of a pod's row, which mark it as completed."""
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
    """Find the first init container that is not done; return whether there is one."""
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
    """Summarize the containers, last first, so that the reason of the first one wins."""
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
        is_ready = any(
            condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions
        )
        count.reason = "Running" if is_ready else "NotReady"


def _terminated_reason(ended: Mapping[str, Any]) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _terminating_reason(pod: KubeObject, status: Mapping[str, Any]) -> str:
    """Return the STATUS of a pod that is being deleted, "" for others."""
    if pod["metadata"].get("deletionTimestamp") is None:
        return ""
    if status.get("reason") == _NODE_LOST:
        return "Unknown"
    return "" if status.get("phase") in _FINISHED else "Terminating"


def _first_condition_status(conditions: Sequence[Mapping[str, Any]], type_: str) -> str | None:
    return next((condition.get("status") for condition in conditions if condition.get("type") == type_), None)


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
