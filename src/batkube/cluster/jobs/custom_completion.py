"""Recognises the completion of custom resources by their status.

Kubernetes has no rule for it. The conventions of JobSet, Volcano, Kueue, Kubeflow, Argo, Ray and Spark are covered: a
condition, or a state name in one of a few status fields.
"""

from __future__ import annotations

from typing import Any

from batkube.cluster.store import KubeObject

_CONDITIONS = ("Completed", "Complete", "Succeeded", "Failed", "Finished")
_FINAL_STATES = frozenset((*(word.lower() for word in _CONDITIONS), "terminated"))
#: Paths within the status that may hold the state name.
_STATE_FIELDS = (
    ("phase",),
    ("state",),
    ("state", "phase"),
    ("terminalState",),
    ("applicationState", "state"),
    ("jobDeploymentStatus",),
)


def has_finished(obj: KubeObject) -> bool:
    """Return whether an object has completed or failed, by its status, whose fields may be of any type."""
    conditions = _value_at(obj, ("status", "conditions"))
    if isinstance(conditions, list) and any(
        _value_at(condition, ("type",)) in _CONDITIONS and _value_at(condition, ("status",)) == "True"
        for condition in conditions
    ):
        return True
    return any(str(_value_at(obj, ("status", *path))).lower() in _FINAL_STATES for path in _STATE_FIELDS)


def _value_at(value: Any, path: tuple[str, ...]) -> Any:  # noqa: ANN401 - JSON
    """Return the value at `path`, or None."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
