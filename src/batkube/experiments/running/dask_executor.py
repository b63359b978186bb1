"""Execute runs on a Dask cluster: files are sent by content, results are returned by content, nothing else is shared.

Each run is a Dask task. The Dask worker executes it in one of our own processes (`worker_pool`), so that failures are
reported as in a local run: a crash with its last lines, a time limit with partial results. Input files are tasks too,
one per content, which return the content. Dask moves them to where they are needed, and recomputes them if the worker
that had them dies. It also repeats a run whose worker dies, and one whose result was lost before it was fetched.

The queue is ours, as with local processes: a thread here waits for one task there. Runs that have not started can
therefore be cancelled, and the running ones are known.
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
from batkube.experiments.running.worker_pool import WorkerFailed, WorkerProcess, shutdown_or_kill
from batkube.kernel.errors import InputError

if TYPE_CHECKING:
    from distributed import Client

#: Timeout of the connection to a cluster, and of its first worker, in real seconds.
_CONNECT_TIMEOUT_S = 15
_NOT_INSTALLED = InputError(
    "--executor", problem="needs Dask, which is not installed", remedy="pip install 'batkube[dask]'"
)
#: Logger of Dask in this process. Its messages about closed connections are suppressed: we report them in one message.
_DASK_LOGGER = "distributed"


@contextlib.contextmanager
def connect(address: str, count: int | None) -> Iterator[DaskExecutor]:
    """Yield an executor for the cluster with its scheduler at HOST:PORT; `count` runs at a time, or one per thread.

    Raises InputError if there is no such cluster, or it has no workers.
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
            with shutdown_or_kill(workers):
                yield workers


@contextlib.contextmanager
def local_cluster(count: int) -> Iterator[str]:
    """Yield the address of a cluster of `count` workers on this machine, which is stopped at the end of the block.

    It runs in a separate process and session: Ctrl-C reaches the experiment and not the cluster, and the cluster ends
    with this process, even after SIGKILL.
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
    """Executes runs on a Dask cluster."""

    def __init__(self, client: Client, place: str, count: int) -> None:
        self._client = client
        self._address = place
        #: Identifies this experiment on the cluster.
        self._name = secrets.token_hex(8)
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="dask")
        #: The task with the content of each file on the cluster.
        self._contents: dict[Path, Any] = {}
        self._lock = threading.Lock()
        #: Runs that the cluster is executing.
        self._tasks: set[Any] = set()
        self._is_killed = False

    def submit(self, request: RunRequest) -> Future[str | None]:
        """Execute a run on the cluster, and write its results into its folder here."""
        return self._threads.submit(self._run, request)

    def _run(self, request: RunRequest) -> str | None:
        bundle = bundle_of(request)
        with self._lock:
            if self._is_killed:
                raise WorkerFailed("the run was cancelled before it started")
            contents = [self._file_task(path) for path in bundle.files]
            # Not pure: a repeated run must be computed again.
            task = self._client.submit(run_on_worker, self._name, bundle, contents, pure=False)
            self._tasks.add(task)
        try:
            result = self._result(task)
        finally:
            with self._lock:
                self._tasks.discard(task)
        unpack_result(result, request.folder)
        return result.failure

    def _file_task(self, path: Path) -> Any:  # noqa: ANN401 - a future of Dask's
        if path not in self._contents:
            try:
                content = path.read_bytes()
            except OSError as error:
                raise InputError(path, problem=f"cannot be read: {error.strerror}", remedy="check the path") from error
            key = f"batkube-file-{hashlib.sha256(content).hexdigest()}"
            with warnings.catch_warnings():
                # Dask recommends to scatter large data, but scattered data is lost with the worker that has it.
                warnings.simplefilter("ignore", UserWarning)
                self._contents[path] = self._client.submit(file_content, content, key=key)
        return self._contents[path]

    def _result(self, task: Any) -> BundleResult:  # noqa: ANN401 - a future of Dask's
        from distributed import KilledWorker

        try:
            result = task.result()
        except KilledWorker as error:
            raise WorkerFailed(_describe_lost_workers(error)) from error
        except CancelledError as error:
            problem = "the Dask scheduler has stopped, or has cancelled the run"
            raise InputError(self._address, problem=problem, remedy=_RESUME_REMEDY) from error
        except (ImportError, AttributeError, CodeMismatch) as error:
            problem = f"a worker of the cluster has another version of Batkube: {str(error) or 'its code differs'}"
            remedy = "install the same version there as here"
            raise InputError(self._address, problem=problem, remedy=remedy) from error
        assert isinstance(result, BundleResult)
        return result

    def shutdown(self) -> None:
        """Wait for submitted runs, then stop our processes on the workers."""
        self._threads.shutdown()
        self._stop_processes()

    def kill(self) -> None:
        """Stop all runs immediately."""
        with self._lock:
            self._is_killed = True
            tasks = list(self._tasks)
        with contextlib.suppress(Exception):  # the state of the cluster no longer matters
            self._client.cancel(tasks, force=True)
        self._stop_processes()
        self._threads.shutdown(cancel_futures=True)

    def _stop_processes(self) -> None:
        with contextlib.suppress(Exception):
            self._client.run(stop_processes, self._name, on_error="ignore")


_RESUME_REMEDY = "start it again, then resume with the same command: finished runs are kept"


def _describe_lost_workers(error: Any) -> str:  # noqa: ANN401 - Dask's KilledWorker
    """Describe workers that died during a run, as far as known."""
    attempts = int(getattr(error, "allowed_failures", 0)) + 1
    last = getattr(getattr(error, "last_worker", None), "address", "")
    place_text = f", the last one at {last}" if last else ""
    return f"{attempts} workers of the cluster died during the run{place_text}; see their logs: out of memory?"


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
    """Return how many tasks a cluster executes at once."""
    try:
        client.wait_for_workers(1, timeout=_CONNECT_TIMEOUT_S)
    except TimeoutError as error:
        remedy = f"start some: dask worker {place.removeprefix('dask://')}"
        raise InputError(place, problem="the Dask cluster has no workers", remedy=remedy) from error
    return sum(client.nthreads().values())
