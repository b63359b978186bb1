"""Functions that run on Dask workers: the tasks, and the pool of our processes that execute the runs."""

from __future__ import annotations

import pickle
import shutil
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from batkube.experiments.plan.code_digest import code_digest
from batkube.experiments.running.run_bundles import BundleResult, RunBundle, run_bundle
from batkube.experiments.running.worker_pool import WorkerProcess

#: Real seconds after which an idle process of ours on a worker ends.
_IDLE_TIMEOUT_S = 60


class CodeMismatch(Exception):
    """The Dask worker has other code of Batkube than the sender of the run."""


class _ProcessPool:
    """Our processes on one Dask worker that execute the runs of one experiment.

    They are reused, since starting one takes longer than a small run. They are stopped at the end of the experiment, or
    after a timeout if the experiment was killed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: dict[WorkerProcess, threading.Timer] = {}
        self._busy: set[WorkerProcess] = set()

    def call(self, message: bytes) -> object:
        """Execute a call in one of the processes, and return its result."""
        process = self._acquire()
        try:
            return process.call(message)
        finally:
            self._release(process)

    def _acquire(self) -> WorkerProcess:
        with self._lock:
            process, timer = self._idle.popitem() if self._idle else (WorkerProcess(), None)
            self._busy.add(process)
        if timer is not None:
            timer.cancel()
        return process

    def _release(self, process: WorkerProcess) -> None:
        timer = threading.Timer(_IDLE_TIMEOUT_S, self._stop_if_idle, [process])
        timer.daemon = True
        with self._lock:
            if process in self._busy:
                self._busy.remove(process)
                self._idle[process] = timer
                timer.start()

    def _stop_if_idle(self, process: WorkerProcess) -> None:
        with self._lock:
            is_idle = self._idle.pop(process, None) is not None
        if is_idle:
            process.stop()

    def close(self) -> None:
        """Stop the processes, also those that are executing a call."""
        with self._lock:
            idle, busy = dict(self._idle), set(self._busy)
            self._idle.clear()
            self._busy.clear()
        for process, timer in idle.items():
            timer.cancel()
            process.stop()
        for process in busy:
            process.kill()


#: Process pools of this worker, by experiment.
_pools: dict[str, _ProcessPool] = {}


def file_content(content: bytes) -> bytes:
    """Return the content of a file, as a task that Dask can repeat on any worker."""
    return content


def run_on_worker(experiment: str, bundle: RunBundle, contents: Sequence[bytes]) -> BundleResult:
    """Execute a run on this Dask worker, in one of our processes."""
    from distributed import get_worker

    if code_digest() != bundle.code_digest:
        raise CodeMismatch
    # Dask removes the folder of a worker that died, and with it the files of its runs.
    folder = tempfile.mkdtemp(prefix="batkube-run-", dir=get_worker().local_directory)
    message = pickle.dumps((run_bundle, (bundle, contents, Path(folder)), {}))
    try:
        result = _pools.setdefault(experiment, _ProcessPool()).call(message)
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # after a crash
    assert isinstance(result, BundleResult)
    return result


def stop_processes(experiment: str) -> None:
    """Stop the processes of an experiment on this worker."""
    if (pool := _pools.pop(experiment, None)) is not None:
        pool.close()


#: The cluster of this process, if `local_cluster` started it.
_clusters: list[Any] = []


def start_cluster(count: int) -> str:
    """Start a cluster in this process, and return its scheduler's HOST:PORT."""
    from distributed import LocalCluster

    cluster = LocalCluster(n_workers=count, threads_per_worker=1, host="127.0.0.1", dashboard_address=None)
    _clusters.append(cluster)
    return str(cluster.scheduler_address).partition("://")[2]


def close_cluster() -> None:
    """Stop the cluster of this process."""
    while _clusters:
        _clusters.pop().close()
