"""Conducts an experiment: hands out the runs that are not finished, and takes note of how they end.

Who does them it knows only as a `RunExecutor`: processes of ours, a cluster, an executor of Python's. What comes back
from a run is only whether it went wrong: results are in its folder.

Ctrl-C may come between any two steps here. So the end of a run is taken note of by steps that can be done twice, and
what tells of it is put away last: an end that was lost would be waited for without end.
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

#: Real seconds between two looks at what is running.
_INTERVAL_S = 0.25
#: So many runs, from the first unfinished one on, are looked at to find those that are running.
_MAX_CHECKED_RUNS = 64


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an experiment has come."""

    total: int
    done: int
    failed: int
    #: How many of those were over before we began.
    already_ended: int
    running: tuple[str, ...] = ()
    #: No more runs are begun: somebody has pressed Ctrl-C.
    stopping: bool = False

    @property
    def left(self) -> int:
        """How many runs are not over."""
        return self.total - self.done - self.failed


ProgressListener = Callable[[Progress], None]
"""Called whenever a run ends, and now and then in between."""


class ExperimentOrchestrator:
    """Has the runs of one experiment done."""

    def __init__(
        self, runs: Sequence[PlannedRun], folder: ExperimentFolder, executor: RunExecutor, listener: ProgressListener
    ) -> None:
        self._folder = folder
        self._executor = executor
        self._on_progress = listener
        self._futures: dict[str, Future[str | None]] = {}
        #: The runs that are over, those that are yet to be taken note of.
        self._ended: deque[str] = deque()
        #: Rung for each of them.
        self._wakeups: queue.SimpleQueue[None] = queue.SimpleQueue()
        states = {run.name: folder.finished_run(run.name) for run in runs}
        self._pending = [run for run in runs if states[run.name] is None]
        self._total = len(runs)
        self._already_ended = len(runs) - len(self._pending)
        ends = {name: ended.state for name, ended in states.items() if ended is not None}
        self._done = {name for name, state in ends.items() if state is RunState.DONE}
        self._failed = ends.keys() - self._done
        self._stopping = False
        #: Why nobody can do runs any more.
        self._fatal_error: InputError | None = None

    def run(self, command: Sequence[str]) -> None:
        """Do all that is not finished; raises KeyboardInterrupt when stopped, once no run is going on any more.

        When the machine refuses the processes that do runs, no run is at fault: then it is InputError that is raised.
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
        order = RunRequest(
            run.scenario, self._folder.run_folder(run.name).absolute(), run.programs, command, run.policy
        )
        future = self._executor.submit(order)
        # Only what will tell of its end is waited for.
        future.add_done_callback(lambda _: self._on_run_ended(run.name))
        self._futures[run.name] = future

    def _on_run_ended(self, name: str) -> None:
        """Hear, in any thread, that a run is over."""
        self._ended.append(name)
        self._wakeups.put(None)

    def _wait_for_all(self) -> None:
        """Take note of ends until every run that was handed out is over."""
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
            # A bug of ours, or a worker that crashed: it is this run's failure, and the others go on.
            failure = str(error) or repr(error)
        if failure is None:
            self._done.add(name)
        else:
            self._failed.add(name)
            self._folder.record_failure(name, failure)

    def _cancel_pending(self) -> None:
        """Begin no more runs."""
        self._stopping = True
        for future in self._futures.values():
            future.cancel()

    def _report(self) -> None:
        looked_at = itertools.islice(self._futures.items(), _MAX_CHECKED_RUNS)
        running = tuple(name for name, future in looked_at if future.running())
        done, failed = len(self._done), len(self._failed)
        self._on_progress(Progress(self._total, done, failed, self._already_ended, running, self._stopping))
