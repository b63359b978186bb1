"""Pods without an execution as jobs of one pod, for policies."""

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
#: The planned run time of a pod without annotation.
_DEFAULT_RUN_TIME: Duration = seconds(365 * 86400)
#: More than any node has. The API accepts requests beyond int64.
_AMOUNT_MAX = 2**62
_encode = msgspec.json.Encoder(order="sorted").encode


class PodSchedulingStatus(enum.Enum):
    """The status of a pod for a scheduler."""

    PENDING = "to be bound by the scheduler"
    IGNORED = "of another scheduler, gated, or deleted before it was bound"
    BOUND = "has a node"
    FINISHED = "ended or deleted"


def scheduling_status_of(
    pod: KubeObject, change: ChangeType, scheduler_name: str = DEFAULT_SCHEDULER
) -> PodSchedulingStatus:
    """Return the status of a pod after a change, for the default scheduler or the named one."""
    if change is DELETED or is_finished(pod):
        return PodSchedulingStatus.FINISHED
    if node_of_pod(pod):
        return PodSchedulingStatus.BOUND
    spec = pod["spec"]
    is_ignored = (
        spec.get("schedulerName", DEFAULT_SCHEDULER) != scheduler_name
        or spec.get("schedulingGates")
        or is_being_deleted(pod)
    )
    return PodSchedulingStatus.IGNORED if is_ignored else PodSchedulingStatus.PENDING


class PodJob(Job, frozen=True, gc=False, kw_only=True):
    """A pod as a job. Its requests include the pod slot, so they are never empty."""

    pod: Key
    #: The constraints on its node besides its requests, encoded.
    constraints: bytes
    #: The run time of its annotation.
    run_time: Duration

    @property
    def shape(self) -> tuple[object, ...]:
        """A key that is equal for pods that fit on the same nodes."""
        return self.requests, self.constraints


def key_of_pod_job(key: Key) -> str:
    """Return the key of a pod's job."""
    return f"{_WORKLOAD}!{key}"


def job_of_pod(key: Key, pod: KubeObject) -> PodJob:
    """Return a pod as a job. Its walltime is its annotation or its deadline."""
    metadata, spec = pod["metadata"], pod["spec"]
    deadline, run_time = spec.get("activeDeadlineSeconds"), duration_annotation(pod, DURATION) or _DEFAULT_RUN_TIME
    pod_constraints = (spec.get("affinity"), spec.get("topologySpreadConstraints"), metadata.get("labels"))
    return PodJob(
        workload=_WORKLOAD,
        name=str(key),
        submit=instant_of(metadata["creationTimestamp"]),
        size=1,
        profile=Delay(name=str(key), duration=run_time),
        walltime=duration_annotation(pod, WALLTIME) or (None if deadline is None else seconds(deadline)),
        requests=tuple(sorted((resource, min(count, _AMOUNT_MAX)) for resource, count in demand_of(pod).items())),
        priority=spec.get("priority", 0),
        pod=key,
        run_time=run_time,
        constraints=_encode((metadata.get("namespace"), pod_constraints)) + constraints_key(spec),
    )
