"""Worker processes are reused for many calls, and a crash fails one call."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.process_ends import wait_for_end

from batkube.experiments.running.worker_pool import WorkerFailed, WorkerPool
from batkube.kernel.errors import InputError


@pytest.fixture
def workers() -> Iterator[WorkerPool]:
    """Two workers, which are killed after the test."""
    executor = WorkerPool(2)
    yield executor
    executor.kill()


def test_processes_are_reused_for_calls(workers: WorkerPool) -> None:
    pids = [future.result() for future in [workers.submit(os.getpid) for _ in range(20)]]

    assert 1 <= len(set(pids)) <= 2
    assert os.getpid() not in pids


def test_a_killed_worker_fails_one_call_and_no_other(workers: WorkerPool) -> None:
    # abort() stands for a crash in a library.
    futures = [workers.submit(os.abort) if number == 3 else workers.submit(abs, -number) for number in range(12)]

    with pytest.raises(WorkerFailed, match="was killed by SIGABRT; its last lines:\n    Fatal Python error"):
        futures[3].result()
    assert [future.result() for future in futures[:3] + futures[4:]] == [0, 1, 2, *range(4, 12)]


def test_the_failure_of_a_worker_has_its_exit_code_and_last_lines(workers: WorkerPool) -> None:
    code = "import os; print('last words'); os._exit(7)"
    for _ in range(4):
        workers.submit(print, "words of another call").result()

    with pytest.raises(WorkerFailed, match=r"ended with exit code 7; its last lines:\n    last words"):
        workers.submit(exec, code).result()


def test_an_exception_fails_the_call_with_its_traceback(workers: WorkerPool) -> None:
    with pytest.raises(WorkerFailed, match="ZeroDivisionError"):
        workers.submit(divmod, 1, 0).result()

    assert workers.submit(divmod, 7, 2).result() == (3, 1)


def test_a_result_that_cannot_be_sent_fails_only_its_call(workers: WorkerPool) -> None:
    with pytest.raises(WorkerFailed, match="pickle"):
        workers.submit(memoryview, b"x").result()

    assert workers.submit(abs, -1).result() == 1


def test_shutdown_cancels_waiting_calls_and_rejects_new_ones() -> None:
    executor = WorkerPool(1)
    first = executor.submit(time.sleep, 0.2)
    while not first.running():
        time.sleep(0.01)
    waiting = [executor.submit(abs, 1) for _ in range(5)]

    executor.shutdown(cancel_futures=True)

    assert first.result() is None
    assert all(future.cancelled() for future in waiting)
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(abs, 1)


def test_kill_ends_running_calls_at_once(workers: WorkerPool) -> None:
    future = workers.submit(time.sleep, 600)
    while not future.running():
        time.sleep(0.01)

    workers.kill()

    with pytest.raises(WorkerFailed):
        future.result(timeout=30)


def test_kill_ends_a_worker_that_is_still_starting(workers: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    starting = threading.Event()

    class SlowStart(subprocess.Popen[bytes]):
        """Takes a while to start, as processes do on a loaded machine."""

        def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - of subprocess
            starting.set()
            time.sleep(0.3)
            super().__init__(*arguments, **options)

    monkeypatch.setattr(subprocess, "Popen", SlowStart)
    future = workers.submit(time.sleep, 600)
    assert starting.wait(30)

    workers.kill()

    with pytest.raises(WorkerFailed):
        future.result(timeout=30)


def test_no_worker_is_started_for_a_call_after_the_pool_is_killed(
    workers: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted, killed = threading.Event(), threading.Event()
    call = workers._call

    def call_late(message: bytes) -> object:
        submitted.set()
        assert killed.wait(30)
        return call(message)

    monkeypatch.setattr(workers, "_call", call_late)
    future = workers.submit(time.sleep, 600)
    assert submitted.wait(30)

    threading.Timer(0.2, killed.set).start()
    workers.kill()

    with pytest.raises(WorkerFailed, match="before it started"):
        future.result(timeout=30)


def test_a_suspended_worker_process_is_killed(workers: WorkerPool) -> None:
    pid = workers.submit(os.getpid).result()
    future = workers.submit(time.sleep, 600)
    while not future.running():
        time.sleep(0.01)
    os.kill(pid, signal.SIGSTOP)

    workers.kill()

    wait_for_end(pid)


def test_a_process_that_cannot_start_fails_no_run_and_the_next_call_retries(
    workers: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", fail)
        with pytest.raises(InputError, match="cannot be started: Resource temporarily unavailable"):
            workers.submit(abs, -1).result()

    assert workers.submit(abs, -1).result() == 1


#: A call that starts a program, writes both process ids, and does not end.
LONG_CALL = """
import os, subprocess, sys, time
from batkube.timing.processes.parent_death import kill_with_parent
command = [sys.executable, "-c", "import time; time.sleep(600)"]
child = subprocess.Popen(command, start_new_session=True, preexec_fn=kill_with_parent())
with open({path!r}, "w") as file:
    file.write(f"{{os.getpid()}} {{child.pid}}")
time.sleep(600)
"""
STARTER = """
import sys, time
from batkube.experiments.running.worker_pool import WorkerPool
executor = WorkerPool(1)
executor.submit(exec, sys.argv[1])
time.sleep(600)
"""


def test_workers_and_their_programs_end_with_a_killed_experiment(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    with subprocess.Popen([sys.executable, "-c", STARTER, LONG_CALL.format(path=str(pids))]) as starter:
        while not pids.exists() or len(pids.read_text().split()) < 2:
            time.sleep(0.02)
        starter.send_signal(signal.SIGKILL)

    for pid in map(int, pids.read_text().split()):
        wait_for_end(pid)
