"""Worker processes, as an executor in the sense of `concurrent.futures`.

Each worker is a process of its own that is kept for many calls, so that imports are paid once. Unlike Python's own
ProcessPoolExecutor, a worker that crashes fails only the call it was at, with the last lines it printed; another takes
its place. Workers are plain programs and not forks, so that neither the threads nor the `__main__` of who starts them
matter, and they have a session of their own: Ctrl-C reaches the experiment, which decides what becomes of its runs.
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
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from typing import IO, Any, ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

#: What a worker runs; it finds its modules where we find ours.
_PROGRAM = "import sys; sys.path[:] = {path}; from batkube.experiments.worker import serve; serve({descriptor})"
#: So many of the last lines that a worker printed are kept.
_SHOWN_LINES = 40


class WorkerFailed(Exception):
    """A call did not return: it raised, or took its worker down with it. The message tells all there is to know."""


@dataclass(frozen=True, slots=True)
class _Call:
    future: Future[Any]
    #: Function, arguments and keywords, pickled.
    message: bytes


class WorkerProcesses(Executor):
    """Runs calls in `count` processes; functions and arguments must be picklable."""

    def __init__(self, count: int) -> None:
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        #: No more calls are taken.
        self._closed = False
        self._workers = [_Worker() for _ in range(count)]
        self._threads = [
            threading.Thread(target=self._serve, args=(worker,), name=f"worker-{number}", daemon=True)
            for number, worker in enumerate(self._workers)
        ]
        for thread in self._threads:
            thread.start()

    def submit(
        self, fn: Callable[_Arguments, _Result], /, *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> Future[_Result]:
        """Have `fn` called by the next worker that is free."""
        if self._closed:
            raise RuntimeError("cannot submit a call after shutdown")
        future: Future[_Result] = Future()
        self._calls.put(_Call(future, pickle.dumps((fn, args, kwargs))))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls; let the waiting ones be made, or cancel them."""
        self._closed = True
        if cancel_futures:
            with contextlib.suppress(queue.Empty):
                while (call := self._calls.get_nowait()) is not None:
                    call.future.cancel()
        for _ in self._threads:
            self._calls.put(None)
        if wait:
            for thread in self._threads:
                thread.join()

    def kill(self) -> None:
        """End the workers at once, and with them the calls they are at."""
        for worker in self._workers:
            worker.kill()
        self.shutdown(wait=False, cancel_futures=True)

    def _serve(self, worker: _Worker) -> None:
        """Hand calls to one worker, until there are no more."""
        while (call := self._calls.get()) is not None:
            if not call.future.set_running_or_notify_cancel():
                continue
            try:
                succeeded, answer = worker.call(call.message)
            except (WorkerFailed, OSError) as failure:
                # An OSError: the machine has no room for another process.
                succeeded, answer = False, str(failure)
            if succeeded:
                call.future.set_result(answer)
            else:
                call.future.set_exception(WorkerFailed(answer))
        worker.stop()


class _Worker:
    """One process, started when it is first needed and again after a crash."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection[Any, Any] | None = None
        self._output: IO[bytes] | None = None

    def call(self, message: bytes) -> tuple[bool, Any]:
        """Return whether the call succeeded, and its result or else what is to be told. Raises WorkerFailed."""
        connection = self._started()
        try:
            connection.send_bytes(message)
            answer: tuple[bool, Any] = connection.recv()
        except (EOFError, OSError) as error:
            raise WorkerFailed(self._crash()) from error
        return answer

    def _started(self) -> Connection[Any, Any]:
        if self._connection is not None:
            return self._connection
        ours, theirs = Pipe()
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-u", "-c", _PROGRAM.format(path=sys.path, descriptor=theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._connection = ours
        return ours

    def _crash(self) -> str:
        """Say how the process ended and what it printed last, and make ready for another."""
        assert self._process is not None
        assert self._output is not None
        code = self._process.wait()
        self._output.seek(0)
        lines = self._output.read().decode("utf-8", errors="replace").splitlines()[-_SHOWN_LINES:]
        shown = "\n".join(f"    {line}" for line in lines) or "    (it printed nothing)"
        how = f"was killed by {_signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
        self.stop()
        return f"the process of the run {how}; its last lines:\n{shown}"

    def kill(self) -> None:
        """End the process, whatever it is doing, and the programs it has started."""
        process = self._process
        if process is not None:
            process.terminate()

    def stop(self) -> None:
        """Let the process end, which it does when it hears no more from us."""
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.wait()
        if self._output is not None:
            self._output.close()
        self._connection = self._process = self._output = None


class Here(Executor):
    """Makes each call at once, in this process."""

    def submit(
        self, fn: Callable[_Arguments, _Result], /, *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> Future[_Result]:
        """Call `fn`; what it raises is raised here."""
        future: Future[_Result] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@contextlib.contextmanager
def worker_processes(count: int) -> Iterator[WorkerProcesses]:
    """Yield `count` workers that end with the block, at once if it raises."""
    workers = WorkerProcesses(count)
    try:
        yield workers
    except BaseException:
        workers.kill()
        raise
    workers.shutdown()


def available_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
