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
from batkube.experiments.running.performing import Order
from batkube.kernel.errors import InputError

#: Real seconds between two looks at what is running.
_INTERVAL_S = 0.25
#: So many runs, from the first unfinished one on, are looked at to find those that are running.
_LOOKED_AT = 64


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an experiment has come."""

    total: int
    done: int
    failed: int
    #: How many of those were over before we began.
    before: int
    running: tuple[str, ...] = ()
    #: No more runs are begun: somebody has pressed Ctrl-C.
    stopping: bool = False

    @property
    def left(self) -> int:
        """How many runs are not over."""
        return self.total - self.done - self.failed


Listener = Callable[[Progress], None]
"""Called whenever a run ends, and now and then in between."""


class ExperimentConductor:
    """Has the runs of one experiment done."""

    def __init__(
        self, runs: Sequence[PlannedRun], folder: ExperimentFolder, executor: RunExecutor, listener: Listener
    ) -> None:
        self._folder = folder
        self._executor = executor
        self._listener = listener
        self._futures: dict[str, Future[str | None]] = {}
        #: The runs that are over, those that are yet to be taken note of.
        self._over: deque[str] = deque()
        #: Rung for each of them.
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()
        states = {run.name: folder.ended(run.name) for run in runs}
        self._to_do = [run for run in runs if states[run.name] is None]
        self._total = len(runs)
        self._before = len(runs) - len(self._to_do)
        ends = {name: ended.state for name, ended in states.items() if ended is not None}
        self._done = {name for name, state in ends.items() if state is RunState.DONE}
        self._failed = ends.keys() - self._done
        self._stopping = False
        #: Why nobody can do runs any more.
        self._trouble: InputError | None = None

    def conduct(self, command: Sequence[str]) -> None:
        """Do all that is not finished; raises KeyboardInterrupt when stopped, once no run is going on any more.

        When the machine refuses the processes that do runs, no run is at fault: then it is InputError that is raised.
        """
        self._report()
        try:
            for run in self._to_do:
                self._submit(run, command)
            self._gather()
        except KeyboardInterrupt:
            self._stop()
            self._gather()
            raise
        if self._trouble is not None:
            raise self._trouble

    def _submit(self, run: PlannedRun, command: Sequence[str]) -> None:
        order = Order(run.scenario, self._folder.run_folder(run.name).absolute(), run.programs, command, run.policy)
        future = self._executor.begin(order)
        # Only what will tell of its end is waited for.
        future.add_done_callback(lambda _: self._hear(run.name))
        self._futures[run.name] = future

    def _hear(self, name: str) -> None:
        """Hear, in any thread, that a run is over."""
        self._over.append(name)
        self._bell.put(None)

    def _gather(self) -> None:
        """Take note of ends until every run that was handed out is over."""
        while self._futures:
            if not self._over:
                with contextlib.suppress(queue.Empty):
                    self._bell.get(timeout=_INTERVAL_S)
            if self._over:
                name = self._over[0]
                if name in self._futures:
                    self._take(name, self._futures[name])
                    del self._futures[name]
                self._over.popleft()
            self._report()

    def _take(self, name: str, future: Future[str | None]) -> None:
        try:
            failure = future.result()
        except CancelledError:
            return
        except InputError as error:
            self._trouble = error
            self._stop()
            return
        except Exception as error:
            # A bug of ours, or a worker that crashed: it is this run's failure, and the others go on.
            failure = str(error) or repr(error)
        if failure is None:
            self._done.add(name)
        else:
            self._failed.add(name)
            self._folder.record_failure(name, failure)

    def _stop(self) -> None:
        """Begin no more runs."""
        self._stopping = True
        for future in self._futures.values():
            future.cancel()

    def _report(self) -> None:
        looked_at = itertools.islice(self._futures.items(), _LOOKED_AT)
        running = tuple(name for name, future in looked_at if future.running())
        done, failed = len(self._done), len(self._failed)
        self._listener(Progress(self._total, done, failed, self._before, running, self._stopping))
