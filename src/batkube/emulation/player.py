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

from batkube.emulation.client import watch_events
from batkube.emulation.client.connection import ApiStatusError, ClusterConnection, ClusterUnreachable
from batkube.emulation.client.polling import pause
from batkube.emulation.client.reflector import Reflector
from batkube.emulation.client.watch_events import PodEvent, PodUpdate
from batkube.emulation.job_tracker import JobTracker
from batkube.emulation.manifests import LABEL_RUN, ManifestOptions, PlannedJob, collection_of, group_of, objects_of
from batkube.kernel.errors import RunFailed
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Duration, Instant, human_duration
from batkube.kernel.stopwatch import Stopwatch

#: How many jobs are submitted at once when many are due.
_SUBMIT_THREADS = 8
#: How often a request without an answer is repeated, and after how long.
_MAX_TRIES, _RETRY_S = 5, 1.0
#: The main thread looks up at least so often.
_POLL_INTERVAL_S = 1.0


class _SubmissionResult(NamedTuple):
    number: int
    at: Instant
    #: Why the cluster did not take it, if it did not.
    rejection: str = ""


class _ThreadFailure(NamedTuple):
    """A thread has failed."""

    error: RunFailed


_Message = PodUpdate | PodEvent | _SubmissionResult | _ThreadFailure
_Decoder = Callable[[msgspec.Raw, Instant, bool], PodUpdate | PodEvent | None]


class RunClock:
    """The workload's time. It stands at 0 until it is started."""

    def __init__(self, speed: float) -> None:
        self.speed = speed
        self._stopwatch: Stopwatch | None = None

    def start(self) -> None:
        """Start the clock."""
        self._stopwatch = Stopwatch()

    @property
    def now(self) -> Instant:
        """How far the run has come."""
        if self._stopwatch is None:
            return Instant(0)
        return Instant(round(self._stopwatch.real_s * self.speed * NANOSECONDS_PER_SECOND))

    def to_real_s(self, length: int) -> float:
        """Return how many real seconds a length of the workload's time takes."""
        return length / NANOSECONDS_PER_SECOND / self.speed


@dataclass(frozen=True, slots=True)
class RunTarget:
    """The cluster and the environment of a run."""

    cluster: ClusterConnection
    namespace: str
    options: ManifestOptions


class Player:
    """One run, from the first job to the last."""

    def __init__(
        self, stage: RunTarget, tasks: Sequence[PlannedJob], story: JobTracker, clock: RunClock, patience: Duration
    ) -> None:
        self._target = stage
        self._tasks = tasks
        self._tracker = story
        self._clock = clock
        self._patience_s = patience / NANOSECONDS_PER_SECOND
        self._messages: queue.SimpleQueue[_Message] = queue.SimpleQueue()
        self._stop_event = threading.Event()
        #: How many tasks have been handed over for submission, and how many that are over have been cleared away.
        self._submitted_count = self._cleaned_count = 0
        #: The latest that a submission came after its time, in the workload's time.
        self.lag = Duration(0)

    @property
    def now(self) -> Instant:
        """How far the run has come."""
        return self._clock.now

    def run(self, progress: Callable[[int, int, Instant], None]) -> None:
        """Submit every job at its time and wait until all have ended. Raises RunFailed."""
        hands = ThreadPoolExecutor(_SUBMIT_THREADS, thread_name_prefix="submit")
        try:
            self._start_watches()
            self._clock.start()
            quiet = Stopwatch()
            while not self._tracker.is_over:
                self._submit_due(hands)
                if self._process_message():
                    quiet = Stopwatch()
                    progress(len(self._tracker.ended_jobs), len(self._tasks), self._clock.now)
                    self._delete_ended_groups(hands)
                elif quiet.real_s > self._patience_s and not self._has_work_due():
                    raise RunFailed(
                        f"nothing has happened for {human_duration(int(quiet.real_s * 1e9))}: {self._describe_stall()}"
                    )
        finally:
            self._stop_event.set()
            # What is being sent is waited for, or it would be created after the cluster was cleared.
            hands.shutdown(wait=True, cancel_futures=True)

    def _submit_due(self, hands: ThreadPoolExecutor) -> None:
        """Hand all jobs that are due to the submission threads."""
        while (
            self._submitted_count < len(self._tasks)
            and self._tasks[self._submitted_count].job.submit <= self._clock.now
        ):
            hands.submit(self._submit, self._tasks[self._submitted_count])
            self._submitted_count += 1

    def _process_message(self) -> bool:
        """Wait for something to be seen, or for the next job's time; return whether anything got on."""
        limit_s = _POLL_INTERVAL_S
        if self._submitted_count < len(self._tasks):
            due = self._tasks[self._submitted_count].job.submit - self._clock.now
            limit_s = max(0.0, min(limit_s, self._clock.to_real_s(due)))
        try:
            news = self._messages.get(timeout=limit_s)
        except queue.Empty:
            return False
        match news:
            case _ThreadFailure():
                raise news.error
            case _SubmissionResult():
                self._record_submission(news)
                return True
            case _:
                return self._tracker.handle(news)

    def _record_submission(self, news: _SubmissionResult) -> None:
        self._tracker.record_submission(news.number, news.at)
        self.lag = max(self.lag, Duration(news.at - self._tasks[news.number].job.submit))
        if news.rejection:
            self._tracker.record_rejection(news.number, news.rejection, news.at)

    def _has_work_due(self) -> bool:
        """Return whether a submission, or the end of a running pod, is still expected."""
        if self._submitted_count < len(self._tasks):
            return True
        now = self._clock.now
        return any(
            pod.started is not None and pod.finished is None and now < pod.started + job.planned.run_time
            for job in self._tracker.jobs
            for pod in job.pods.values()
        )

    def _describe_stall(self) -> str:
        """Return the unfinished jobs with their reasons, for a message."""
        waiting = [job for job in self._tracker.jobs if not job.has_ended]
        first = waiting[0]
        reasons = [pod.reason for pod in first.final_pods() if pod.reason] or ["no reason is given"]
        return f"{len(waiting)} jobs have not ended, such as {first.planned.job.key}: {reasons[0]}"

    def _submit(self, task: PlannedJob) -> None:
        """Create a job's objects; runs in a thread of its own."""
        stage, at = self._target, self._clock.now
        try:
            for each in objects_of(task, stage.options):
                _create_with_retries(stage.cluster, collection_of(each, stage.namespace), each)
        except ApiStatusError as error:
            self._messages.put(_SubmissionResult(task.number, at, str(error)))
        except RunFailed as error:
            self._messages.put(_ThreadFailure(error))
        else:
            self._messages.put(_SubmissionResult(task.number, at))

    def _delete_ended_groups(self, hands: ThreadPoolExecutor) -> None:
        """Let the PodGroups of jobs that are over go, as in a simulation: schedulers count those that are there."""
        if self._target.options.dialect is not None:
            for job in self._tracker.ended_jobs[self._cleaned_count :]:
                hands.submit(self._delete_group, job.planned)
        self._cleaned_count = len(self._tracker.ended_jobs)

    def _delete_group(self, task: PlannedJob) -> None:
        """Delete a PodGroup; runs in a thread of its own. What stays is cleared away with the run."""
        group = group_of(task, self._target.options)
        with contextlib.suppress(RunFailed):
            self._target.cluster.delete(f"{collection_of(group, self._target.namespace)}/{group['metadata']['name']}")

    def _start_watches(self) -> None:
        """Start the watches, and return once they cannot miss an event."""
        base = f"/api/v1/namespaces/{self._target.namespace}"
        selector = {"labelSelector": f"{LABEL_RUN}={self._target.options.run}"}
        sources: list[tuple[str, dict[str, str], _Decoder]] = [
            (f"{base}/pods", selector, lambda raw, at, gone: watch_events.pod_update_of(raw, at, is_gone=gone)),
            (f"{base}/events", {}, lambda raw, at, gone: None if gone else watch_events.pod_event_of(raw, at)),
        ]
        for path, query, read in sources:
            listed = self._target.cluster.get_bytes(path, **query)
            followed = self._reflector(path, query, read)
            version = watch_events.resource_version_of(listed)
            threading.Thread(target=followed.run, args=(version,), name=f"watch {path}", daemon=True).start()

    def _reflector(self, path: str, query: dict[str, str], read: _Decoder) -> Reflector:
        """Return a collection to follow: what is seen of it is news. What goes while a watch is lost is not told."""

        def tell(raw: msgspec.Raw, *, is_gone: bool = False) -> None:
            seen = read(raw, self._clock.now, is_gone)
            if seen is not None:
                self._messages.put(seen)

        def listed(content: bytes) -> None:
            for each in watch_events.items_of(content):
                tell(each)

        return Reflector(
            self._target.cluster,
            path,
            query,
            on_list=listed,
            on_change=lambda line: tell(line.object, is_gone=line.type == "DELETED"),
            on_loss=lambda error: self._messages.put(_ThreadFailure(error)),
            is_over=self._stop_event,
            tries=_MAX_TRIES,
        )


def _create_with_retries(access: ClusterConnection, path: str, content: dict[str, object]) -> None:
    """Create an object; a request without an answer is repeated, and may find that it was carried out after all."""
    for tries_left in reversed(range(_MAX_TRIES)):
        try:
            access.create(path, content)
        except ClusterUnreachable:
            if not tries_left:
                raise
            pause(_RETRY_S)
        except ApiStatusError as error:
            if error.code == 409 and tries_left < _MAX_TRIES - 1:
                return
            if error.code not in (429, 500, 503, 504) or not tries_left:
                raise
            pause(_RETRY_S)
        else:
            return
