"""Track the jobs of an emulated run by watch events. This module uses neither the network nor the clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from batkube.cluster.jobs.outcomes import FinalState
from batkube.emulation.client.watch_events import PodEvent, PodUpdate
from batkube.emulation.manifests import PlannedJob
from batkube.emulation.settings import JobKind
from batkube.kernel.errors import RunFailed
from batkube.kernel.instants import Instant
from batkube.kernel.journal import Field, Journal

#: The Events that mark the steps of a pod's start, by the column of jobs.csv with their time.
STEPS = {"Scheduled": "scheduled", "Pulling": "pulling", "Pulled": "pulled", "Created": "created", "Started": "started"}
_FAILED_PLACEMENT = "FailedScheduling"


@dataclass(slots=True)
class EmulatedPod:
    """One pod. Times are None until they are observed."""

    name: str
    planned: PlannedJob
    first_seen: Instant | None = None
    node: str = ""
    bound: Instant | None = None
    started: Instant | None = None
    finished: Instant | None = None
    phase: str = "Pending"
    reason: str = ""
    #: As the kubelet tells it, for a pod that was never seen running.
    started_at: str = ""
    is_gone: bool = False
    is_disrupted: bool = False
    #: When each Event of `STEPS` arrived, by column.
    steps: dict[str, Instant] = field(default_factory=dict)
    #: How often each Event of a failed placement has happened, by its name.
    failed_placements: dict[str, int] = field(default_factory=dict)

    @property
    def was_lost(self) -> bool:
        """Whether it went before its work was done, to make room or because somebody deleted it."""
        return self.finished is not None and self.phase != "Succeeded" and (self.is_disrupted or self.is_gone)

    def step_time(self, column: str) -> Instant | None:
        """Return when it came to a step of `STEPS`, by Event; it is scheduled, too, when it is seen bound."""
        seen = [self.steps.get(column), self.bound if column == "scheduled" else None]
        return min((time for time in seen if time is not None), default=None)

    @property
    def failed_attempts(self) -> int:
        """The number of failed scheduling attempts in Events."""
        return sum(self.failed_placements.values())


@dataclass(slots=True)
class EmulatedJob:
    """One job, and the pods it has had."""

    planned: PlannedJob
    submitted: Instant | None = None
    #: Why the cluster rejected it.
    rejection: str = ""
    pods: dict[str, EmulatedPod] = field(default_factory=dict)
    has_ended: bool = False

    def final_pods(self) -> list[EmulatedPod]:
        """Return the pods that count: not those that were lost and replaced."""
        kept = [pod for pod in self.pods.values() if not pod.was_lost]
        return kept or list(self.pods.values())[-self.planned.job.size :]

    @property
    def state(self) -> FinalState:
        """How it ended."""
        pods = self.final_pods()
        if self.rejection:
            return FinalState.REJECTED
        if any(pod.was_lost for pod in pods):
            return FinalState.KILLED
        if any(pod.phase == "Failed" for pod in pods):
            return FinalState.FAILED
        return FinalState.WALLTIME if self.planned.exceeds_walltime else FinalState.SUCCESS


class JobTracker:
    """All jobs of a run. `hear` is the only door."""

    def __init__(self, tasks: Sequence[PlannedJob], kind: JobKind) -> None:
        self._kind = kind
        #: What happened, as it became known: two watches are never quite together.
        self._journal_entries: list[tuple[Instant, str, dict[str, Field]]] = []
        #: By number.
        self.jobs = [EmulatedJob(task) for task in tasks]
        self._pods: dict[str, EmulatedPod] = {}
        #: Events that came before their pod.
        self._early_events: dict[str, list[PodEvent]] = {}
        #: The jobs that have ended, in that order.
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
        return RunFailed(f"no job could be submitted, such as {first.planned.job.key}: {first.rejection}")

    def write_journal(self, journal: Journal) -> None:
        """Write what happened, in the order of time."""
        for at, event, fields in sorted(self._journal_entries, key=lambda entry: entry[0]):
            journal.append(at, event, **fields)

    def _note(self, at: Instant, event: str, **fields: Field) -> None:
        self._journal_entries.append((at, event, fields))

    def record_submission(self, number: int, at: Instant) -> None:
        """Note that the request for a job was sent."""
        self.jobs[number].submitted = at
        self._note(at, "submit", job=self.jobs[number].planned.job.key)

    def record_rejection(self, number: int, why: str, at: Instant) -> None:
        """Record that the cluster rejected a job."""
        job = self.jobs[number]
        job.rejection = why
        self._note(at, "reject", job=job.planned.job.key, reason=why)
        self._mark_ended(job)

    def handle(self, sighting: PodUpdate | PodEvent) -> bool:
        """Handle a watch event, and return whether a job made progress."""
        if isinstance(sighting, PodUpdate):
            return self._handle_pod(sighting)
        pod = self._pods.get(sighting.pod)
        if pod is None:
            self._early_events.setdefault(sighting.pod, []).append(sighting)
            return False
        return self._handle_event(pod, sighting)

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
        """Note that a pod runs: by its Event or by its status, whichever is seen first."""
        if pod.started is None:
            pod.started = at
            self._note(at, "start", job=pod.planned.job.key, pod=pod.name)

    def _handle_pod(self, seen: PodUpdate) -> bool:
        if seen.number >= len(self.jobs):
            return False
        job = self.jobs[seen.number]
        pod = job.pods.get(seen.name)
        if pod is None:
            pod = job.pods[seen.name] = self._pods[seen.name] = EmulatedPod(seen.name, job.planned, seen.at)
            for event in self._early_events.pop(seen.name, ()):
                self._handle_event(pod, event)
        if pod.finished is not None:
            pod.is_gone = pod.is_gone or seen.is_gone
            return False
        return self._update_pod(job, pod, seen)

    def _update_pod(self, job: EmulatedJob, pod: EmulatedPod, seen: PodUpdate) -> bool:
        """Update the progress of a pod that exists."""
        at, key = seen.at, job.planned.job.key
        before = (pod.bound, pod.started, pod.finished, pod.first_seen == at)
        pod.phase = seen.phase
        pod.reason = seen.reason or pod.reason
        pod.is_disrupted = pod.is_disrupted or seen.is_disrupted
        pod.started_at = seen.started_at or pod.started_at
        if seen.node and pod.bound is None:
            # Its Events may have come first.
            pod.node, pod.bound = seen.node, min([at, *pod.steps.values()])
            self._note(pod.bound, "bind", job=key, pod=pod.name, node=pod.node)
        if seen.has_started and not seen.has_finished:
            self._record_start(pod, at)
        if seen.has_finished:
            pod.finished, pod.is_gone = at, seen.is_gone
            self._note(at, "finish", job=key, pod=pod.name, phase=pod.phase)
            self._end_if_complete(job)
        return before != (pod.bound, pod.started, pod.finished, False)

    def _end_if_complete(self, job: EmulatedJob) -> None:
        over = [pod for pod in job.pods.values() if pod.finished is not None]
        if self._kind.uses_job_controller:
            # The controller replaces a pod that was lost, and gives the job up when one failed.
            over = [pod for pod in over if not pod.was_lost]
            if any(pod.phase == "Failed" for pod in over):
                self._mark_ended(job)
        if len(over) >= job.planned.job.size:
            self._mark_ended(job)

    def _mark_ended(self, job: EmulatedJob) -> None:
        if not job.has_ended:
            job.has_ended = True
            self.ended_jobs.append(job)
