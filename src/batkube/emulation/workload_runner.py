"""Run a workload on a real cluster: submit each job at its time, and watch until all have ended.

Threads submit jobs and watch pods and Events. They put timestamped messages into a queue, which the main thread
processes. Times are those of the workload: real time since the start, multiplied by the speed.
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
from batkube.emulation.client.connection import ApiStatusError, ClusterConnection, ClusterUnreachable, expected_shape
from batkube.emulation.client.polling import pause
from batkube.emulation.client.reflector import CollectionUpdate, Reflector
from batkube.emulation.client.watch_events import PodEvent, PodUpdate
from batkube.emulation.job_tracker import JobTracker
from batkube.emulation.manifests import LABEL_RUN, ManifestOptions, PlannedJob, collection_of, group_of, objects_of
from batkube.kernel.errors import RunFailed
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Duration, Instant, human_duration
from batkube.kernel.stopwatch import Stopwatch

#: The maximum number of concurrent submissions.
_SUBMIT_THREADS = 8
#: How often a failed submission is tried, and the delay between two tries.
_MAX_TRIES, _RETRY_S = 5, 1.0
#: A watch that fails more often than this in a row, over about 25 s, ends the run.
_MAX_WATCH_FAILURES = 5
#: A watch is not read while more messages than this are queued.
_MAX_QUEUED, _FULL_QUEUE_DELAY_S = 10_000, 0.01
#: The longest time that the main thread waits for a message.
_POLL_INTERVAL_S = 1.0


class _SubmissionResult(NamedTuple):
    number: int
    at: Instant
    #: Why the cluster rejected the job; "" if it accepted it.
    rejection: str = ""


class _ThreadFailure(NamedTuple):
    """The error that ended a thread."""

    error: RunFailed


_Message = PodUpdate | PodEvent | _SubmissionResult | _ThreadFailure
_Decoder = Callable[[msgspec.Raw, Instant, bool], PodUpdate | PodEvent | None]


class ControlledClock:
    """The workload's time. It is 0 until the clock is started."""

    def __init__(self, speed: float) -> None:
        self.speed = speed
        self._stopwatch: Stopwatch | None = None

    def start(self) -> None:
        """Start the clock."""
        self._stopwatch = Stopwatch()

    @property
    def now(self) -> Instant:
        """The current time of the run."""
        if self._stopwatch is None:
            return Instant(0)
        return Instant(round(self._stopwatch.real_s * self.speed * NANOSECONDS_PER_SECOND))

    def to_real_s(self, length: int) -> float:
        """Convert a length of the workload's time to real seconds."""
        return length / NANOSECONDS_PER_SECOND / self.speed


@dataclass(frozen=True, slots=True)
class RunTarget:
    """The cluster and the environment of a run."""

    cluster: ClusterConnection
    namespace: str
    options: ManifestOptions


class WorkloadRunner:
    """Runs one workload on a cluster."""

    def __init__(
        self,
        target: RunTarget,
        planned_jobs: Sequence[PlannedJob],
        tracker: JobTracker,
        clock: ControlledClock,
        patience: Duration,
    ) -> None:
        self._target = target
        self._planned_jobs = planned_jobs
        self._tracker = tracker
        self._clock = clock
        self._patience_s = patience / NANOSECONDS_PER_SECOND
        self._messages: queue.SimpleQueue[_Message] = queue.SimpleQueue()
        self._stop_event = threading.Event()
        #: The number of jobs passed to the submission threads, and of ended jobs whose PodGroup was deleted.
        self._submitted_count = self._cleaned_count = 0
        #: The longest delay of a submission, in the workload's time.
        self.max_delay = Duration(0)

    @property
    def now(self) -> Instant:
        """The current time of the run."""
        return self._clock.now

    def run(self, progress: Callable[[int, int, Instant], None]) -> None:
        """Submit each job at its time and wait until all have ended. Raises RunFailed."""
        executor = ThreadPoolExecutor(_SUBMIT_THREADS, thread_name_prefix="submit")
        try:
            self._start_watches()
            self._clock.start()
            since_progress = Stopwatch()
            while not self._tracker.is_over:
                self._submit_due(executor)
                if self._process_message():
                    since_progress = Stopwatch()
                    progress(len(self._tracker.ended_jobs), len(self._planned_jobs), self._clock.now)
                    self._delete_ended_groups(executor)
                elif since_progress.real_s > self._patience_s and not self._has_work_due():
                    idle = human_duration(int(since_progress.real_s * NANOSECONDS_PER_SECOND))
                    raise RunFailed(f"no job has made progress for {idle}: {self._describe_stall()}")
        finally:
            self._stop_event.set()
            # Wait for requests in flight: they must not create objects after the clean-up.
            executor.shutdown(wait=True, cancel_futures=True)

    def _submit_due(self, executor: ThreadPoolExecutor) -> None:
        """Pass all jobs that are due to the submission threads."""
        while (
            self._submitted_count < len(self._planned_jobs)
            and self._planned_jobs[self._submitted_count].job.submit <= self._clock.now
        ):
            executor.submit(self._submit, self._planned_jobs[self._submitted_count])
            self._submitted_count += 1

    def _process_message(self) -> bool:
        """Process a message, waiting at most until the next submission; return whether a job made progress."""
        timeout_s = _POLL_INTERVAL_S
        if self._submitted_count < len(self._planned_jobs):
            due = self._planned_jobs[self._submitted_count].job.submit - self._clock.now
            timeout_s = max(0.0, min(timeout_s, self._clock.to_real_s(due)))
        try:
            message = self._messages.get(timeout=timeout_s)
        except queue.Empty:
            return False
        match message:
            case _ThreadFailure():
                raise message.error
            case _SubmissionResult():
                self._record_submission(message)
                return True
            case _:
                return self._tracker.handle(message)

    def _record_submission(self, message: _SubmissionResult) -> None:
        self._tracker.record_submission(message.number, message.at)
        self.max_delay = max(self.max_delay, Duration(message.at - self._planned_jobs[message.number].job.submit))
        if message.rejection:
            self._tracker.record_rejection(message.number, message.rejection, message.at)

    def _has_work_due(self) -> bool:
        """Return whether a submission, or the end of a running pod, is still due."""
        if self._submitted_count < len(self._planned_jobs):
            return True
        now = self._clock.now
        return any(
            pod.started is not None and pod.finished is None and now < pod.started + job.planned.run_time
            for job in self._tracker.jobs
            for pod in job.pods.values()
        )

    def _describe_stall(self) -> str:
        """Return the number of unfinished jobs and the reason of the first, for a message."""
        unfinished = [job for job in self._tracker.jobs if not job.has_ended]
        first = unfinished[0]
        reasons = [pod.reason for pod in first.counted_pods() if pod.reason] or ["its pods report no reason"]
        return f"{len(unfinished)} jobs have not ended, for example {first.planned.job.key}: {reasons[0]}"

    def _submit(self, planned: PlannedJob) -> None:
        """Create the objects of a job; runs in a submission thread."""
        target, at = self._target, self._clock.now
        try:
            for each in objects_of(planned, target.options):
                _create_with_retries(target.cluster, collection_of(each, target.namespace), each)
        except ApiStatusError as error:
            self._messages.put(_SubmissionResult(planned.number, at, str(error)))
        except RunFailed as error:
            self._messages.put(_ThreadFailure(error))
        else:
            self._messages.put(_SubmissionResult(planned.number, at))

    def _delete_ended_groups(self, executor: ThreadPoolExecutor) -> None:
        """Delete the PodGroups of ended jobs, as a simulation does: schedulers count existing ones."""
        if self._target.options.pod_group_api is not None:
            for job in self._tracker.ended_jobs[self._cleaned_count :]:
                executor.submit(self._delete_group, job.planned)
        self._cleaned_count = len(self._tracker.ended_jobs)

    def _delete_group(self, planned: PlannedJob) -> None:
        """Delete a PodGroup; runs in a submission thread. The clean-up deletes it if this fails."""
        group = group_of(planned, self._target.options)
        with contextlib.suppress(RunFailed):
            self._target.cluster.delete(f"{collection_of(group, self._target.namespace)}/{group['metadata']['name']}")

    def _start_watches(self) -> None:
        """Start the watches, and return once they cannot miss an event."""
        base = f"/api/v1/namespaces/{self._target.namespace}"
        selector = {"labelSelector": f"{LABEL_RUN}={self._target.options.run}"}
        self._watch(f"{base}/pods", selector, watch_events.pod_update_of)
        self._watch(f"{base}/events", {}, watch_events.pod_event_of)

    def _watch(self, path: str, query: dict[str, str], decode: _Decoder) -> None:
        """Watch a collection from now on. Deletions that happen while a watch is interrupted are not reported."""

        def on_update(update: CollectionUpdate) -> None:
            while self._messages.qsize() > _MAX_QUEUED and not self._stop_event.wait(_FULL_QUEUE_DELAY_S):
                pass
            for raw in update.objects:
                message = decode(raw, self._clock.now, update.is_deletion)
                if message is not None:
                    self._messages.put(message)

        with expected_shape(path):
            version = watch_events.resource_version_of(self._target.cluster.get_bytes(path, **query))
        Reflector(
            self._target.cluster,
            path,
            query=query,
            on_update=on_update,
            on_failure=lambda error: self._messages.put(_ThreadFailure(error)),
            stop_event=self._stop_event,
            max_failures=_MAX_WATCH_FAILURES,
        ).start(version)


def _create_with_retries(cluster: ClusterConnection, path: str, content: dict[str, object]) -> None:
    """Create an object. A request without a response is retried; it may have been executed nevertheless."""
    for tries_left in reversed(range(_MAX_TRIES)):
        try:
            cluster.create(path, content)
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
