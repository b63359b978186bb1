"""Runs on a Dask cluster: files go there by content, results come back the same way, and nothing else is shared.

Each run is a task of Dask's. On the worker it is done by one of our own processes (`workers`), so that what a run does
is told as here: a crash with its last lines, a time limit that keeps what was computed. Input files are tasks too, one
for each content, that return what they hold: Dask moves them to where they are needed, and makes them anew when the
worker that had them dies. So does it with a run whose worker dies, and with a result that nobody has fetched yet.

The queue is ours, as with processes: a thread here waits for one task there, so that what has not begun can be
taken back, and what is running is known.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import pickle
import secrets
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from batkube.experiments.running.dask_tasks import (
    CodeMismatch,
    close_cluster,
    file_content,
    run_on_worker,
    start_cluster,
    stop_processes,
)
from batkube.experiments.running.run_bundles import BundleResult, bundle_of, unpack_result
from batkube.experiments.running.runner import RunRequest
from batkube.experiments.running.worker_pool import WorkerFailed, WorkerProcess
from batkube.kernel.errors import InputError

if TYPE_CHECKING:
    from distributed import Client

#: Real seconds in which a cluster has to answer, and to have a worker.
_CONNECT_TIMEOUT_S = 15
_NOT_INSTALLED = InputError(
    "--executor", problem="needs Dask, which is not installed", remedy="pip install 'batkube[dask]'"
)
#: The logs of Dask's own parts in this process: what they say of connections that end, we say in one message.
_DASK_LOGGER = "distributed"


@contextlib.contextmanager
def connect(address: str, count: int | None) -> Iterator[DaskExecutor]:
    """Yield the workers of the cluster whose scheduler is at HOST:PORT, `count` runs at a time or one per thread.

    Raises InputError when there is no such cluster, or it has no workers.
    """
    _import_dask()
    from distributed import Client

    with _dask_logs_silenced():
        place = f"dask://{address}"
        host, colon, port = address.rpartition(":")
        if not (host and colon and port.isdecimal() and int(port) < 1 << 16):
            problem = "is not the address of a Dask scheduler"
            raise InputError(place, problem=problem, remedy="write dask://HOST:PORT, such as dask://localhost:8786")
        try:
            client = Client(f"tcp://{address}", timeout=_CONNECT_TIMEOUT_S, set_as_default=False)
        except (OSError, ValueError) as error:
            problem = f"no Dask scheduler answers there: {' '.join(str(error).split()) or type(error).__name__}"
            raise InputError(
                place, problem=problem, remedy="check the address; start one with: dask scheduler"
            ) from error
        with client:
            workers = DaskExecutor(client, place, count or _thread_count(client, place))
            try:
                yield workers
            except BaseException:
                workers.kill()
                raise
            workers.shutdown()


@contextlib.contextmanager
def local_cluster(count: int) -> Iterator[str]:
    """Yield the address of a cluster of `count` workers on this machine, that ends with the block.

    It lives in a process of its own, in a session of its own: Ctrl-C reaches the experiment, not the cluster, and the
    cluster ends with us even by SIGKILL.
    """
    _import_dask()
    process = WorkerProcess()
    try:
        try:
            address = process.call(pickle.dumps((start_cluster, (count,), {})))
        except WorkerFailed as error:
            raise InputError("dask-local", problem=f"cannot be started: {error}") from error
        yield str(address)
    finally:
        with contextlib.suppress(WorkerFailed, InputError):
            process.call(pickle.dumps((close_cluster, (), {})))
        process.stop()


class DaskExecutor:
    """Does runs on a cluster."""

    def __init__(self, client: Client, place: str, count: int) -> None:
        self._client = client
        self._address = place
        #: Tells this experiment from others on the cluster.
        self._name = secrets.token_hex(8)
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="dask")
        #: The content of each file that is on the cluster, as a task, by the file.
        self._contents: dict[Path, Any] = {}
        self._lock = threading.Lock()
        #: What the cluster is at.
        self._tasks: set[Any] = set()
        self._is_killed = False

    def submit(self, order: RunRequest) -> Future[str | None]:
        """Have a run done on the cluster, and its results put into its folder here."""
        return self._threads.submit(self._run, order)

    def _run(self, order: RunRequest) -> str | None:
        parcel = bundle_of(order)
        with self._lock:
            if self._is_killed:
                raise WorkerFailed("the run was ended before it began")
            contents = [self._file_task(path) for path in parcel.files]
            # Not pure: a run that is done again is computed again.
            task = self._client.submit(run_on_worker, self._name, parcel, contents, pure=False)
            self._tasks.add(task)
        try:
            delivery = self._result(task)
        finally:
            with self._lock:
                self._tasks.discard(task)
        unpack_result(delivery, order.folder)
        return delivery.failure

    def _file_task(self, path: Path) -> Any:  # noqa: ANN401 - a future of Dask's
        if path not in self._contents:
            try:
                content = path.read_bytes()
            except OSError as error:
                raise InputError(path, problem=f"cannot be read: {error.strerror}", remedy="check the path") from error
            key = f"batkube-file-{hashlib.sha256(content).hexdigest()}"
            with warnings.catch_warnings():
                # Dask advises to scatter what is large. What is scattered is lost with the worker that has it.
                warnings.simplefilter("ignore", UserWarning)
                self._contents[path] = self._client.submit(file_content, content, key=key)
        return self._contents[path]

    def _result(self, task: Any) -> BundleResult:  # noqa: ANN401 - a future of Dask's
        from distributed import KilledWorker

        try:
            delivery = task.result()
        except KilledWorker as error:
            raise WorkerFailed(_describe_lost_workers(error)) from error
        except CancelledError as error:
            problem = "the Dask scheduler is gone, or has thrown the run away"
            raise InputError(self._address, problem=problem, remedy=_RESUME_REMEDY) from error
        except (ImportError, AttributeError, CodeMismatch) as error:
            problem = f"a worker of the cluster does not have this Batkube: {str(error) or 'its code is another'}"
            remedy = "install the same version there, as it is here"
            raise InputError(self._address, problem=problem, remedy=remedy) from error
        assert isinstance(delivery, BundleResult)
        return delivery

    def shutdown(self) -> None:
        """Wait for what was begun, and end our processes on the workers."""
        self._threads.shutdown()
        self._stop_processes()

    def kill(self) -> None:
        """End what is going on, at once."""
        with self._lock:
            self._is_killed = True
            tasks = list(self._tasks)
        with contextlib.suppress(Exception):  # whatever else is the matter with the cluster, we are leaving
            self._client.cancel(tasks, force=True)
        self._stop_processes()
        self._threads.shutdown(cancel_futures=True)

    def _stop_processes(self) -> None:
        with contextlib.suppress(Exception):
            self._client.run(stop_processes, self._name, on_error="ignore")


_RESUME_REMEDY = "start it again, and go on with the same command: what is finished is kept"


def _describe_lost_workers(error: Any) -> str:  # noqa: ANN401 - Dask's KilledWorker
    """Say that workers died of a run, as far as that is known."""
    attempts = int(getattr(error, "allowed_failures", 0)) + 1
    last = getattr(getattr(error, "last_worker", None), "address", "")
    where = f", the last one at {last}" if last else ""
    return f"{attempts} workers of the cluster died while they were at the run{where}; see their logs: out of memory?"


def _import_dask() -> None:
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        raise _NOT_INSTALLED from error


@contextlib.contextmanager
def _dask_logs_silenced() -> Iterator[None]:
    log = logging.getLogger(_DASK_LOGGER)
    level = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        log.setLevel(level)


def _thread_count(client: Client, place: str) -> int:
    """Return how many tasks a cluster does at once."""
    try:
        client.wait_for_workers(1, timeout=_CONNECT_TIMEOUT_S)
    except TimeoutError as error:
        remedy = f"start some: dask worker {place.removeprefix('dask://')}"
        raise InputError(place, problem="the Dask cluster has no workers", remedy=remedy) from error
    return sum(client.nthreads().values())
