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
    JobSighting,
    Line,
    NodeSighting,
    PodDescription,
    PodSighting,
    SessionBegun,
    SessionEnded,
)
from batkube.workloads.delays import DelayProfiles
from batkube.workloads.model import Job

WAITING = FidelityNote(
    "workload", "a pod had not begun when last seen: nobody knows how long it runs, and it is left out"
)
RUNNING = FidelityNote("workload", "a pod still ran when the recording ended: here it ends then")
DELETED = FidelityNote("workload", "a pod was deleted while it ran: here it ends then, and succeeds")
EARLIER = FidelityNote("workload", "a pod was there before the recording: here it is submitted at the start")
UNWATCHED = FidelityNote(
    "workload", "a pod came, began or ended while nobody watched: its times are the API's, in whole seconds"
)
OF_NODE = FidelityNote(
    "platform", "a pod belongs to its node (DaemonSet, static pod): its requests are taken off the node"
)
PLACED = FidelityNote(
    "workload", "a pod says where it may go (selectors, affinity, tolerations, …): jobs do not, and it is lost"
)
CHANGED_NODE = FidelityNote("platform", "a node came, went or changed: here it is as last seen, all along")


class Replay(NamedTuple):
    """Jobs by submission, nodes by name, and what they do not tell, each with how often."""

    jobs: list[Job]
    nodes: list[NodeSighting]
    notes: list[tuple[FidelityNote, int]]


class _Moment(NamedTuple):
    """When something happened: a time of our clock in a session, or a timestamp of the API's."""

    session: int
    at: Instant
    stamp: str = ""


@dataclass(slots=True)
class _PodCourse:
    """What was seen of a pod."""

    description: PodDescription
    submission: _Moment
    start: _Moment | None = None
    end: _Moment | None = None
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

    def learn(self, stamp: str, at: Instant) -> None:
        """Take it that the cluster's clock had reached a timestamp at a time of ours."""
        ahead = instant_of(stamp) - (self.cluster_time(at) - (self.offset or 0))
        self.offset = ahead if self.offset is None else max(self.offset, ahead)


@dataclass(slots=True)
class _NodeCourse:
    sighting: NodeSighting
    has_changed: bool = False


@dataclass(slots=True)
class _Story:
    """Reads the log, line by line."""

    sessions: list[_Session] = field(default_factory=list)
    pods: dict[str, _PodCourse] = field(default_factory=dict)
    jobs: dict[str, JobSighting] = field(default_factory=dict)
    nodes: dict[str, _NodeCourse] = field(default_factory=dict)

    def hear(self, line: Line) -> None:
        """Take a line."""
        if isinstance(line, SessionBegun):
            self.sessions.append(_Session(line.at, line.speed, line.at))
            return
        if isinstance(line, PodSighting):
            self._hear_pod(line)
        elif isinstance(line, NodeSighting):
            self._hear_node(line)
        elif isinstance(line, JobSighting):
            self.jobs[line.uid] = line
        if isinstance(line, PodSighting | NodeSighting | SessionEnded):
            self.sessions[-1].end = max(self.sessions[-1].end, line.at)

    def _hear_pod(self, line: PodSighting) -> None:
        course = self.pods.get(line.uid)
        if course is None:
            if line.description is None:
                return
            created = line.description.created
            course = _PodCourse(line.description, self._moment(line, created))
            self.pods[line.uid] = course
            if created and not line.is_listed:
                self.sessions[-1].learn(created, line.at)
        course.node = line.node or course.node
        if course.start is None and line.has_started:
            course.start = self._moment(line, line.started_at)
        if course.end is None and (line.has_finished or line.is_gone):
            course.end = self._moment(line, line.finished_at)
            course.has_finished = line.has_finished
            course.exit_code = line.exit_code

    def _moment(self, line: PodSighting, stamp: str) -> _Moment:
        return _Moment(len(self.sessions) - 1, line.at, stamp if line.is_listed else "")

    def _hear_node(self, line: NodeSighting) -> None:
        known = self.nodes.get(line.name)
        if known is None:
            is_late = line.at - self.sessions[0].begin > _AT_ONCE and not line.is_gone
            self.nodes[line.name] = _NodeCourse(line, is_late)
        else:
            # A node that has gone is as it was before.
            self.nodes[line.name] = _NodeCourse(known.sighting if line.is_gone else line, has_changed=True)


#: Nodes that are listed this soon were there when the recording began.
_AT_ONCE = Duration(30_000_000_000)


def replay_of(lines: Iterable[Line], workload: str, *, gangs: bool = False) -> Replay:
    """Return what replays a log, as jobs of the workload of this name.

    With `gangs`, the pods of a Job that wants all of them at once are one job.
    """
    story = _Story()
    for line in lines:
        story.hear(line)
    return _Replaying(story, workload, gangs=gangs).replay()


class _PodRun(NamedTuple):
    uid: str
    course: _PodCourse
    submission: Instant
    start: Instant
    end: Instant


class _Replaying:
    def __init__(self, story: _Story, workload: str, *, gangs: bool) -> None:
        self._story = story
        self._workload = workload
        self._with_gangs = gangs
        self._counts: dict[FidelityNote, int] = defaultdict(int)
        self._delays = DelayProfiles()
        first, last = story.sessions[0], story.sessions[-1]
        self._begin = first.cluster_time(first.begin)
        self._end = last.cluster_time(last.end)

    def replay(self) -> Replay:
        pods = [item for item in self._story.pods.items() if not item[1].description.is_of_node]
        runs = [run for uid, course in pods if (run := self._run(uid, course)) is not None]
        jobs = [self._job(members) for members in self._groups(runs)]
        jobs.sort(key=lambda job: job.submit)
        nodes = self._nodes()
        return Replay(jobs, nodes, [(note, count) for note, count in self._counts.items() if count])

    def _time(self, moment: _Moment) -> Instant:
        """Return when a moment was, from the begin of the recording; not before it."""
        if moment.stamp:
            time = instant_of(moment.stamp)
        else:
            time = self._story.sessions[moment.session].cluster_time(moment.at)
        return Instant(max(time - self._begin, 0))

    def _run(self, uid: str, course: _PodCourse) -> _PodRun | None:
        """Return how a pod ran; None if it is no part of the replay."""
        submission = self._time(course.submission)
        end = Instant(self._end - self._begin) if course.end is None else self._time(course.end)
        was_before = bool(course.submission.stamp) and instant_of(course.submission.stamp) < self._begin
        if was_before and course.end is not None and course.end.session == 0 and end == 0:
            return None  # It was over before anybody watched.
        if course.start is None and not course.has_finished:
            self._counts[WAITING] += 1
            return None
        self._counts[EARLIER] += was_before
        self._counts[RUNNING] += course.end is None
        self._counts[DELETED] += course.end is not None and not course.has_finished
        self._counts[PLACED] += bool(course.description.placement)
        moments = (course.submission, course.start, course.end)
        self._counts[UNWATCHED] += not was_before and any(moment and moment.stamp for moment in moments)
        # A pod whose run nobody saw, and of which the kubelet tells nothing, ran for no time.
        start = end if course.start is None else self._time(course.start)
        return _PodRun(uid, course, submission, max(start, submission), max(start, submission, end))

    def _groups(self, runs: Sequence[_PodRun]) -> list[list[_PodRun]]:
        """Return the pods that are one job each."""
        groups: dict[str, list[_PodRun]] = defaultdict(list)
        for run in runs:
            groups[run.course.description.job or run.uid].append(run)
        return [
            part
            for owner, members in groups.items()
            for part in ([members] if self._is_gang(owner, members) else [[run] for run in members])
        ]

    def _is_gang(self, owner: str, members: Sequence[_PodRun]) -> bool:
        """Say whether these are all pods of a Job, which it wanted at once, and none was tried again."""
        job = self._story.jobs.get(owner)
        return self._with_gangs and job is not None and job.parallelism == job.completions == len(members) > 1

    def _job(self, members: Sequence[_PodRun]) -> Job:
        first = members[0].course.description
        # A gang works when all of it runs, and until the last of it has ended.
        length = Duration(max(run.end for run in members) - max(run.start for run in members))
        profile = self._delays.of(length, max(run.course.exit_code for run in members))
        return Job(
            workload=self._workload,
            name=self._story.jobs[first.job].name if len(members) > 1 else first.name,
            submit=min(run.submission for run in members),
            size=len(members),
            profile=profile,
            requests=first.requests,
            user=first.namespace,
            priority=first.priority,
            scheduler=first.scheduler,
            image=first.image,
        )

    def _nodes(self) -> list[NodeSighting]:
        """Return the nodes by name, without what their own pods take of them."""
        taken: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for course in self._story.pods.values():
            if course.description.is_of_node and course.node and course.end is None:
                self._counts[OF_NODE] += 1
                for resource, amount in (*course.description.requests, (PODS, 1)):
                    taken[course.node][resource] += amount
        nodes = []
        for name, node in sorted(self._story.nodes.items()):
            self._counts[CHANGED_NODE] += node.has_changed
            sighting = node.sighting
            free = {
                resource: max(amount - taken[name][resource], 0) for resource, amount in sighting.allocatable.items()
            }
            nodes.append(
                NodeSighting(
                    at=sighting.at,
                    name=name,
                    allocatable=free,
                    labels=sighting.labels,
                    taints=sighting.taints,
                    is_cordoned=sighting.is_cordoned,
                )
            )
        return nodes
