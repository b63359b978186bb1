"""Plays the jobs on the cluster in real time: a thread that submits, two that watch, and one that waits for them all.

Whatever is seen is stamped at once by the thread that sees it, and told in the main one. Time is the workload's: real
time since the start, multiplied by the speed.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from batkube.emulation import sightings
from batkube.emulation.access import Access, RefusedByCluster, Unreachable
from batkube.emulation.following import FollowedCollection
from batkube.emulation.manifests import LABEL_RUN, EmulatedTask, Style, collection_of, group_of, objects_of
from batkube.emulation.sightings import EventSeen, PodSeen
from batkube.emulation.story import Story
from batkube.emulation.waiting import pause
from batkube.kernel.errors import RunFailed
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Duration, Instant, human
from batkube.kernel.stopwatch import Stopwatch

#: How many jobs are submitted at once when many are due.
_HANDS = 8
#: How often a request without an answer is repeated, and after how long.
_TRIES, _RETRY_S = 5, 1.0
#: The main thread looks up at least so often.
_LOOK_UP_S = 1.0


class _Submitted(NamedTuple):
    number: int
    at: Instant
    #: Why the cluster did not take it, if it did not.
    refusal: str = ""


class _Lost(NamedTuple):
    """A thread cannot go on."""

    error: RunFailed


_News = PodSeen | EventSeen | _Submitted | _Lost
_Read = Callable[[msgspec.Raw, Instant, bool], PodSeen | EventSeen | None]


class RunClock:
    """The workload's time. It stands at 0 until it is started."""

    def __init__(self, speed: float) -> None:
        self.speed = speed
        self._stopwatch: Stopwatch | None = None

    def start(self) -> None:
        """Let time pass from now on."""
        self._stopwatch = Stopwatch()

    @property
    def now(self) -> Instant:
        """How far the run has come."""
        if self._stopwatch is None:
            return Instant(0)
        return Instant(round(self._stopwatch.real_s * self.speed * NANOSECONDS_PER_SECOND))

    def real_s(self, length: int) -> float:
        """Return how many real seconds a length of the workload's time takes."""
        return length / NANOSECONDS_PER_SECOND / self.speed


@dataclass(frozen=True, slots=True)
class PlayStage:
    """Where a run is played."""

    access: Access
    namespace: str
    style: Style


class Player:
    """One run, from the first job to the last."""

    def __init__(
        self, stage: PlayStage, tasks: Sequence[EmulatedTask], story: Story, clock: RunClock, patience: Duration
    ) -> None:
        self._stage = stage
        self._tasks = tasks
        self._story = story
        self._clock = clock
        self._patience_s = patience / NANOSECONDS_PER_SECOND
        self._news: queue.SimpleQueue[_News] = queue.SimpleQueue()
        self._is_over = threading.Event()
        #: How many tasks have been handed over for submission, and how many that are over have been cleared away.
        self._handed = self._dismissed = 0
        #: The latest that a submission came after its time, in the workload's time.
        self.lag = Duration(0)

    @property
    def now(self) -> Instant:
        """How far the run has come."""
        return self._clock.now

    def play(self, progress: Callable[[int, int, Instant], None]) -> None:
        """Submit every job at its time and wait until all have ended. Raises RunFailed."""
        hands = ThreadPoolExecutor(_HANDS, thread_name_prefix="submit")
        try:
            self._watch()
            self._clock.start()
            quiet = Stopwatch()
            while not self._story.is_over:
                self._hand_over(hands)
                if self._take_news():
                    quiet = Stopwatch()
                    progress(len(self._story.over), len(self._tasks), self._clock.now)
                    self._dismiss_over(hands)
                elif quiet.real_s > self._patience_s and not self._is_something_due():
                    raise RunFailed(f"nothing has happened for {human(int(quiet.real_s * 1e9))}: {self._waiting()}")
        finally:
            self._is_over.set()
            # What is being sent is waited for, or it would be created after the cluster was cleared.
            hands.shutdown(wait=True, cancel_futures=True)

    def _hand_over(self, hands: ThreadPoolExecutor) -> None:
        """Let every job that is due be submitted."""
        while self._handed < len(self._tasks) and self._tasks[self._handed].job.submit <= self._clock.now:
            hands.submit(self._submit, self._tasks[self._handed])
            self._handed += 1

    def _take_news(self) -> bool:
        """Wait for something to be seen, or for the next job's time; return whether anything got on."""
        limit_s = _LOOK_UP_S
        if self._handed < len(self._tasks):
            due = self._tasks[self._handed].job.submit - self._clock.now
            limit_s = max(0.0, min(limit_s, self._clock.real_s(due)))
        try:
            news = self._news.get(timeout=limit_s)
        except queue.Empty:
            return False
        match news:
            case _Lost():
                raise news.error
            case _Submitted():
                self._note_submission(news)
                return True
            case _:
                return self._story.hear(news)

    def _note_submission(self, news: _Submitted) -> None:
        self._story.submitted(news.number, news.at)
        self.lag = max(self.lag, Duration(news.at - self._tasks[news.number].job.submit))
        if news.refusal:
            self._story.refused(news.number, news.refusal, news.at)

    def _is_something_due(self) -> bool:
        """Say whether a job is still to come, or a pod is still to run as long as it should."""
        if self._handed < len(self._tasks):
            return True
        now = self._clock.now
        return any(
            pod.started is not None and pod.finished is None and now < pod.started + job.task.length
            for job in self._story.jobs
            for pod in job.pods.values()
        )

    def _waiting(self) -> str:
        """Return who waits for what."""
        waiting = [job for job in self._story.jobs if not job.has_ended]
        first = waiting[0]
        reasons = [pod.reason for pod in first.last_pods() if pod.reason] or ["no reason is given"]
        return f"{len(waiting)} jobs have not ended, such as {first.task.job.key}: {reasons[0]}"

    def _submit(self, task: EmulatedTask) -> None:
        """Create a job's objects; runs in a thread of its own."""
        stage, at = self._stage, self._clock.now
        try:
            for each in objects_of(task, stage.style):
                _create(stage.access, collection_of(each, stage.namespace), each)
        except RefusedByCluster as error:
            self._news.put(_Submitted(task.number, at, str(error)))
        except RunFailed as error:
            self._news.put(_Lost(error))
        else:
            self._news.put(_Submitted(task.number, at))

    def _dismiss_over(self, hands: ThreadPoolExecutor) -> None:
        """Let the PodGroups of jobs that are over go, as in a simulation: schedulers count those that are there."""
        if self._stage.style.dialect is not None:
            for job in self._story.over[self._dismissed :]:
                hands.submit(self._dismiss, job.task)
        self._dismissed = len(self._story.over)

    def _dismiss(self, task: EmulatedTask) -> None:
        """Delete a PodGroup; runs in a thread of its own. What stays is cleared away with the run."""
        group = group_of(task, self._stage.style)
        with contextlib.suppress(RunFailed):
            self._stage.access.delete(f"{collection_of(group, self._stage.namespace)}/{group['metadata']['name']}")

    def _watch(self) -> None:
        """Begin to watch, and return once nothing can be missed any more."""
        base = f"/api/v1/namespaces/{self._stage.namespace}"
        selector = {"labelSelector": f"{LABEL_RUN}={self._stage.style.run}"}
        sources: list[tuple[str, dict[str, str], _Read]] = [
            (f"{base}/pods", selector, lambda raw, at, gone: sightings.pod_seen(raw, at, is_gone=gone)),
            (f"{base}/events", {}, lambda raw, at, gone: None if gone else sightings.event_seen(raw, at)),
        ]
        for path, query, read in sources:
            listed = self._stage.access.text(path, **query)
            followed = self._followed(path, query, read)
            version = sightings.version_of(listed)
            threading.Thread(target=followed.follow, args=(version,), name=f"watch {path}", daemon=True).start()

    def _followed(self, path: str, query: dict[str, str], read: _Read) -> FollowedCollection:
        """Return a collection to follow: what is seen of it is news. What goes while a watch is lost is not told."""

        def tell(raw: msgspec.Raw, *, is_gone: bool = False) -> None:
            seen = read(raw, self._clock.now, is_gone)
            if seen is not None:
                self._news.put(seen)

        def listed(content: bytes) -> None:
            for each in sightings.items_of(content):
                tell(each)

        return FollowedCollection(
            self._stage.access,
            path,
            query,
            on_list=listed,
            on_change=lambda line: tell(line.object, is_gone=line.type == "DELETED"),
            on_loss=lambda error: self._news.put(_Lost(error)),
            is_over=self._is_over,
            tries=_TRIES,
        )


def _create(access: Access, path: str, content: dict[str, object]) -> None:
    """Create an object; a request without an answer is repeated, and may find that it was carried out after all."""
    for tries_left in reversed(range(_TRIES)):
        try:
            access.create(path, content)
        except Unreachable:
            if not tries_left:
                raise
            pause(_RETRY_S)
        except RefusedByCluster as error:
            if error.code == 409 and tries_left < _TRIES - 1:
                return
            if error.code not in (429, 500, 503, 504) or not tries_left:
                raise
            pause(_RETRY_S)
        else:
            return
