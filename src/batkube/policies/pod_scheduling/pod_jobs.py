"""Pods that anybody makes, as a policy sees them: a job of one pod each."""

from __future__ import annotations

import enum

import msgspec

from batkube.cluster.mapping import DEFAULT_SCHEDULER
from batkube.cluster.nodes.constraints import constraints_key
from batkube.cluster.object_meta import is_being_deleted
from batkube.cluster.pods.accessors import duration_annotation, is_finished, node_of_pod
from batkube.cluster.pods.resources import demand_of
from batkube.cluster.store import DELETED, ChangeType, Key, KubeObject
from batkube.kernel.instants import Duration, instant_of, seconds
from batkube.workloads.formats.kubernetes.annotations import DURATION, WALLTIME
from batkube.workloads.model import Delay, Job

_WORKLOAD = "pods"
#: What a pod that says nothing of its length is planned with.
_DEFAULT_LENGTH: Duration = seconds(365 * 86400)
#: More than any node has; the API takes requests beyond what an int64 counts.
_AMOUNT_MAX = 2**62
_encode = msgspec.json.Encoder(order="sorted").encode


class PodSchedulingStatus(enum.Enum):
    """How a pod stands with a scheduler."""

    PENDING = "for the scheduler to bind it"
    IGNORED = "not its business now: another's, gated, or being deleted before it was bound"
    BOUND = "has a node"
    FINISHED = "ended or gone"


def scheduling_status_of(
    pod: KubeObject, change: ChangeType, scheduler_name: str = DEFAULT_SCHEDULER
) -> PodSchedulingStatus:
    """Return how a pod stands after a change with a scheduler: the default one, whose place policies take in a run."""
    if change is DELETED or is_finished(pod):
        return PodSchedulingStatus.FINISHED
    if node_of_pod(pod):
        return PodSchedulingStatus.BOUND
    spec = pod["spec"]
    is_aside = (
        spec.get("schedulerName", DEFAULT_SCHEDULER) != scheduler_name
        or spec.get("schedulingGates")
        or is_being_deleted(pod)
    )
    return PodSchedulingStatus.IGNORED if is_aside else PodSchedulingStatus.PENDING


class PodJob(Job, frozen=True, gc=False, kw_only=True):
    """A pod as a job. Its requests tell the pod slot too, so they are never empty."""

    pod: Key
    #: What decides where it may go besides its requests.
    rules: bytes
    #: How long it will take, as far as it says so itself.
    length: Duration

    @property
    def shape(self) -> tuple[object, ...]:
        """Equal for pods that fit the same places."""
        return self.requests, self.rules


def key_of_pod_job(key: Key) -> str:
    """Return the key of the job that a pod is."""
    return f"{_WORKLOAD}!{key}"


def job_of_pod(key: Key, pod: KubeObject) -> PodJob:
    """Return a pod as a job: its walltime by annotation or deadline, its length as its annotation tells it."""
    metadata, spec = pod["metadata"], pod["spec"]
    deadline, length = spec.get("activeDeadlineSeconds"), duration_annotation(pod, DURATION) or _DEFAULT_LENGTH
    company = (spec.get("affinity"), spec.get("topologySpreadConstraints"), metadata.get("labels"))
    return PodJob(
        workload=_WORKLOAD,
        name=str(key),
        submit=instant_of(metadata["creationTimestamp"]),
        size=1,
        profile=Delay(name=str(key), duration=length),
        walltime=duration_annotation(pod, WALLTIME) or (None if deadline is None else seconds(deadline)),
        requests=tuple(sorted((resource, min(count, _AMOUNT_MAX)) for resource, count in demand_of(pod).items())),
        priority=spec.get("priority", 0),
        pod=key,
        length=length,
        rules=_encode((metadata.get("namespace"), company)) + constraints_key(spec),
    )
