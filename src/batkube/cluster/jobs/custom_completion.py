"""Whether an object of a custom kind says that its work is over.

There is no rule for that in Kubernetes, but a few habits, of JobSet, Volcano, Kueue, Kubeflow, Argo, Ray and Spark: a
condition, or a word in one of a few fields of the status.
"""

from __future__ import annotations

from typing import Any

from batkube.cluster.store import KubeObject

_CONDITIONS = ("Completed", "Complete", "Succeeded", "Failed", "Finished")
_FINAL_STATES = frozenset((*(word.lower() for word in _CONDITIONS), "terminated"))
#: Where the word is, by path within the status.
_STATE_FIELDS = (
    ("phase",),
    ("state",),
    ("state", "phase"),
    ("terminalState",),
    ("applicationState", "state"),
    ("jobDeploymentStatus",),
)


def has_finished(obj: KubeObject) -> bool:
    """Return whether the status of an object says that it has completed or failed.

    A custom kind may have anything in its status, of any type.
    """
    conditions = _value_at(obj, ("status", "conditions"))
    if isinstance(conditions, list) and any(
        _value_at(one, ("type",)) in _CONDITIONS and _value_at(one, ("status",)) == "True" for one in conditions
    ):
        return True
    return any(str(_value_at(obj, ("status", *path))).lower() in _FINAL_STATES for path in _STATE_FIELDS)


def _value_at(value: Any, path: tuple[str, ...]) -> Any:  # noqa: ANN401 - JSON
    """Return what is at `path`, None where there is nothing."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
