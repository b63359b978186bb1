"""How jobs and their pods ended: what the outputs are made of."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from batkube.cluster.store import Key
from batkube.kernel.instants import Instant
from batkube.workloads.model import Job

#: What jobs.csv has for a profile of a batch/v1 Job that was an object.
OBJECT_PROFILE = "Job"


class FinalState(enum.StrEnum):
    """How a job ended, in Batsim's words (column `final_state` of jobs.csv)."""

    SUCCESS = "COMPLETED_SUCCESSFULLY"
    FAILED = "COMPLETED_FAILED"
    WALLTIME = "COMPLETED_WALLTIME_REACHED"
    KILLED = "COMPLETED_KILLED"
    REJECTED = "REJECTED"


class PastAttempts(NamedTuple):
    """A job's attempts, and what became of those that were thrown away."""

    #: How often it was placed, or, of a Job that was an object, how many of its pods were.
    attempts: int = 0
    #: How often it was stopped to make room.
    evictions: int = 0
    #: The work that was lost with attempts, because it was stopped or a node failed: thousandths of a machine, or of a
    #: core where pods share machines, times nanoseconds.
    lost_work: int = 0
    #: How many pods were made for it; None for those of all its attempts.
    pod_count: int | None = None


NO_ATTEMPTS, ONE_ATTEMPT = PastAttempts(), PastAttempts(attempts=1)
"""Of jobs that were not placed yet, and of those that were and ran to their end: all those of a trace share them."""


class Outcome(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """How one job ended. The times are None when the job never got that far."""

    job: Job
    state: FinalState
    #: When its last placement was decided.
    scheduled: Instant | None = None
    #: When its work began: all its pods running.
    started: Instant | None = None
    finished: Instant | None = None
    #: When a node of it failed or was removed, if that ended it: its pods held nothing from then on.
    node_lost: Instant | None = None
    #: The machines it used, as an interval set.
    machines: int = 0
    past: PastAttempts = ONE_ATTEMPT


class JobPodsRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The story of a job's pods, told when they are over; index i of every list is the pod of rank i."""

    job: Job
    keys: Sequence[Key]
    created: Instant
    #: The machine that admitted each pod; None when it was never bound.
    machine_ids: Sequence[int | None]
    scheduled: Sequence[Instant | None]
    started: Sequence[Instant | None]
    #: None when the run ended before them.
    finished: Instant | None
    phase: str
    reason: str
    #: The controller that made them, `Job/w0-7`, if one did.
    owner: str = ""


#: In the place of a phase: the pod was deleted before it ended, and Kubernetes has no phase for that.
DELETED_PHASE = "Deleted"


class PodRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The story of a pod that has no part in a course, told when it is over, or when the run is."""

    key: Key
    #: `ReplicaSet/web-7c5ddbdf54`; empty for one that nobody controls.
    owner: str
    #: The id of the batch/v1 Job that it belongs to, and the workload that it came with; empty when there is none.
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


OutcomeListener = Callable[[Outcome], None]
JobPodsListener = Callable[[JobPodsRecord], None]
PodListener = Callable[[PodRecord], None]
