"""What becomes of a job when one of its pods does not go on."""

from __future__ import annotations

from batkube.cluster.jobs.executions import JobExecution
from batkube.cluster.jobs.outcomes import FinalState
from batkube.cluster.mapping import NODE_LOST, REJECTED_BY_SCHEDULER
from batkube.cluster.store import KubeObject

PREEMPTED = "Preempted"


def stop_reason(execution: JobExecution) -> str:
    """Return why pods of a course were taken away."""
    return NODE_LOST if execution.has_lost_node else PREEMPTED


def failure_outcome(status: KubeObject) -> tuple[FinalState, str]:
    """Return how a job ends one of whose pods failed before its course ended, and why."""
    reason, message = str(status.get("reason", "")), str(status.get("message", ""))
    if reason.startswith("OutOf") or reason.endswith("does not exist"):
        return FinalState.FAILED, reason
    state = FinalState.REJECTED if reason == REJECTED_BY_SCHEDULER else FinalState.KILLED
    return state, ": ".join(text for text in (reason, message) if text)


def with_deletion_timestamp(pod: KubeObject, deadline: str) -> KubeObject:
    """Return a pod that was told to stop, as the API has it."""
    grace = pod["spec"].get("terminationGracePeriodSeconds", 30)
    metadata = {**pod["metadata"], "deletionTimestamp": deadline, "deletionGracePeriodSeconds": grace}
    return {**pod, "metadata": metadata}
