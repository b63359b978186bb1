"""Worker processes, as an executor in the sense of `concurrent.futures`.

Each worker is a process of its own that is kept for many calls, so that imports are paid once. Unlike Python's own
ProcessPoolExecutor, a worker that crashes fails only the call it was at, with the last lines it printed; another takes
its place. Workers are plain programs and not forks, so that neither the threads nor the `__main__` of who starts them
matter, and they have a session of their own: Ctrl-C reaches the experiment, which decides what becomes of its runs.

Calls, their order and their futures are Python's ThreadPoolExecutor's: each of its threads waits for one process.
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
from typing import IO, Any, ParamSpec, TypeVar, cast

from batkube.kernel.errors import InputError

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

#: What a worker runs; it finds its modules where we find ours.
_WORKER_CODE = (
    "import sys; sys.path[:] = {path}; from batkube.experiments.running.worker import serve; serve({descriptor})"
)
#: So many of the last lines that a worker printed are kept, of so many of the last bytes.
_SHOWN_LINES, _SHOWN_BYTES = 40, 1 << 16


class WorkerFailed(Exception):
    """A call did not return: it raised, or took its worker down with it. The message tells all there is to know."""


class WorkerPool(ThreadPoolExecutor):
    """Runs calls in `count` processes; functions and arguments must be picklable."""

    def __init__(self, count: int) -> None:
        super().__init__(count, thread_name_prefix="worker")
        self._workers = [WorkerProcess() for _ in range(count)]
        #: Those at no call. The last one that was is taken first, so that no more are started than are needed.
        self._idle: queue.LifoQueue[WorkerProcess] = queue.LifoQueue()
        for worker in self._workers:
            self._idle.put(worker)

    def submit(
        self, fn: Callable[_Arguments, _Result], /, *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> Future[_Result]:
        """Have `fn` called by the next worker that is free.

        The future raises WorkerFailed when the call failed, and InputError when the machine refuses another process.
        """
        return cast("Future[_Result]", super().submit(self._call, pickle.dumps((fn, args, kwargs))))

    def _call(self, message: bytes) -> object:
        worker = self._idle.get()
        try:
            return worker.call(message)
        finally:
            self._idle.put(worker)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls; let the waiting ones be made, or cancel them."""
        super().shutdown(wait, cancel_futures=cancel_futures)
        if wait:
            for worker in self._workers:
                worker.stop()

    def kill(self) -> None:
        """End the workers at once, and with them the calls they are at."""
        for worker in self._workers:
            worker.kill()
        self.shutdown(cancel_futures=True)


class WorkerProcess:
    """One process, started when it is first needed and again after a crash, until it is killed on purpose."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection[Any, Any] | None = None
        self._output: IO[bytes] | None = None
        #: Held while a process is started or killed: a kill that came in between would find nothing to end.
        self._lock = threading.Lock()
        self._is_killed = False

    def call(self, message: bytes) -> object:
        """Return the result of a call, which is function, arguments and keywords, pickled.

        Raises WorkerFailed, and InputError when the machine refuses another process.
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
                raise WorkerFailed("the process of the run was ended before it began")
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
        self._connection, theirs = Pipe()
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-u", "-c", _WORKER_CODE.format(path=sys.path, descriptor=theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def _describe_crash(self) -> str:
        """Say how the process ended and what it printed last, and make ready for another."""
        assert self._process is not None
        assert self._output is not None
        code = self._process.wait()
        self._output.seek(max(0, self._output.seek(0, os.SEEK_END) - _SHOWN_BYTES))
        lines = self._output.read().decode("utf-8", errors="replace").splitlines()[-_SHOWN_LINES:]
        log_end = "\n".join(f"    {line}" for line in lines) or "    (it printed nothing)"
        self.stop()
        return f"the process of the run {_describe_exit(code)}; its last lines:\n{log_end}"

    def kill(self) -> None:
        """End the process, be it stopped or yet to be started, and with it the programs it has started."""
        with self._lock:
            self._is_killed = True
            if self._process is not None:
                self._process.kill()

    def stop(self) -> None:
        """End the process, which is at no call, and make ready for another."""
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._output is not None:
            self._output.close()
        self._connection = self._process = self._output = None


def _describe_exit(code: int) -> str:
    """Say how a process ended."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = ", as Linux does when memory runs out" if name == "SIGKILL" else ""
    return f"was killed by {name}{hint}"


class InlineExecutor(Executor):
    """Makes each call at once, in this process."""

    def submit(
        self, fn: Callable[_Arguments, _Result], /, *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> Future[_Result]:
        """Call `fn`; what it raises is raised here."""
        future: Future[_Result] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@contextlib.contextmanager
def worker_pool(count: int) -> Iterator[WorkerPool]:
    """Yield `count` workers that end with the block, at once if it raises."""
    workers = WorkerPool(count)
    try:
        yield workers
    except BaseException:
        workers.kill()
        raise
    workers.shutdown()


def available_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
