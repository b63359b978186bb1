"""Convert the log of a recording to the jobs and nodes that replay it.

The time of a watched change is that of its arrival, on the local clock, as in an emulation. The time of any other
change (before the recording, between two of its sessions, during a lost connection) is the API's timestamp, in whole
seconds of the cluster's clock.

The offset between the two clocks is estimated from watched creations of pods. When the event of a creation arrived, the
cluster's clock had reached the pod's creationTimestamp; the offset is the smallest for which that holds for all pods.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from batkube.kernel.errors import InputError
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import Duration, Instant, instant_of
from batkube.kernel.quantities import PODS
from batkube.recording.log import (
    JobObservation,
    Line,
    NodeObservation,
    PodDescription,
    PodObservation,
    SessionEnd,
    SessionStart,
)
from batkube.workloads.delay_profiles import DelayProfiles
from batkube.workloads.model import Job

NEVER_STARTED = FidelityNote(
    "workload", "a pod had not started when the recording ended: its run time is unknown, so it is left out"
)
STILL_RUNNING = FidelityNote("workload", "a pod was still running when the recording ended: its job ends at that time")
DELETED_WHILE_RUNNING = FidelityNote(
    "workload", "a pod was deleted while it ran: its job ends successfully at that time"
)
CREATED_BEFORE = FidelityNote("workload", "a pod existed before the recording: its job is submitted at the start")
NOT_OBSERVED = FidelityNote(
    "workload",
    "a pod was created, started or ended while there was no watch: its times are API timestamps, in whole seconds",
)
BELONGS_TO_NODE = FidelityNote(
    "platform",
    "a pod belongs to its node (DaemonSet, static pod): its requests are subtracted from the node's capacity",
)
PLACEMENT_LOST = FidelityNote(
    "workload", "a pod has placement constraints (selectors, affinity, tolerations, …): its job has none"
)
NODE_CHANGED = FidelityNote(
    "platform", "a node was created, deleted or changed: it has its last observed properties throughout"
)


class Replay(NamedTuple):
    """Jobs by submission, nodes by name, and fidelity notes with their counts."""

    jobs: list[Job]
    nodes: list[NodeObservation]
    notes: list[tuple[FidelityNote, int]]


class _ObservedTime(NamedTuple):
    """The time of a change: on the local clock in a session or, unless it is "", as a timestamp of the API."""

    session: int
    at: Instant
    api_timestamp: str = ""


@dataclass(slots=True)
class _PodHistory:
    """The observed life cycle of a pod."""

    description: PodDescription
    submission: _ObservedTime
    start: _ObservedTime | None = None
    end: _ObservedTime | None = None
    node: str = ""
    exit_code: int = 0
    #: Whether it reached a terminal phase before it was deleted.
    has_finished: bool = False


@dataclass(slots=True)
class _Session:
    begin: Instant
    speed: float
    end: Instant
    #: The offset of the cluster's clock from the local clock, scaled by the speed; None if unknown.
    offset: int | None = None

    def cluster_time(self, at: Instant) -> Instant:
        """Convert a local time to the cluster's clock."""
        # Scale only the time since the session began: a float is too coarse for a Unix time in nanoseconds.
        elapsed = round((at - self.begin) * self.speed) if self.speed != 1 else at - self.begin
        return Instant(self.begin + elapsed + (self.offset or 0))

    def observe_timestamp(self, stamp: str, at: Instant) -> None:
        """Raise the offset so that the cluster's clock has reached a timestamp at a local time."""
        offset = instant_of(stamp) - (self.cluster_time(at) - (self.offset or 0))
        self.offset = offset if self.offset is None else max(self.offset, offset)


@dataclass(slots=True)
class _NodeHistory:
    observation: NodeObservation
    has_changed: bool = False


@dataclass(slots=True)
class _RecordingHistory:
    """The sessions and the observed objects of a log."""

    sessions: list[_Session] = field(default_factory=list)
    pods: dict[str, _PodHistory] = field(default_factory=dict)
    jobs: dict[str, JobObservation] = field(default_factory=dict)
    nodes: dict[str, _NodeHistory] = field(default_factory=dict)

    def add(self, line: Line) -> None:
        """Add a line of the log."""
        if isinstance(line, SessionStart):
            self.sessions.append(_Session(line.at, line.speed, line.at))
            return
        if isinstance(line, PodObservation):
            self._add_pod(line)
        elif isinstance(line, NodeObservation):
            self._add_node(line)
        elif isinstance(line, JobObservation):
            self.jobs[line.uid] = line
        if isinstance(line, PodObservation | NodeObservation | SessionEnd):
            self.sessions[-1].end = max(self.sessions[-1].end, line.at)

    def _add_pod(self, line: PodObservation) -> None:
        pod = self.pods.get(line.uid)
        if pod is None:
            if line.description is None:
                return
            created = line.description.created
            pod = _PodHistory(line.description, self._observed_time(line, created))
            self.pods[line.uid] = pod
            if created and not line.is_listed:
                self.sessions[-1].observe_timestamp(created, line.at)
        pod.node = line.node or pod.node
        if pod.start is None and line.has_started:
            pod.start = self._observed_time(line, line.started_at)
        if pod.end is None and (line.has_finished or line.is_gone):
            pod.end = self._observed_time(line, line.finished_at)
            pod.has_finished = line.has_finished
            pod.exit_code = line.exit_code

    def _observed_time(self, line: PodObservation, stamp: str) -> _ObservedTime:
        return _ObservedTime(len(self.sessions) - 1, line.at, stamp if line.is_listed else "")

    def _add_node(self, line: NodeObservation) -> None:
        previous = self.nodes.get(line.name)
        if previous is None:
            is_late = line.at - self.sessions[0].begin > _INITIAL_LIST_WINDOW and not line.is_gone
            self.nodes[line.name] = _NodeHistory(line, is_late)
        else:
            # A deleted node keeps its last properties.
            self.nodes[line.name] = _NodeHistory(previous.observation if line.is_gone else line, has_changed=True)


#: Nodes that are observed within this time existed when the recording began.
_INITIAL_LIST_WINDOW = Duration(30_000_000_000)


def replay_of(lines: Iterable[Line], workload: str, *, gangs: bool = False) -> Replay:
    """Return the replay of a log, with jobs of the workload of this name.

    With `gangs`, the pods of a Job that runs all of them in parallel are one job.
    """
    history = _RecordingHistory()
    for line in lines:
        history.add(line)
    if not history.sessions:
        raise InputError("a recording", problem="has no session", remedy="record again, or resume it")
    return _ReplayBuilder(history, workload, gangs=gangs).build()


class _PodRun(NamedTuple):
    uid: str
    history: _PodHistory
    submission: Instant
    start: Instant
    end: Instant


class _ReplayBuilder:
    def __init__(self, history: _RecordingHistory, workload: str, *, gangs: bool) -> None:
        self._history = history
        self._workload = workload
        self._with_gangs = gangs
        self._counts: dict[FidelityNote, int] = defaultdict(int)
        self._delays = DelayProfiles()
        first, last = history.sessions[0], history.sessions[-1]
        self._begin = first.cluster_time(first.begin)
        self._end = last.cluster_time(last.end)

    def build(self) -> Replay:
        pods = [item for item in self._history.pods.items() if not item[1].description.is_of_node]
        runs = [run for uid, pod in pods if (run := self._pod_run(uid, pod)) is not None]
        jobs = [self._job(members) for members in self._groups(runs)]
        jobs.sort(key=lambda job: job.submit)
        nodes = self._nodes()
        return Replay(jobs, nodes, [(note, count) for note, count in self._counts.items() if count])

    def _time(self, observed: _ObservedTime) -> Instant:
        """Return a time relative to the start of the recording; 0 for earlier times."""
        if observed.api_timestamp:
            time = instant_of(observed.api_timestamp)
        else:
            time = self._history.sessions[observed.session].cluster_time(observed.at)
        return Instant(max(time - self._begin, 0))

    def _pod_run(self, uid: str, pod: _PodHistory) -> _PodRun | None:
        """Return the run of a pod; None if it is not part of the replay."""
        submission = self._time(pod.submission)
        end = Instant(self._end - self._begin) if pod.end is None else self._time(pod.end)
        existed_before = bool(pod.submission.api_timestamp) and instant_of(pod.submission.api_timestamp) < self._begin
        if existed_before and pod.end is not None and pod.end.session == 0 and end == 0:
            return None  # It ended before the recording.
        if pod.start is None and not pod.has_finished:
            self._counts[NEVER_STARTED] += 1
            return None
        self._counts[CREATED_BEFORE] += existed_before
        self._counts[STILL_RUNNING] += pod.end is None
        self._counts[DELETED_WHILE_RUNNING] += pod.end is not None and not pod.has_finished
        self._counts[PLACEMENT_LOST] += bool(pod.description.placement)
        times = (pod.submission, pod.start, pod.end)
        self._counts[NOT_OBSERVED] += not existed_before and any(time and time.api_timestamp for time in times)
        # A finished pod whose start is unknown has a run time of 0.
        start = end if pod.start is None else self._time(pod.start)
        return _PodRun(uid, pod, submission, max(start, submission), max(start, submission, end))

    def _groups(self, runs: Sequence[_PodRun]) -> list[list[_PodRun]]:
        """Group the pods into jobs."""
        groups: dict[str, list[_PodRun]] = defaultdict(list)
        for run in runs:
            groups[run.history.description.job or run.uid].append(run)
        return [
            part
            for owner, members in groups.items()
            for part in ([members] if self._is_gang(owner, members) else [[run] for run in members])
        ]

    def _is_gang(self, owner: str, members: Sequence[_PodRun]) -> bool:
        """Return whether these are all pods of a Job that runs them in parallel and never replaced one."""
        job = self._history.jobs.get(owner)
        return self._with_gangs and job is not None and job.parallelism == job.completions == len(members) > 1

    def _job(self, members: Sequence[_PodRun]) -> Job:
        first = members[0].history.description
        # A gang runs from the start of its last pod to the end of its last pod.
        length = Duration(max(run.end for run in members) - max(run.start for run in members))
        profile = self._delays.profile_for(length, max(run.history.exit_code for run in members))
        return Job(
            workload=self._workload,
            name=self._history.jobs[first.job].name if len(members) > 1 else first.name,
            submit=min(run.submission for run in members),
            size=len(members),
            profile=profile,
            requests=first.requests,
            user=first.namespace,
            priority=first.priority,
            scheduler=first.scheduler,
            image=first.image,
        )

    def _nodes(self) -> list[NodeObservation]:
        """Return the nodes by name, with the requests of their own pods subtracted from allocatable."""
        reserved: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for pod in self._history.pods.values():
            if pod.description.is_of_node and pod.node and pod.end is None:
                self._counts[BELONGS_TO_NODE] += 1
                for resource, amount in (*pod.description.requests, (PODS, 1)):
                    reserved[pod.node][resource] += amount
        nodes = []
        for name, node in sorted(self._history.nodes.items()):
            self._counts[NODE_CHANGED] += node.has_changed
            observation = node.observation
            remaining = {
                resource: max(amount - reserved[name][resource], 0)
                for resource, amount in observation.allocatable.items()
            }
            nodes.append(
                NodeObservation(
                    at=observation.at,
                    name=name,
                    allocatable=remaining,
                    labels=observation.labels,
                    taints=observation.taints,
                    is_cordoned=observation.is_cordoned,
                )
            )
        return nodes
