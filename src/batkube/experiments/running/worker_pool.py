"""Worker processes, as an executor in the sense of `concurrent.futures`.

Each worker is a process that executes many calls, so that imports are paid once. In contrast to ProcessPoolExecutor, a
crash of a worker fails only its current call, with the last lines it printed, and the worker is replaced. Workers are
new processes and not forks, so that the parent's threads and `__main__` do not affect them. They have a session of
their own: Ctrl-C reaches the experiment, which decides what happens to its runs.

Calls are queued by Python's ThreadPoolExecutor, of which each thread waits for one process.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from multiprocessing.connection import Connection, Pipe
from typing import IO, Any, ParamSpec, Protocol, TypeVar, cast

from batkube.kernel.errors import InputError

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

#: Code of a worker, with the module path of this process.
_WORKER_CODE = (
    "import sys; sys.path[:] = {path}; from batkube.experiments.running.worker import serve; serve({descriptor})"
)
#: Number of last lines of a worker's output in a failure message, and number of last bytes to search for them.
_SHOWN_LINES, _SHOWN_BYTES = 40, 1 << 16


class WorkerFailed(Exception):
    """A call raised an exception, or crashed its worker. The message is complete."""


class WorkerPool(ThreadPoolExecutor):
    """Executes calls in `count` processes; functions and arguments must be picklable."""

    def __init__(self, count: int) -> None:
        super().__init__(count, thread_name_prefix="worker")
        self._workers = [WorkerProcess() for _ in range(count)]
        #: Idle workers. The last used one is taken first, so that no more processes are started than needed.
        self._idle: queue.LifoQueue[WorkerProcess] = queue.LifoQueue()
        for worker in self._workers:
            self._idle.put(worker)

    def submit(
        self, fn: Callable[_Arguments, _Result], /, *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> Future[_Result]:
        """Schedule a call of `fn` by the next idle worker.

        The future raises WorkerFailed if the call failed, and InputError if no process can be started.
        """
        return cast("Future[_Result]", super().submit(self._call, pickle.dumps((fn, args, kwargs))))

    def _call(self, message: bytes) -> object:
        worker = self._idle.get()
        try:
            return worker.call(message)
        finally:
            self._idle.put(worker)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more calls; execute or cancel the waiting ones."""
        super().shutdown(wait, cancel_futures=cancel_futures)
        if wait:
            for worker in self._workers:
                worker.stop()

    def kill(self) -> None:
        """Kill the workers, and with them their current calls."""
        for worker in self._workers:
            worker.kill()
        self.shutdown(cancel_futures=True)


class WorkerProcess:
    """One process, started on demand and restarted after a crash, until `kill`."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection[Any, Any] | None = None
        self._output: IO[bytes] | None = None
        #: Held while a process is started or killed, so that `kill` cannot miss a process that is being started.
        self._lock = threading.Lock()
        self._is_killed = False

    def call(self, message: bytes) -> object:
        """Execute a call, given as pickled function, arguments and keywords, and return its result.

        Raises WorkerFailed, and InputError if no process can be started.
        """
        connection = self._ensure_started()
        try:
            connection.send_bytes(message)
            succeeded, answer = connection.recv()
        except (EOFError, OSError) as error:
            raise WorkerFailed(self._describe_crash()) from error
        if not succeeded:
            raise WorkerFailed(answer)
        return answer

    def _ensure_started(self) -> Connection[Any, Any]:
        with self._lock:
            if self._is_killed:
                raise WorkerFailed("the run was cancelled before it started")
            if self._connection is None:
                try:
                    self._start()
                except OSError as error:
                    self.stop()
                    problem = f"cannot be started: {error.strerror or error}"
                    raise InputError("worker process", problem=problem, remedy="run fewer at once: --jobs 1") from error
            assert self._connection is not None
            return self._connection

    def _start(self) -> None:
        self._connection, child_connection = Pipe()
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        with child_connection:
            self._process = subprocess.Popen(
                [sys.executable, "-u", "-c", _WORKER_CODE.format(path=sys.path, descriptor=child_connection.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                pass_fds=[child_connection.fileno()],
                start_new_session=True,
            )

    def _describe_crash(self) -> str:
        """Return how the process ended and its last lines, and prepare for a restart."""
        assert self._process is not None
        assert self._output is not None
        code = self._process.wait()
        self._output.seek(max(0, self._output.seek(0, os.SEEK_END) - _SHOWN_BYTES))
        lines = self._output.read().decode("utf-8", errors="replace").splitlines()[-_SHOWN_LINES:]
        log_end = "\n".join(f"    {line}" for line in lines) or "    (it printed nothing)"
        self.stop()
        return f"the process of the run {_describe_exit(code)}; its last lines:\n{log_end}"

    def kill(self) -> None:
        """Kill the process and the programs that it started, and prevent a restart."""
        with self._lock:
            self._is_killed = True
            if self._process is not None:
                self._process.kill()

    def stop(self) -> None:
        """Stop the idle process, and prepare for a restart."""
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._output is not None:
            self._output.close()
        self._connection = self._process = self._output = None


def _describe_exit(code: int) -> str:
    """Describe how a process ended."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = ", as Linux does when memory runs out" if name == "SIGKILL" else ""
    return f"was killed by {name}{hint}"


class InlineExecutor(Executor):
    """Executes each call immediately, in this process."""

    def submit(
        self, fn: Callable[_Arguments, _Result], /, *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> Future[_Result]:
        """Call `fn`; its exceptions are raised here."""
        future: Future[_Result] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@contextlib.contextmanager
def worker_pool(count: int) -> Iterator[WorkerPool]:
    """Yield a pool of `count` workers, which finishes its calls after the block, or is killed if the block raises."""
    workers = WorkerPool(count)
    with shutdown_or_kill(workers):
        yield workers


class Stoppable(Protocol):
    """Workers that can be stopped in two ways."""

    def shutdown(self) -> None:
        """Finish all calls, then stop."""

    def kill(self) -> None:
        """Stop at once."""


@contextlib.contextmanager
def shutdown_or_kill(workers: Stoppable) -> Iterator[None]:
    """Shut workers down after the block; kill them if it raises."""
    try:
        yield
    except BaseException:
        workers.kill()
        raise
    workers.shutdown()


def available_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
