"""What the status of an object of a custom kind says of its work: that it is under way, or over, or neither.

There is no rule for that in Kubernetes, but a few habits, of JobSet, Volcano, Kueue, Kubeflow, Argo, Ray, Spark and
Tekton: a condition, a time, or a word in one of a few fields of the status.
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
#: Words of what has no work of its own, such as a queue; and of a cluster that is ready for work.
_LASTING = frozenset(("open", "closed", "active", "ready", "available", "bound"))
#: Where the word is, by path within the status.
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
    """How far an object of a custom kind has come."""

    #: It has work to do; that may be all that is known, as long as it has no status.
    OPEN = enum.auto()
    ENDED = enum.auto()
    #: Its status says neither, as that of a queue.
    UNKNOWN = enum.auto()


def stage_of(obj: KubeObject) -> CustomStage:
    """Return how far an object has come, as its status says, which may be anything."""
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
    """Return what is at `path`, None where there is nothing."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
