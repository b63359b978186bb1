"""The details of an item, which a viewer shows when it is selected, and the flows through it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from batkube.cluster.mapping import ANY_SCHEDULER
from batkube.kernel.quantities import MACHINE, format_amount
from batkube.outputs.exports.timeline.items import Details
from batkube.outputs.playback.model import Field, RecordedJob, RecordedNode, RecordedPod
from batkube.outputs.playback.playback import Playback


def flow_of(pod: int) -> int:
    """Return the id of a pod's flow; 0 is not a valid id."""
    return pod + 1


def flows_of_execution(job: RecordedJob, position: int, pods: Sequence[RecordedPod]) -> list[int]:
    """Return the flows of the pods that were created in an execution of their job."""
    queued = job.executions[position].queued
    following = job.executions[position + 1 : position + 2]
    return [
        flow_of(number)
        for number in job.pods
        if queued <= pods[number].created and all(pods[number].created < later.queued for later in following)
    ]


def scheduler_of(run: Playback, job: int | None) -> str:
    """Return the name of the scheduler of a job, or of pods without a job."""
    name = "" if job is None else run.jobs[job].scheduler
    return (run.files.scheduler or "scheduler") if name in ANY_SCHEDULER else name


def node_details(node: RecordedNode) -> Details:
    """Return the capacity of a node, and its zone, rack and pool."""
    places = {"zone": node.zone, "rack": node.rack, "pool": node.pool}
    return {**_amounts(node.capacity), **_without_empty(places)}


def job_details(job: RecordedJob) -> Details:
    """Return the description of a job."""
    fields: dict[str, Field] = {
        "size": job.size,
        "user": job.user,
        "priority": job.priority,
        "walltime_ns": job.walltime,
    }
    return {"job": job.key, **_without_empty(fields)}


def pod_details(pod: RecordedPod, jobs: Sequence[RecordedJob]) -> Details:
    """Return the description of a pod and of its end."""
    job = "" if pod.job is None else jobs[pod.job].key
    texts = {"job": job, "phase": pod.phase, "reason": pod.reason, "owner": pod.owner}
    return {**_without_empty(texts), "attempts": pod.attempts, **_amounts(pod.requests)}


def _amounts(amounts: Mapping[str, int]) -> dict[str, str]:
    return {name: format_amount(name, amount) for name, amount in amounts.items() if name != MACHINE}


def _without_empty(fields: Mapping[str, Field]) -> dict[str, Field]:
    return {name: value for name, value in fields.items() if value not in ("", None)}
