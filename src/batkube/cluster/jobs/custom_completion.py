"""Recognises by the status of a custom resource whether it has work to do, or has completed.

Kubernetes has no rule for it. The conventions of JobSet, Volcano, Kueue, Kubeflow, Argo, Ray, Spark and Tekton are
covered: a condition, a completion time, or a state name in one of a few status fields.
"""

from __future__ import annotations

import enum
from typing import Any

from batkube.cluster.store import KubeObject

_CONDITIONS = ("Completed", "Complete", "Succeeded", "Failed", "Finished")
#: Tekton's tasks have one condition: it is Unknown while they run, and False if they fail.
_DECIDED = "Succeeded"
_ENDED = frozenset(
    (*(word.lower() for word in _CONDITIONS), "terminated", "error", "aborted", "cancelled", "canceled", "stopped")
)
#: States of resources without work of their own, such as queues, and of clusters that are ready for work.
_LASTING = frozenset(("open", "closed", "active", "ready", "available", "bound"))
#: Paths within the status that may hold the state name.
_STATE_FIELDS = (
    ("phase",),
    ("state",),
    ("state", "phase"),
    ("terminalState",),
    ("applicationState", "state"),
    ("jobDeploymentStatus",),
)
_TIMES = ("completionTime", "finishedAt")


class CustomStage(enum.Enum):
    """The progress of a custom resource."""

    #: It has work to do, or no status yet.
    OPEN = enum.auto()
    ENDED = enum.auto()
    #: Its status says neither, for example that of a queue.
    UNKNOWN = enum.auto()


def stage_of(obj: KubeObject) -> CustomStage:
    """Return the stage of an object by its status, whose fields may be of any type."""
    status = obj.get("status")
    if not status:
        return CustomStage.OPEN
    words = {word.lower() for path in _STATE_FIELDS if isinstance(word := _value_at(status, path), str) and word}
    if words & _ENDED or any(_value_at(status, (name,)) for name in _TIMES) or _has_final_condition(status):
        return CustomStage.ENDED
    return CustomStage.OPEN if words - _LASTING else CustomStage.UNKNOWN


def _has_final_condition(status: Any) -> bool:  # noqa: ANN401 - JSON
    conditions = _value_at(status, ("conditions",))
    if not isinstance(conditions, list):
        return False
    states = [(_value_at(one, ("type",)), _value_at(one, ("status",))) for one in conditions]
    return any(kind in _CONDITIONS and state == "True" for kind, state in states) or (_DECIDED, "False") in states


def _value_at(value: Any, path: tuple[str, ...]) -> Any:  # noqa: ANN401 - JSON
    """Return the value at `path`, or None."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
