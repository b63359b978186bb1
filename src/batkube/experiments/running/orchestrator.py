"""Orchestrates an experiment: submits the unfinished runs to an executor, and records their ends.

The `RunExecutor` may be our own processes, a cluster, or one of Python's executors. A run returns only a failure
message, if any; its results are in its folder.

Ctrl-C may interrupt between any two steps. The end of a run is therefore recorded by idempotent steps, and its entry in
the queue is removed last: if it were lost, the orchestrator would wait for it forever.
"""

from __future__ import annotations

import contextlib
import itertools
import queue
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass

from batkube.experiments.plan.runs import PlannedRun
from batkube.experiments.running.executors import RunExecutor
from batkube.experiments.running.folder import ExperimentFolder, RunState
from batkube.experiments.running.runner import RunRequest
from batkube.kernel.errors import InputError

#: Real seconds between two progress reports.
_INTERVAL_S = 0.25
#: Number of unfinished runs that are checked for whether they are running.
_MAX_CHECKED_RUNS = 64


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of an experiment."""

    total: int
    done: int
    failed: int
    #: Number of them that were finished before the start.
    finished_before: int
    running: tuple[str, ...] = ()
    #: True after Ctrl-C: no more runs are started.
    stopping: bool = False

    @property
    def remaining(self) -> int:
        """Number of unfinished runs."""
        return self.total - self.done - self.failed


ProgressListener = Callable[[Progress], None]
"""Called whenever a run ends, and periodically in between."""


class ExperimentOrchestrator:
    """Executes the runs of one experiment."""

    def __init__(
        self, runs: Sequence[PlannedRun], folder: ExperimentFolder, executor: RunExecutor, listener: ProgressListener
    ) -> None:
        self._folder = folder
        self._executor = executor
        self._on_progress = listener
        self._futures: dict[str, Future[str | None]] = {}
        #: Runs that have ended and are not yet recorded.
        self._ended: deque[str] = deque()
        #: Gets an entry for each of them, to wake the main thread.
        self._wakeups: queue.SimpleQueue[None] = queue.SimpleQueue()
        states = {run.name: folder.finished_run(run.name) for run in runs}
        self._pending = [run for run in runs if states[run.name] is None]
        self._total = len(runs)
        self._finished_before = len(runs) - len(self._pending)
        ends = {name: ended.state for name, ended in states.items() if ended is not None}
        self._done = {name for name, state in ends.items() if state is RunState.DONE}
        self._failed = ends.keys() - self._done
        self._stopping = False
        #: Why no further run can be executed.
        self._fatal_error: InputError | None = None

    def run(self, command: Sequence[str]) -> None:
        """Execute all unfinished runs. After Ctrl-C, wait for the running ones, then raise KeyboardInterrupt.

        Raises InputError if worker processes cannot be started, which is not the fault of a run.
        """
        self._report()
        try:
            for run in self._pending:
                self._submit(run, command)
            self._wait_for_all()
        except KeyboardInterrupt:
            self._cancel_pending()
            self._wait_for_all()
            raise
        if self._fatal_error is not None:
            raise self._fatal_error

    def _submit(self, run: PlannedRun, command: Sequence[str]) -> None:
        request = RunRequest(
            run.scenario, self._folder.run_folder(run.name).absolute(), run.programs, command, run.policy
        )
        future = self._executor.submit(request)
        # Only futures with a callback are waited for, since nothing else reports their end.
        future.add_done_callback(lambda _: self._on_run_ended(run.name))
        self._futures[run.name] = future

    def _on_run_ended(self, name: str) -> None:
        """Queue the end of a run; called in any thread."""
        self._ended.append(name)
        self._wakeups.put(None)

    def _wait_for_all(self) -> None:
        """Record ends until every submitted run has ended."""
        while self._futures:
            if not self._ended:
                with contextlib.suppress(queue.Empty):
                    self._wakeups.get(timeout=_INTERVAL_S)
            if self._ended:
                name = self._ended[0]
                if name in self._futures:
                    self._record_result(name, self._futures[name])
                    del self._futures[name]
                self._ended.popleft()
            self._report()

    def _record_result(self, name: str, future: Future[str | None]) -> None:
        try:
            failure = future.result()
        except CancelledError:
            return
        except InputError as error:
            self._fatal_error = error
            self._cancel_pending()
            return
        except Exception as error:
            # A bug of ours, or a worker that crashed: only this run fails, and the others continue.
            failure = str(error) or repr(error)
        if failure is None:
            self._done.add(name)
        else:
            self._failed.add(name)
            self._folder.record_failure(name, failure)

    def _cancel_pending(self) -> None:
        """Cancel the runs that have not started."""
        self._stopping = True
        for future in self._futures.values():
            future.cancel()

    def _report(self) -> None:
        first_futures = itertools.islice(self._futures.items(), _MAX_CHECKED_RUNS)
        running = tuple(name for name, future in first_futures if future.running())
        done, failed = len(self._done), len(self._failed)
        self._on_progress(Progress(self._total, done, failed, self._finished_before, running, self._stopping))
