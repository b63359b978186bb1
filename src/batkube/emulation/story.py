"""The story of an emulated run, told by what is seen of it. Knows no sockets and reads no clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from batkube.cluster.outcomes import FinalState
from batkube.emulation.manifests import EmulatedTask
from batkube.emulation.settings import JobKind
from batkube.emulation.sightings import EventSeen, PodSeen
from batkube.kernel.errors import RunFailed
from batkube.kernel.instants import Instant
from batkube.kernel.journal import Field, Journal

#: The Events that say how far a pod has come, by the column of jobs.csv that tells when.
STEPS = {"Scheduled": "scheduled", "Pulling": "pulling", "Pulled": "pulled", "Created": "created", "Started": "started"}
_FAILED_PLACEMENT = "FailedScheduling"


@dataclass(slots=True)
class PodStory:
    """One pod. Times are None until they are seen."""

    name: str
    task: EmulatedTask
    seen: Instant | None = None
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
    failures: dict[str, int] = field(default_factory=dict)

    @property
    def is_lost(self) -> bool:
        """Whether it went before its work was done, to make room or because somebody deleted it."""
        return self.finished is not None and self.phase != "Succeeded" and (self.is_disrupted or self.is_gone)

    def step(self, column: str) -> Instant | None:
        """Return when it came to a step of `STEPS`, by Event; it is scheduled, too, when it is seen bound."""
        seen = [self.steps.get(column), self.bound if column == "scheduled" else None]
        return min((time for time in seen if time is not None), default=None)

    @property
    def failed_attempts(self) -> int:
        """How often placing it failed, as far as Events tell."""
        return sum(self.failures.values())


@dataclass(slots=True)
class JobStory:
    """One job, and the pods it has had."""

    task: EmulatedTask
    submitted: Instant | None = None
    #: Why the cluster did not take it.
    refusal: str = ""
    pods: dict[str, PodStory] = field(default_factory=dict)
    has_ended: bool = False

    def last_pods(self) -> list[PodStory]:
        """Return the pods that count: not those that were lost and replaced."""
        kept = [pod for pod in self.pods.values() if not pod.is_lost]
        return kept or list(self.pods.values())[-self.task.job.size :]

    @property
    def state(self) -> FinalState:
        """How it ended."""
        pods = self.last_pods()
        if self.refusal:
            return FinalState.REJECTED
        if any(pod.is_lost for pod in pods):
            return FinalState.KILLED
        if any(pod.phase == "Failed" for pod in pods):
            return FinalState.FAILED
        return FinalState.WALLTIME if self.task.is_cut else FinalState.SUCCESS


class Story:
    """All jobs of a run. `hear` is the only door."""

    def __init__(self, tasks: Sequence[EmulatedTask], kind: JobKind) -> None:
        self._kind = kind
        #: What happened, as it became known: two watches are never quite together.
        self._happened: list[tuple[Instant, str, dict[str, Field]]] = []
        #: By number.
        self.jobs = [JobStory(task) for task in tasks]
        self._pods: dict[str, PodStory] = {}
        #: Events that came before their pod.
        self._early: dict[str, list[EventSeen]] = {}
        #: The jobs that have ended, in that order.
        self.over: list[JobStory] = []

    @property
    def is_over(self) -> bool:
        """Whether every job has ended."""
        return len(self.over) == len(self.jobs)

    @property
    def refusals(self) -> list[JobStory]:
        """The jobs that the cluster did not take."""
        return [job for job in self.jobs if job.refusal]

    @property
    def nothing_taken(self) -> RunFailed | None:
        """The failure of a run of which the cluster took no job at all."""
        if not self.jobs or len(self.refusals) < len(self.jobs):
            return None
        first = self.jobs[0]
        return RunFailed(f"no job could be submitted, such as {first.task.job.key}: {first.refusal}")

    def tell(self, journal: Journal) -> None:
        """Write what happened, in the order of time."""
        for at, event, fields in sorted(self._happened, key=lambda entry: entry[0]):
            journal.append(at, event, **fields)

    def _note(self, at: Instant, event: str, **fields: Field) -> None:
        self._happened.append((at, event, fields))

    def submitted(self, number: int, at: Instant) -> None:
        """Note that the request for a job was sent."""
        self.jobs[number].submitted = at
        self._note(at, "submit", job=self.jobs[number].task.job.key)

    def refused(self, number: int, why: str, at: Instant) -> None:
        """Note that the cluster does not take a job."""
        job = self.jobs[number]
        job.refusal = why
        self._note(at, "reject", job=job.task.job.key, reason=why)
        self._end(job)

    def hear(self, sighting: PodSeen | EventSeen) -> bool:
        """Take in what was seen, and return whether anything has got on by it."""
        if isinstance(sighting, PodSeen):
            return self._hear_pod(sighting)
        pod = self._pods.get(sighting.pod)
        if pod is None:
            self._early.setdefault(sighting.pod, []).append(sighting)
            return False
        return self._hear_event(pod, sighting)

    def _hear_event(self, pod: PodStory, event: EventSeen) -> bool:
        if event.reason == _FAILED_PLACEMENT:
            pod.failures[event.name] = max(event.count, pod.failures.get(event.name, 0))
            if pod.bound is None:
                pod.reason = event.message or pod.reason
            return False
        column = STEPS.get(event.reason)
        if column is None or column in pod.steps:
            return False
        pod.steps[column] = event.at
        if column == "started" and pod.finished is None:
            self._start(pod, event.at)
        return True

    def _start(self, pod: PodStory, at: Instant) -> None:
        """Note that a pod runs: by its Event or by its status, whichever is seen first."""
        if pod.started is None:
            pod.started = at
            self._note(at, "start", job=pod.task.job.key, pod=pod.name)

    def _hear_pod(self, seen: PodSeen) -> bool:
        if seen.number >= len(self.jobs):
            return False
        job = self.jobs[seen.number]
        pod = job.pods.get(seen.name)
        if pod is None:
            pod = job.pods[seen.name] = self._pods[seen.name] = PodStory(seen.name, job.task, seen.at)
            for event in self._early.pop(seen.name, ()):
                self._hear_event(pod, event)
        if pod.finished is not None:
            pod.is_gone = pod.is_gone or seen.is_gone
            return False
        return self._get_on(job, pod, seen)

    def _get_on(self, job: JobStory, pod: PodStory, seen: PodSeen) -> bool:
        """Note how far a living pod has come."""
        at, key = seen.at, job.task.job.key
        before = (pod.bound, pod.started, pod.finished, pod.seen == at)
        pod.phase = seen.phase
        pod.reason = seen.reason or pod.reason
        pod.is_disrupted = pod.is_disrupted or seen.is_disrupted
        pod.started_at = seen.started_at or pod.started_at
        if seen.node and pod.bound is None:
            # Its Events may have come first.
            pod.node, pod.bound = seen.node, min([at, *pod.steps.values()])
            self._note(pod.bound, "bind", job=key, pod=pod.name, node=pod.node)
        if seen.has_started and not seen.has_finished:
            self._start(pod, at)
        if seen.has_finished:
            pod.finished, pod.is_gone = at, seen.is_gone
            self._note(at, "finish", job=key, pod=pod.name, phase=pod.phase)
            self._consider_end(job)
        return before != (pod.bound, pod.started, pod.finished, False)

    def _consider_end(self, job: JobStory) -> None:
        over = [pod for pod in job.pods.values() if pod.finished is not None]
        if self._kind.is_job:
            # The controller replaces a pod that was lost, and gives the job up when one failed.
            over = [pod for pod in over if not pod.is_lost]
            if any(pod.phase == "Failed" for pod in over):
                self._end(job)
        if len(over) >= job.task.job.size:
            self._end(job)

    def _end(self, job: JobStory) -> None:
        if not job.has_ended:
            job.has_ended = True
            self.over.append(job)
