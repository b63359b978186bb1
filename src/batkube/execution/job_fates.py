"""What becomes of a job when one of its pods does not go on."""

from __future__ import annotations

from batkube.cluster.courses import Course
from batkube.cluster.mapping import NODE_LOST, REJECTED_BY_SCHEDULER
from batkube.cluster.outcomes import FinalState
from batkube.cluster.store import KubeObject

PREEMPTED = "Preempted"


def why_stopped(course: Course) -> str:
    """Return why pods of a course were taken away."""
    return NODE_LOST if course.is_lost else PREEMPTED


def fate_of(status: KubeObject) -> tuple[FinalState, str]:
    """Return how a job ends one of whose pods failed before its course ended, and why."""
    reason, message = str(status.get("reason", "")), str(status.get("message", ""))
    if reason.startswith("OutOf") or reason.endswith("does not exist"):
        return FinalState.FAILED, reason
    state = FinalState.REJECTED if reason == REJECTED_BY_SCHEDULER else FinalState.KILLED
    return state, ": ".join(text for text in (reason, message) if text)


def told_to_stop(pod: KubeObject, deadline: str) -> KubeObject:
    """Return a pod that was told to stop, as the API has it."""
    grace = pod["spec"].get("terminationGracePeriodSeconds", 30)
    metadata = {**pod["metadata"], "deletionTimestamp": deadline, "deletionGracePeriodSeconds": grace}
    return {**pod, "metadata": metadata}
