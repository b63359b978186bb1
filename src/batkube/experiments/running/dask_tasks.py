"""What is done on a Dask cluster: its tasks, and our processes that do the runs there."""

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

#: Real seconds after which a process of ours on a worker ends that nobody has given a run.
_IDLE_TIMEOUT_S = 60


class CodeMismatch(Exception):
    """A run came to a machine on which Batkube is another one."""


class _ProcessPool:
    """The processes of ours on one worker of Dask's that do the runs of one experiment.

    They are kept for a while, since starting one takes longer than a small run, and ended when the experiment is over;
    or by themselves, some time after it was killed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: dict[WorkerProcess, threading.Timer] = {}
        self._busy: set[WorkerProcess] = set()

    def call(self, message: bytes) -> object:
        """Return the result of a call, made in one of the processes."""
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
        """End the processes, and the calls they are at."""
        with self._lock:
            idle, busy = dict(self._idle), set(self._busy)
            self._idle.clear()
            self._busy.clear()
        for process, timer in idle.items():
            timer.cancel()
            process.stop()
        for process in busy:
            process.kill()


#: By the experiment.
_pools: dict[str, _ProcessPool] = {}


def file_content(content: bytes) -> bytes:
    """Return the content of a file: a task that Dask can do again wherever it is needed."""
    return content


def run_on_worker(experiment: str, parcel: RunBundle, contents: Sequence[bytes]) -> BundleResult:
    """Do a run on this worker of Dask's, in a process of ours."""
    from distributed import get_worker

    if code_digest() != parcel.code_digest:
        raise CodeMismatch
    # Dask removes the folder of a worker that died, and so what it was at.
    folder = tempfile.mkdtemp(prefix="batkube-run-", dir=get_worker().local_directory)
    message = pickle.dumps((run_bundle, (parcel, contents, Path(folder)), {}))
    try:
        delivery = _pools.setdefault(experiment, _ProcessPool()).call(message)
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # of a run that crashed
    assert isinstance(delivery, BundleResult)
    return delivery


def stop_processes(experiment: str) -> None:
    """End our processes on this worker that do runs of an experiment."""
    if (pool := _pools.pop(experiment, None)) is not None:
        pool.close()


#: The cluster of this process, where it was started by `local_cluster`.
_clusters: list[Any] = []


def start_cluster(count: int) -> str:
    """Start a cluster in this process, and return its scheduler's HOST:PORT."""
    from distributed import LocalCluster

    cluster = LocalCluster(n_workers=count, threads_per_worker=1, host="127.0.0.1", dashboard_address=None)
    _clusters.append(cluster)
    return str(cluster.scheduler_address).partition("://")[2]


def close_cluster() -> None:
    """End the cluster of this process."""
    while _clusters:
        _clusters.pop().close()
