"""Deltas: the changes during a run, in order.

At one instant, the deltas of a pod follow each other, and resources are released before they are used again. A node
is therefore never overcommitted between two deltas:

    pods that end, and were bound before · jobs that end, and were queued before · nodes removed, added, changed ·
    jobs queued · pods that are bound and end at once · other pods · jobs that start
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from batkube.kernel.instants import Instant
from batkube.outputs.playback.model import Execution, NodeStatus, RecordedJob, RecordedNode, RecordedPod


class DeltaKind(enum.StrEnum):
    """The kind of a change."""

    NODE_ADDED = "node-added"
    NODE_REMOVED = "node-removed"
    NODE_STATUS = "node-status"
    JOB_QUEUED = "job-queued"
    JOB_STARTED = "job-started"
    JOB_ENDED = "job-ended"
    POD_QUEUED = "pod-queued"
    #: The scheduler failed to place the pod.
    SCHEDULER_ATTEMPT = "scheduler-attempt"
    #: The reason in the pod's condition changed.
    POD_UNSCHEDULABLE = "pod-unschedulable"
    POD_BOUND = "pod-bound"
    POD_STARTED = "pod-started"
    POD_ENDED = "pod-ended"


class Delta(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change. `number` is the position of the node, job or pod in its tuple of `Playback`."""

    at: Instant
    kind: DeltaKind
    number: int
    #: Of a bound pod, or of one that ends on a node: its name.
    node: str = ""
    #: The new status of a node, the reason of an unschedulable pod, the phase or state in which a pod or job ended.
    text: str = ""
    #: Of a scheduler's attempt: the number of attempts that have failed.
    count: int = 0


class _Rank(enum.IntEnum):
    """The order of deltas at one instant."""

    RELEASE = enum.auto()
    JOB_END = enum.auto()
    NODE_REMOVAL = enum.auto()
    NODE = enum.auto()
    JOB_QUEUE = enum.auto()
    BRIEF_POD = enum.auto()
    POD = enum.auto()
    JOB = enum.auto()


class Attempt(msgspec.Struct, frozen=True):
    """A failed attempt to place a pod, as the scheduler reported it: the number of failures so far, or the reason."""

    at: Instant
    failed: int = 0
    reason: str = ""


Attempts = Mapping[int, Sequence[Attempt]]
"""The attempts for each pod that has any, by its number, in order of time."""

_Ranked = tuple[Instant, _Rank, Delta]


def deltas_of(
    nodes: Sequence[RecordedNode], jobs: Sequence[RecordedJob], pods: Sequence[RecordedPod], attempts: Attempts
) -> tuple[Delta, ...]:
    """Return the deltas of a run in order."""
    ranked: list[_Ranked] = []
    for node in nodes:
        ranked += _node_deltas(node)
    for job in jobs:
        ranked += _job_deltas(job)
    for pod in pods:
        ranked += _pod_deltas(pod, attempts.get(pod.number, ()))
    # The sort is stable: the deltas of each pod, node and job stay in their order.
    ranked.sort(key=lambda entry: entry[:2])
    return tuple(delta for _, _, delta in ranked)


def _node_deltas(node: RecordedNode) -> Iterator[_Ranked]:
    for period in node.periods:
        yield period.begin, _Rank.NODE, Delta(period.begin, DeltaKind.NODE_ADDED, node.number)
        if period.end is not None:
            yield period.end, _Rank.NODE_REMOVAL, Delta(period.end, DeltaKind.NODE_REMOVED, node.number)
    added = {period.begin for period in node.periods}
    for change in node.statuses:
        if change.at not in added or change.status is not NodeStatus.READY:
            delta = Delta(change.at, DeltaKind.NODE_STATUS, node.number, text=change.status)
            yield change.at, _Rank.NODE, delta


def _job_deltas(job: RecordedJob) -> Iterator[_Ranked]:
    #: Instants at which an execution both began and ended, and the job was queued again: their deltas stay together.
    restarts = {execution.ended for execution in job.executions[:-1] if _latest(execution) == execution.ended}
    for execution in job.executions:
        steps = [(execution.queued, _Rank.JOB_QUEUE, DeltaKind.JOB_QUEUED, "")]
        if execution.started is not None:
            steps.append((execution.started, _Rank.JOB, DeltaKind.JOB_STARTED, ""))
        if execution.ended is not None:
            rank = _Rank.JOB_END if _latest(execution) < execution.ended else _Rank.JOB
            state = job.final_state if execution is job.executions[-1] else ""
            steps.append((execution.ended, rank, DeltaKind.JOB_ENDED, state))
        for at, rank, kind, text in steps:
            yield at, _Rank.JOB if at in restarts else rank, Delta(at, kind, job.number, text=text)


def _latest(execution: Execution) -> Instant:
    """Return when an execution started, or was queued if it did not start."""
    return execution.queued if execution.started is None else execution.started


def _pod_deltas(pod: RecordedPod, attempts: Sequence[Attempt]) -> Iterator[_Ranked]:
    """Yield the deltas of a pod, which are in order except for failed attempts."""
    deltas = [Delta(pod.created, DeltaKind.POD_QUEUED, pod.number), *_attempt_deltas(pod, attempts)]
    if pod.bound is not None:
        deltas.append(Delta(pod.bound, DeltaKind.POD_BOUND, pod.number, node=pod.node))
    if pod.started is not None:
        deltas.append(Delta(pod.started, DeltaKind.POD_STARTED, pod.number, node=pod.node))
    if pod.ended is not None:
        deltas.append(Delta(pod.ended, DeltaKind.POD_ENDED, pod.number, node=pod.node, text=pod.phase))
    for delta in deltas:
        yield delta.at, _rank_of_pod(pod, delta.at), delta


def _rank_of_pod(pod: RecordedPod, at: Instant) -> _Rank:
    if pod.ended != at:
        return _Rank.POD
    held_since = pod.created if pod.bound is None else pod.bound
    return _Rank.RELEASE if held_since < at else _Rank.BRIEF_POD


def _attempt_deltas(pod: RecordedPod, attempts: Sequence[Attempt]) -> Iterator[Delta]:
    for attempt in attempts:
        if attempt.failed:
            yield Delta(attempt.at, DeltaKind.SCHEDULER_ATTEMPT, pod.number, count=attempt.failed)
        else:
            yield Delta(attempt.at, DeltaKind.POD_UNSCHEDULABLE, pod.number, text=attempt.reason)
