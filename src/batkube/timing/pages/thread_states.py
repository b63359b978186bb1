"""Determines whether all threads of a program are asleep, by their states in /proc.

A thread that waits in any system call is asleep (proc(5): state S). A write, an unlocked mutex or an exiting child that
wakes a thread has made it runnable by the time the waking call returns. So if all threads of a program and of its child
processes are asleep at one moment, the program does nothing until it gets an event from outside.

The state alone is not enough. A thread that is about to sleep already has state S while it checks its wait condition
for the last time, and on a busy machine it may be preempted then for a long time. Such a thread is still queued for a
processor, and the kernel then shows no wait channel (proc(5): wchan is 0).

A scan takes time: threads scanned first may be woken by threads scanned last. So every thread is scanned twice. One
that is asleep in both scans and did not run in between (the kernel counts runs) was asleep from the first scan to the
second. If that holds for all threads, there was a moment at which all of them were asleep.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

from batkube.kernel.errors import InputError
from batkube.kernel.stopwatch import Stopwatch

#: State S is asleep; Z and X are exited processes that the parent has not reaped yet.
_ASLEEP = b"S"
_QUIET = frozenset((_ASLEEP, b"Z", b"X"))
_READ = 4096
#: proc(5), /proc/PID/stat: the fields after the name in parentheses; the number of threads is the 20th of all.
_THREADS = 17
#: The file that counts how often a thread was scheduled; on kernels without it, the file that counts context switches.
_RUNS, _SWITCHES = "schedstat", "status"
#: The file with a thread's wait channel, and its content if the thread is queued for a processor or not readable.
_WCHAN, _NOT_WAITING = "wchan", b"0"
#: A thread without a readable wait channel counts as asleep if it has not run for this long.
_ASSUMED_ASLEEP_S = 1.0

Thread = tuple[int, int]
"""The ids of a process and of one of its threads."""


def check_kernel() -> None:
    """Raise InputError if the kernel does not provide the files of /proc that are read here."""
    if not os.path.exists("/proc/thread-self/children"):
        raise InputError(
            "the clock of a program",
            problem="this kernel does not list the child processes of a program (CONFIG_PROC_CHILDREN)",
            remedy="write --time paced and real: instead",
        )


class _Task:
    """The files of one thread in /proc; they stay open, which makes scans cheap."""

    def __init__(self, process: int, thread: int, runs: str) -> None:
        folder = f"/proc/{process}/task/{thread}"
        self._descriptors: list[int] = []
        try:
            for name in ("stat", "children", runs, _WCHAN):
                self._descriptors.append(os.open(f"{folder}/{name}", os.O_RDONLY | os.O_CLOEXEC))
        except OSError:
            self.close()
            raise

    def state(self) -> tuple[bytes, int]:
        """Return the thread's state and the number of threads of its process."""
        fields = os.pread(self._descriptors[0], _READ, 0).rpartition(b")")[2].split()
        return fields[0], int(fields[_THREADS])

    def is_waiting(self) -> bool:
        """Return whether the thread waits in the kernel, and is not queued for a processor."""
        return os.pread(self._descriptors[3], _READ, 0) != _NOT_WAITING

    def children(self) -> list[int]:
        """Return the processes that the thread has started and that have not been reaped."""
        return [int(text) for text in os.pread(self._descriptors[1], _READ, 0).split()]

    def run_count(self) -> bytes:
        """Return a value that changes whenever the thread runs."""
        return os.pread(self._descriptors[2], _READ, 0)

    def close(self) -> None:
        """Close the files."""
        for file in self._descriptors:
            os.close(file)


class ThreadStates:
    """The states of all threads of a program and of the processes that it has started."""

    def __init__(self, leader: int) -> None:
        self._leader = leader
        self._tasks: dict[Thread, _Task] = {}
        self._threads: dict[int, list[int]] = {}
        self._run_counter = _RUNS if _counts_runs() else _SWITCHES
        #: For threads without a readable wait channel: the run count, and a stopwatch since it last changed.
        self._unclear: dict[Thread, tuple[bytes, Stopwatch]] = {}

    def are_all_asleep(self, candidates: Iterable[int] = ()) -> bool:
        """Return whether all threads were asleep at one moment during this call.

        `candidates` are further processes. Those that belong to the session are included, since an orphaned process is
        not found as a child of the leader.
        """
        extra = [pid for pid in candidates if pid != self._leader and _session(pid) == self._leader]
        first = self._scan(extra)
        return first is not None and self._scan(extra) == first

    def _scan(self, extra: Iterable[int]) -> dict[Thread, bytes] | None:
        """Return the run count of each thread; None if one is not asleep, or was created or exited meanwhile."""
        sleeping: dict[Thread, bytes] = {}
        processes = [self._leader, *extra]
        try:
            for process in processes:
                for thread in self._threads_of(process):
                    if (process, thread) in sleeping:
                        break
                    task = self._task(process, thread)
                    state, _ = task.state()
                    if state not in _QUIET or (state == _ASLEEP and not self._is_at_rest(task, (process, thread))):
                        return None
                    sleeping[process, thread] = task.run_count()
                    processes += task.children()
        except OSError:
            self._clear()
            return None
        if len(sleeping) < len(self._tasks):
            self._clear()
        return sleeping

    def _is_at_rest(self, task: _Task, thread: Thread) -> bool:
        """Return whether a thread in state S really sleeps, as far as the kernel shows it."""
        if task.is_waiting():
            self._unclear.pop(thread, None)
            return True
        runs, watch = self._unclear.setdefault(thread, (task.run_count(), Stopwatch()))
        if runs != task.run_count():
            self._unclear[thread] = task.run_count(), Stopwatch()
            return False
        return watch.real_s > _ASSUMED_ASLEEP_S

    def _threads_of(self, process: int) -> list[int]:
        """Return the threads of a process; the cached list while its length is the kernel's number of threads."""
        threads = self._threads.get(process)
        if threads is None or self._task(process, process).state()[1] != len(threads):
            threads = self._threads[process] = [int(name) for name in os.listdir(f"/proc/{process}/task")]
        return threads

    def _task(self, process: int, thread: int) -> _Task:
        task = self._tasks.get((process, thread))
        if task is None:
            task = self._tasks[process, thread] = _Task(process, thread, self._run_counter)
        return task

    def _clear(self) -> None:
        """Drop all cached files and threads, after a thread has exited."""
        for task in self._tasks.values():
            task.close()
        self._tasks.clear()
        self._threads.clear()
        self._unclear.clear()

    def close(self) -> None:
        """Close all files."""
        self._clear()


def _counts_runs() -> bool:
    """Return whether this kernel counts how often threads run; the calling thread has run at least once."""
    with contextlib.suppress(OSError, IndexError), open("/proc/self/schedstat", "rb") as file:
        return int(file.read().split()[2]) > 0
    return False


def _session(pid: int) -> int:
    """Return the session of a process; 0 if it has ended."""
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0
