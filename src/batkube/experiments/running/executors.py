"""Who does the runs of an experiment: anybody who can begin one, and tells when it is over."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from typing import Protocol

from batkube.experiments.plan.runs import Plan
from batkube.experiments.running.runner import RunRequest, execute_request
from batkube.experiments.running.worker_pool import InlineExecutor, available_cores, worker_pool
from batkube.kernel.errors import InputError
from batkube.timing.time_rules import TimeMode

#: What `--executor` may be: processes of ours, a Dask cluster of our own on this machine, or one that is there already.
PROCESSES, DASK_LOCAL, DASK = "processes", "dask-local", "dask://"
_REMEDY = f"one of {PROCESSES}, {DASK_LOCAL}, {DASK}HOST:PORT"


class RunExecutor(Protocol):
    """Does runs, several at a time."""

    def submit(self, order: RunRequest) -> Future[str | None]:
        """Have a run done, sooner or later; what comes back is what went wrong, or None. Results are in its folder.

        The future raises InputError when no run can be done any more, and anything else when this one could not.
        """


class PythonExecutor:
    """Runs as calls, made by an executor of Python's that sees our files."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def submit(self, order: RunRequest) -> Future[str | None]:
        """Have the run done by whoever makes the executor's next call."""
        return self._executor.submit(execute_request, order)


class ExperimentExecutors:
    """Who does the runs of an experiment, and who draws its charts when they are over."""

    def __init__(self, runs: RunExecutor, drawing: Executor) -> None:
        self.runs = runs
        #: Makes calls that read the experiment's folder.
        self.charts = drawing


@contextlib.contextmanager
def open_executors(name: str, plan: Plan, jobs: int | None = None) -> Iterator[ExperimentExecutors]:
    """Yield who does the runs of a plan, `jobs` at a time if that is given, until the block ends; at once if it raises.

    Raises InputError when there is nobody of that name.
    """
    if name == PROCESSES:
        with worker_pool(jobs or default_jobs(plan)) as workers:
            yield ExperimentExecutors(PythonExecutor(workers), workers)
        return
    if name != DASK_LOCAL and not name.startswith(DASK):
        raise InputError("--executor", problem=f"there is no executor {name!r}", remedy=_REMEDY)
    from batkube.experiments.running.dask_executor import connect, local_cluster

    with contextlib.ExitStack() as stack:
        if name == DASK_LOCAL:
            jobs = jobs or default_jobs(plan)
            address = stack.enter_context(local_cluster(jobs))
        else:
            address = name.removeprefix(DASK)
        yield ExperimentExecutors(stack.enter_context(connect(address, jobs)), InlineExecutor())


def default_jobs(plan: Plan) -> int:
    """Return how many runs to do at once: one per core, but one at a time where time follows the real one.

    Two such runs side by side would slow one another down, and that would be in their results.
    """
    exact = all(run.scenario.time.mode is TimeMode.EXACT for run in plan.runs)
    return available_cores() if exact else 1
