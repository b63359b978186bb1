"""Units that compete for nodes: each execution of a job, and each pod without a job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from batkube.kernel.instants import LATEST_NS, START, Duration, Instant
from batkube.outputs.playback.model import Execution, RecordedJob, RecordedPod
from batkube.outputs.playback.playback import Playback

#: Later than any instant of a run.
NEVER = Instant(LATEST_NS)


class Unit(msgspec.Struct, frozen=True):
    """An execution of a job with its pods, or a single pod."""

    name: str
    #: The position in the queue among units that were queued at the same instant.
    number: int
    queued: Instant
    pods: tuple[RecordedPod, ...]
    #: How many pods it has to place.
    size: int
    #: The position among the executions of its job.
    execution: int = 0
    started: Instant | None = None
    ended: Instant | None = None
    priority: int = 0
    #: When its job was submitted first.
    submitted: Instant = START
    #: The longest run time that the scheduler could know, or the true one.
    estimate: Duration | None = None

    @property
    def first_bound(self) -> Instant | None:
        """When its first pod got a node."""
        return min((pod.bound for pod in self.pods if pod.bound is not None), default=None)

    @property
    def bound(self) -> Instant | None:
        """When its last pod got a node; None if one never did."""
        instants = [pod.bound for pod in self.pods if pod.bound is not None]
        return max(instants) if instants and len(instants) >= self.size else None

    @property
    def wait_end(self) -> Instant:
        """When its wait ended: its last pod got a node, or it ended before; `NEVER` if neither happened."""
        bound = self.bound
        if bound is not None:
            return bound
        return NEVER if self.ended is None else self.ended

    def is_queued_after(self, other: Unit) -> bool:
        """Return whether it was queued later. The order of requeued jobs at the same instant is unknown."""
        if self.queued == other.queued:
            return not self.execution and not other.execution and self.number > other.number
        return self.queued > other.queued

    @property
    def requests(self) -> Mapping[str, int]:
        """What each of its pods requests."""
        return self.pods[0].requests if self.pods else {}


def units_of(playback: Playback) -> tuple[Unit, ...]:
    """Return all units of a run."""
    units = [unit for job in playback.jobs for unit in units_of_job(playback, job)]
    units += [unit_of_pod(pod) for pod in playback.pods if pod.job is None]
    return tuple(units)


def units_of_job(playback: Playback, job: RecordedJob) -> list[Unit]:
    """Return a unit for each execution of a job."""
    pods = [playback.pods[number] for number in job.pods]
    units = []
    for position, execution in enumerate(job.executions):
        until = job.executions[position + 1].queued if position + 1 < len(job.executions) else NEVER
        own = tuple(pod for pod in pods if execution.queued <= pod.created < until or _belongs_to_ended(pod, execution))
        estimate = job.walltime if job.walltime is not None else _run_time(execution)
        size = len(own) if job.size is None else max(job.size, len(own))
        units.append(
            Unit(
                job.key,
                job.number,
                execution.queued,
                own,
                size,
                position,
                execution.started,
                execution.ended,
                job.priority,
                job.submitted,
                estimate,
            )
        )
    return units


def _belongs_to_ended(pod: RecordedPod, execution: Execution) -> bool:
    """Return whether a pod belongs to an execution that ended at the instant at which it was queued."""
    return pod.created == execution.queued == execution.ended


def _run_time(execution: Execution) -> Duration | None:
    if execution.started is None or execution.ended is None:
        return None
    return Duration(execution.ended - execution.started)


def unit_of_pod(pod: RecordedPod, priority: int = 0) -> Unit:
    """Return the unit of a single pod."""
    return Unit(pod.name, pod.number, pod.created, (pod,), 1, 0, pod.started, pod.ended, priority, pod.created)


def holders_by_name(playback: Playback, pods: Iterable[RecordedPod]) -> dict[str, list[RecordedPod]]:
    """Group pods by the name of their job, or by their own name if they have no job."""
    groups: dict[str, list[RecordedPod]] = {}
    for pod in pods:
        groups.setdefault(owner_name(playback, pod), []).append(pod)
    return groups


def owner_name(playback: Playback, pod: RecordedPod) -> str:
    """Return the name of a pod's job, or of the pod if it has no job."""
    return pod.name if pod.job is None else playback.jobs[pod.job].key


def node_names(pods: Sequence[RecordedPod]) -> tuple[str, ...]:
    """Return the nodes of pods, each once, in order."""
    return tuple(dict.fromkeys(pod.node for pod in pods if pod.node))
