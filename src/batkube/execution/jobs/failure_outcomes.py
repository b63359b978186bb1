"""The outcome of a job whose pod failed or was deleted."""

from __future__ import annotations

from batkube.cluster.jobs.executions import JobExecution
from batkube.cluster.jobs.outcomes import FinalState
from batkube.cluster.mapping import NODE_LOST, REJECTED_BY_SCHEDULER
from batkube.cluster.store import KubeObject

PREEMPTED = "Preempted"


def stop_reason(execution: JobExecution) -> str:
    """Return why pods of an execution were deleted."""
    return NODE_LOST if execution.has_lost_node else PREEMPTED


def failure_outcome(status: KubeObject) -> tuple[FinalState, str]:
    """Return the final state and the reason of a job with a pod that failed with this status."""
    reason, message = str(status.get("reason", "")), str(status.get("message", ""))
    if reason.startswith("OutOf") or reason.endswith("does not exist"):
        return FinalState.FAILED, reason
    state = FinalState.REJECTED if reason == REJECTED_BY_SCHEDULER else FinalState.KILLED
    return state, ": ".join(text for text in (reason, message) if text)
