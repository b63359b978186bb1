"""Records of how jobs and pods ended, from which the outputs are written."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from batkube.cluster.store import Key
from batkube.kernel.instants import Instant
from batkube.workloads.model import Job, Requests

#: The profile that jobs.csv shows for a batch/v1 Job of the workload (an object, not a Batsim job).
OBJECT_PROFILE = "Job"


class FinalState(enum.StrEnum):
    """How a job ended, by Batsim's names (column `final_state` of jobs.csv)."""

    SUCCESS = "COMPLETED_SUCCESSFULLY"
    FAILED = "COMPLETED_FAILED"
    WALLTIME = "COMPLETED_WALLTIME_REACHED"
    KILLED = "COMPLETED_KILLED"
    REJECTED = "REJECTED"


class PastAttempts(NamedTuple):
    """The attempts to run a job so far, and the work lost with them."""

    #: How often the job was placed; for a batch/v1 Job of the workload, how many of its pods were.
    attempts: int = 0
    #: How often the job was evicted.
    evictions: int = 0
    #: The work lost by evictions and node failures, in nanoseconds times thousandths of a machine, or of a core if pods
    #: share machines.
    lost_work: int = 0
    #: The number of pods created for the job; None means that it follows from the attempts.
    pod_count: int | None = None


NO_ATTEMPTS, ONE_ATTEMPT = PastAttempts(), PastAttempts(attempts=1)
"""Shared values for jobs that were not placed yet and for jobs that completed in their first attempt."""


class Outcome(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """How one job ended. A time is None if the job never reached that point."""

    job: Job
    state: FinalState
    #: When the last of its pods was bound.
    scheduled: Instant | None = None
    #: When its work began, with all pods running.
    started: Instant | None = None
    finished: Instant | None = None
    #: When one of its nodes failed or was deleted, if that ended the job; its pods hold no resources from then on.
    node_lost: Instant | None = None
    #: The machines it used, as an interval set.
    machines: int = 0
    past: PastAttempts = ONE_ATTEMPT


class JobPodsRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The record of a job's pods, written when they have ended; index i of every list is one pod, in order of rank."""

    job: Job
    keys: Sequence[Key]
    created: Instant
    #: The machine that admitted each pod; None when it was never bound.
    machine_ids: Sequence[int | None]
    scheduled: Sequence[Instant | None]
    started: Sequence[Instant | None]
    #: None if the run ended first.
    finished: Instant | None
    phase: str
    reason: str
    #: The controller that created them, such as `Job/w0-7`, or "".
    owner: str = ""
    #: When each pod left its node; None, or an empty list, if that was when it finished.
    released: Sequence[Instant | None] = ()


#: Used as the phase of a pod that was deleted before it ended; Kubernetes has no phase for that.
DELETED_PHASE = "Deleted"


class PodRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The record of a pod outside workload jobs, written when it has ended or when the run ends."""

    key: Key
    #: The controller, such as `ReplicaSet/web-7c5ddbdf54`, or "".
    owner: str
    #: The id of the batch/v1 Job that it belongs to, and the workload of that Job; "" if there is none.
    job: str
    workload: str
    node: str
    machine_id: int | None
    created: Instant
    scheduled: Instant | None
    started: Instant | None
    finished: Instant | None
    phase: str
    reason: str
    #: The amounts that it requests, or requested before it ended.
    requests: Requests = ()


OutcomeListener = Callable[[Outcome], None]
JobPodsListener = Callable[[JobPodsRecord], None]
PodListener = Callable[[PodRecord], None]
