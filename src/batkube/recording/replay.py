"""What replays a recording: its log, made into jobs and nodes.

Times are those at which news arrived, on our own clock, as in an emulation; where nobody watched (before the recording,
and between two sessions of it) they are the API's timestamps, which are whole seconds of the cluster's clock. Our clock
is laid beside the cluster's by the pods whose creation was watched: each says that the cluster's clock had reached its
timestamp when the news of it came, and the latest of them is taken at its word.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

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
    "workload", "a pod had not begun when last seen: nobody knows how long it runs, and it is left out"
)
STILL_RUNNING = FidelityNote("workload", "a pod still ran when the recording ended: here it ends then")
DELETED_WHILE_RUNNING = FidelityNote("workload", "a pod was deleted while it ran: here it ends then, and succeeds")
CREATED_BEFORE = FidelityNote("workload", "a pod was there before the recording: here it is submitted at the start")
NOT_OBSERVED = FidelityNote(
    "workload", "a pod came, began or ended while nobody watched: its times are the API's, in whole seconds"
)
BELONGS_TO_NODE = FidelityNote(
    "platform", "a pod belongs to its node (DaemonSet, static pod): its requests are taken off the node"
)
PLACEMENT_LOST = FidelityNote(
    "workload", "a pod says where it may go (selectors, affinity, tolerations, …): jobs do not, and it is lost"
)
NODE_CHANGED = FidelityNote("platform", "a node came, went or changed: here it is as last seen, all along")


class Replay(NamedTuple):
    """Jobs by submission, nodes by name, and what they do not tell, each with how often."""

    jobs: list[Job]
    nodes: list[NodeObservation]
    notes: list[tuple[FidelityNote, int]]


class _ObservedTime(NamedTuple):
    """When something happened: a time of our clock in a session, or a timestamp of the API's."""

    session: int
    at: Instant
    api_timestamp: str = ""


@dataclass(slots=True)
class _PodHistory:
    """What was seen of a pod."""

    description: PodDescription
    submission: _ObservedTime
    start: _ObservedTime | None = None
    end: _ObservedTime | None = None
    node: str = ""
    exit_code: int = 0
    #: Whether it ended by itself.
    has_finished: bool = False


@dataclass(slots=True)
class _Session:
    begin: Instant
    speed: float
    end: Instant
    #: The cluster's time is ours times the speed, and this.
    offset: int | None = None

    def cluster_time(self, at: Instant) -> Instant:
        """Return what the cluster's clock showed at a time of ours."""
        # As far as the session has come, times the speed: a float of the whole time of day would be too coarse.
        passed = round((at - self.begin) * self.speed) if self.speed != 1 else at - self.begin
        return Instant(self.begin + passed + (self.offset or 0))

    def observe_timestamp(self, stamp: str, at: Instant) -> None:
        """Take it that the cluster's clock had reached a timestamp at a time of ours."""
        ahead = instant_of(stamp) - (self.cluster_time(at) - (self.offset or 0))
        self.offset = ahead if self.offset is None else max(self.offset, ahead)


@dataclass(slots=True)
class _NodeHistory:
    observation: NodeObservation
    has_changed: bool = False


@dataclass(slots=True)
class _RecordingHistory:
    """Reads the log, line by line."""

    sessions: list[_Session] = field(default_factory=list)
    pods: dict[str, _PodHistory] = field(default_factory=dict)
    jobs: dict[str, JobObservation] = field(default_factory=dict)
    nodes: dict[str, _NodeHistory] = field(default_factory=dict)

    def add(self, line: Line) -> None:
        """Take a line."""
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
        course = self.pods.get(line.uid)
        if course is None:
            if line.description is None:
                return
            created = line.description.created
            course = _PodHistory(line.description, self._observed_time(line, created))
            self.pods[line.uid] = course
            if created and not line.is_listed:
                self.sessions[-1].observe_timestamp(created, line.at)
        course.node = line.node or course.node
        if course.start is None and line.has_started:
            course.start = self._observed_time(line, line.started_at)
        if course.end is None and (line.has_finished or line.is_gone):
            course.end = self._observed_time(line, line.finished_at)
            course.has_finished = line.has_finished
            course.exit_code = line.exit_code

    def _observed_time(self, line: PodObservation, stamp: str) -> _ObservedTime:
        return _ObservedTime(len(self.sessions) - 1, line.at, stamp if line.is_listed else "")

    def _add_node(self, line: NodeObservation) -> None:
        known = self.nodes.get(line.name)
        if known is None:
            is_late = line.at - self.sessions[0].begin > _INITIAL_LIST_WINDOW and not line.is_gone
            self.nodes[line.name] = _NodeHistory(line, is_late)
        else:
            # A node that has gone is as it was before.
            self.nodes[line.name] = _NodeHistory(known.observation if line.is_gone else line, has_changed=True)


#: Nodes that are listed this soon were there when the recording began.
_INITIAL_LIST_WINDOW = Duration(30_000_000_000)


def replay_of(lines: Iterable[Line], workload: str, *, gangs: bool = False) -> Replay:
    """Return what replays a log, as jobs of the workload of this name.

    With `gangs`, the pods of a Job that wants all of them at once are one job.
    """
    story = _RecordingHistory()
    for line in lines:
        story.add(line)
    return _ReplayBuilder(story, workload, gangs=gangs).build()


class _PodRun(NamedTuple):
    uid: str
    history: _PodHistory
    submission: Instant
    start: Instant
    end: Instant


class _ReplayBuilder:
    def __init__(self, story: _RecordingHistory, workload: str, *, gangs: bool) -> None:
        self._history = story
        self._workload = workload
        self._with_gangs = gangs
        self._counts: dict[FidelityNote, int] = defaultdict(int)
        self._delays = DelayProfiles()
        first, last = story.sessions[0], story.sessions[-1]
        self._begin = first.cluster_time(first.begin)
        self._end = last.cluster_time(last.end)

    def build(self) -> Replay:
        pods = [item for item in self._history.pods.items() if not item[1].description.is_of_node]
        runs = [run for uid, course in pods if (run := self._pod_run(uid, course)) is not None]
        jobs = [self._job(members) for members in self._groups(runs)]
        jobs.sort(key=lambda job: job.submit)
        nodes = self._nodes()
        return Replay(jobs, nodes, [(note, count) for note, count in self._counts.items() if count])

    def _time(self, moment: _ObservedTime) -> Instant:
        """Return when a moment was, from the begin of the recording; not before it."""
        if moment.api_timestamp:
            time = instant_of(moment.api_timestamp)
        else:
            time = self._history.sessions[moment.session].cluster_time(moment.at)
        return Instant(max(time - self._begin, 0))

    def _pod_run(self, uid: str, course: _PodHistory) -> _PodRun | None:
        """Return how a pod ran; None if it is no part of the replay."""
        submission = self._time(course.submission)
        end = Instant(self._end - self._begin) if course.end is None else self._time(course.end)
        was_before = bool(course.submission.api_timestamp) and instant_of(course.submission.api_timestamp) < self._begin
        if was_before and course.end is not None and course.end.session == 0 and end == 0:
            return None  # It was over before anybody watched.
        if course.start is None and not course.has_finished:
            self._counts[NEVER_STARTED] += 1
            return None
        self._counts[CREATED_BEFORE] += was_before
        self._counts[STILL_RUNNING] += course.end is None
        self._counts[DELETED_WHILE_RUNNING] += course.end is not None and not course.has_finished
        self._counts[PLACEMENT_LOST] += bool(course.description.placement)
        moments = (course.submission, course.start, course.end)
        self._counts[NOT_OBSERVED] += not was_before and any(moment and moment.api_timestamp for moment in moments)
        # A pod whose run nobody saw, and of which the kubelet tells nothing, ran for no time.
        start = end if course.start is None else self._time(course.start)
        return _PodRun(uid, course, submission, max(start, submission), max(start, submission, end))

    def _groups(self, runs: Sequence[_PodRun]) -> list[list[_PodRun]]:
        """Return the pods that are one job each."""
        groups: dict[str, list[_PodRun]] = defaultdict(list)
        for run in runs:
            groups[run.history.description.job or run.uid].append(run)
        return [
            part
            for owner, members in groups.items()
            for part in ([members] if self._is_gang(owner, members) else [[run] for run in members])
        ]

    def _is_gang(self, owner: str, members: Sequence[_PodRun]) -> bool:
        """Say whether these are all pods of a Job, which it wanted at once, and none was tried again."""
        job = self._history.jobs.get(owner)
        return self._with_gangs and job is not None and job.parallelism == job.completions == len(members) > 1

    def _job(self, members: Sequence[_PodRun]) -> Job:
        first = members[0].history.description
        # A gang works when all of it runs, and until the last of it has ended.
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
        """Return the nodes by name, without what their own pods take of them."""
        taken: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for course in self._history.pods.values():
            if course.description.is_of_node and course.node and course.end is None:
                self._counts[BELONGS_TO_NODE] += 1
                for resource, amount in (*course.description.requests, (PODS, 1)):
                    taken[course.node][resource] += amount
        nodes = []
        for name, node in sorted(self._history.nodes.items()):
            self._counts[NODE_CHANGED] += node.has_changed
            sighting = node.observation
            free = {
                resource: max(amount - taken[name][resource], 0) for resource, amount in sighting.allocatable.items()
            }
            nodes.append(
                NodeObservation(
                    at=sighting.at,
                    name=name,
                    allocatable=free,
                    labels=sighting.labels,
                    taints=sighting.taints,
                    is_cordoned=sighting.is_cordoned,
                )
            )
        return nodes
