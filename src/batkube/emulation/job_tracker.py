"""Track the jobs of an emulated run by watch events, without network or clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from batkube.cluster.jobs.outcomes import FinalState
from batkube.emulation.client.watch_events import PodEvent, PodUpdate
from batkube.emulation.manifests import PlannedJob
from batkube.emulation.settings import JobKind
from batkube.kernel.errors import RunFailed
from batkube.kernel.instants import Instant
from batkube.kernel.journal import Journal

#: The Events that mark the steps of a pod's start, by the column of jobs.csv with their time.
STEPS = {"Scheduled": "scheduled", "Pulling": "pulling", "Pulled": "pulled", "Created": "created", "Started": "started"}
_FAILED_PLACEMENT = "FailedScheduling"


@dataclass(slots=True)
class EmulatedPod:
    """One pod. A time is None until the event is observed."""

    name: str
    planned: PlannedJob
    first_seen: Instant | None = None
    node: str = ""
    bound: Instant | None = None
    started: Instant | None = None
    finished: Instant | None = None
    phase: str = "Pending"
    reason: str = ""
    #: The kubelet's startedAt, for a pod that was never observed running.
    started_at: str = ""
    is_deleted: bool = False
    is_disrupted: bool = False
    #: When each Event of `STEPS` arrived, by column.
    steps: dict[str, Instant] = field(default_factory=dict)
    #: The count of each FailedScheduling Event, by the name of the Event.
    failed_placements: dict[str, int] = field(default_factory=dict)

    @property
    def was_lost(self) -> bool:
        """Whether it was preempted, evicted or deleted before its work was complete."""
        return self.finished is not None and self.phase != "Succeeded" and (self.is_disrupted or self.is_deleted)

    def step_time(self, column: str) -> Instant | None:
        """Return when it reached a step of `STEPS`: by Event or, for "scheduled", by binding if that is earlier."""
        times = [self.steps.get(column), self.bound if column == "scheduled" else None]
        return min((time for time in times if time is not None), default=None)

    @property
    def failed_attempts(self) -> int:
        """The number of failed scheduling attempts reported in Events."""
        return sum(self.failed_placements.values())


@dataclass(slots=True)
class EmulatedJob:
    """One job with all its pods, including replaced ones."""

    planned: PlannedJob
    submitted: Instant | None = None
    #: Why the cluster rejected it; "" if it did not.
    rejection: str = ""
    pods: dict[str, EmulatedPod] = field(default_factory=dict)
    has_ended: bool = False

    def counted_pods(self) -> list[EmulatedPod]:
        """Return the pods that determine the outcome, without those that were lost and replaced."""
        remaining = [pod for pod in self.pods.values() if not pod.was_lost]
        return remaining or list(self.pods.values())[-self.planned.job.size :]

    @property
    def state(self) -> FinalState:
        """The final state of the job."""
        pods = self.counted_pods()
        if self.rejection:
            return FinalState.REJECTED
        if any(pod.was_lost for pod in pods):
            return FinalState.KILLED
        if any(pod.phase == "Failed" for pod in pods):
            return FinalState.FAILED
        return FinalState.WALLTIME if self.planned.exceeds_walltime else FinalState.SUCCESS


class JobTracker:
    """Tracks all jobs of a run."""

    def __init__(self, planned_jobs: Sequence[PlannedJob], kind: JobKind) -> None:
        self._kind = kind
        #: Journal entries in order of arrival; those of two watches may be out of order.
        self._journal_entries: list[tuple[Instant, str, dict[str, object]]] = []
        #: The jobs, by number.
        self.jobs = [EmulatedJob(planned) for planned in planned_jobs]
        self._pods: dict[str, EmulatedPod] = {}
        #: Events that arrived before the first update of their pod, by the name of the pod.
        self._early_events: dict[str, list[PodEvent]] = {}
        #: The jobs that have ended, in order of their ends.
        self.ended_jobs: list[EmulatedJob] = []

    @property
    def is_over(self) -> bool:
        """Whether every job has ended."""
        return len(self.ended_jobs) == len(self.jobs)

    @property
    def rejected_jobs(self) -> list[EmulatedJob]:
        """The jobs that the cluster rejected."""
        return [job for job in self.jobs if job.rejection]

    @property
    def all_rejected_failure(self) -> RunFailed | None:
        """The failure of a run whose jobs were all rejected."""
        if not self.jobs or len(self.rejected_jobs) < len(self.jobs):
            return None
        first = self.jobs[0]
        return RunFailed(f"no job could be submitted, for example {first.planned.job.key}: {first.rejection}")

    def write_journal(self, journal: Journal) -> None:
        """Write the journal entries in order of time."""
        for at, event, fields in sorted(self._journal_entries, key=lambda entry: entry[0]):
            journal.append(at, event, **fields)

    def _record(self, at: Instant, event: str, **fields: object) -> None:
        self._journal_entries.append((at, event, fields))

    def record_submission(self, number: int, at: Instant) -> None:
        """Record that the request to create a job was sent."""
        self.jobs[number].submitted = at
        self._record(at, "submit", job=self.jobs[number].planned.job.key)

    def record_rejection(self, number: int, reason: str, at: Instant) -> None:
        """Record that the cluster rejected a job."""
        job = self.jobs[number]
        job.rejection = reason
        self._record(at, "reject", job=job.planned.job.key, reason=reason)
        self._mark_ended(job)

    def handle(self, event: PodUpdate | PodEvent) -> bool:
        """Handle a watch event, and return whether a job made progress."""
        if isinstance(event, PodUpdate):
            return self._handle_pod(event)
        pod = self._pods.get(event.pod)
        if pod is None:
            self._early_events.setdefault(event.pod, []).append(event)
            return False
        return self._handle_event(pod, event)

    def _handle_event(self, pod: EmulatedPod, event: PodEvent) -> bool:
        if event.reason == _FAILED_PLACEMENT:
            pod.failed_placements[event.name] = max(event.count, pod.failed_placements.get(event.name, 0))
            if pod.bound is None:
                pod.reason = event.message or pod.reason
            return False
        column = STEPS.get(event.reason)
        if column is None or column in pod.steps:
            return False
        pod.steps[column] = event.at
        if column == "started" and pod.finished is None:
            self._record_start(pod, event.at)
        return True

    def _record_start(self, pod: EmulatedPod, at: Instant) -> None:
        """Record the start of a pod, by its Event or its status, whichever arrives first."""
        if pod.started is None:
            pod.started = at
            self._record(at, "start", job=pod.planned.job.key, pod=pod.name)

    def _handle_pod(self, update: PodUpdate) -> bool:
        if update.number >= len(self.jobs):
            return False
        job = self.jobs[update.number]
        pod = job.pods.get(update.name)
        if pod is None:
            pod = job.pods[update.name] = self._pods[update.name] = EmulatedPod(update.name, job.planned, update.at)
            for event in self._early_events.pop(update.name, ()):
                self._handle_event(pod, event)
        if pod.finished is not None:
            pod.is_deleted = pod.is_deleted or update.is_deleted
            return False
        return self._update_pod(job, pod, update)

    def _update_pod(self, job: EmulatedJob, pod: EmulatedPod, update: PodUpdate) -> bool:
        """Apply an update to a pod that has not finished."""
        at, key = update.at, job.planned.job.key
        before = (pod.bound, pod.started, pod.finished, pod.first_seen == at)
        pod.phase = update.phase
        pod.reason = update.reason or pod.reason
        pod.is_disrupted = pod.is_disrupted or update.is_disrupted
        pod.started_at = update.started_at or pod.started_at
        if update.node and pod.bound is None:
            # Events may arrive before the update with nodeName.
            pod.node, pod.bound = update.node, min([at, *pod.steps.values()])
            self._record(pod.bound, "bind", job=key, pod=pod.name, node=pod.node)
        if update.has_started and not update.has_finished:
            self._record_start(pod, at)
        if update.has_finished:
            pod.finished, pod.is_deleted = at, update.is_deleted
            self._record(at, "finish", job=key, pod=pod.name, phase=pod.phase)
            self._end_if_complete(job)
        return before != (pod.bound, pod.started, pod.finished, False)

    def _end_if_complete(self, job: EmulatedJob) -> None:
        finished = [pod for pod in job.pods.values() if pod.finished is not None]
        if self._kind.uses_job_controller:
            # The Job controller replaces a lost pod; a failed pod ends the job (podFailurePolicy, backoffLimit 0).
            finished = [pod for pod in finished if not pod.was_lost]
            if any(pod.phase == "Failed" for pod in finished):
                self._mark_ended(job)
        if len(finished) >= job.planned.job.size:
            self._mark_ended(job)

    def _mark_ended(self, job: EmulatedJob) -> None:
        if not job.has_ended:
            job.has_ended = True
            self.ended_jobs.append(job)
