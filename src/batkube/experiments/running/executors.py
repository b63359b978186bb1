"""Executors of an experiment's runs: local processes, a Dask cluster, or one of Python's executors."""

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

#: Values of `--executor`: our own processes, a Dask cluster that we start on this machine, or an existing one.
PROCESSES, DASK_LOCAL, DASK = "processes", "dask-local", "dask://"
_REMEDY = f"one of {PROCESSES}, {DASK_LOCAL}, {DASK}HOST:PORT"


class RunExecutor(Protocol):
    """Executes runs, several at a time."""

    def submit(self, request: RunRequest) -> Future[str | None]:
        """Schedule a run. The future's result is the failure message, or None; the run's results are in its folder.

        The future raises InputError if no further run can be executed, and any other exception if only this one failed.
        """


class PythonExecutor:
    """Executes runs by a `concurrent.futures` executor that can access our files."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def submit(self, request: RunRequest) -> Future[str | None]:
        """Schedule the run as a call of the executor."""
        return self._executor.submit(execute_request, request)


class ExperimentExecutors:
    """The executor of an experiment's runs, and the one that draws its charts afterwards."""

    def __init__(self, runs: RunExecutor, drawing: Executor) -> None:
        self.runs = runs
        #: Executes calls that read the experiment's folder.
        self.charts = drawing


@contextlib.contextmanager
def open_executors(name: str, plan: Plan, jobs: int | None = None) -> Iterator[ExperimentExecutors]:
    """Yield the executors for a plan, with `jobs` runs at a time. If the block raises, its runs are stopped.

    Raises InputError if there is no executor of that name.
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
    """Return how many runs to execute at once: one per core, but one at a time if virtual time follows real time.

    Two such runs side by side would slow each other down, which would change their results.
    """
    exact = all(run.scenario.time.mode is TimeMode.EXACT for run in plan.runs)
    return available_cores() if exact else 1
