"""Whether all threads of a program are asleep, as the kernel sees it.

A thread that waits, for whatever and by whatever call, is asleep (proc(5): state S); who wakes it, by a write, an
unlocked mutex or an ended child, has made it runnable when his own call returns. So when all threads of a program and
of the processes it has started sleep at one moment, nothing goes on in it until somebody outside does something.

The state alone does not tell: a thread on its way to sleep has it already while it looks a last time whether there is
something to do, and on a busy machine it may lose its processor right then, for long. Such a one is still queued for a
processor, and of those the kernel does not say where they wait (proc(5): wchan is 0).

One look takes time, during which those who were looked at first may have been woken by those who were looked at last.
Therefore everybody is looked at twice: who sleeps both times and was never given a processor in between (the kernel
counts that) has slept all the time from the one look to the other, and so there was a moment at which all did.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

from batkube.kernel.errors import InputError
from batkube.kernel.stopwatch import Stopwatch

#: Asleep; or ended, and not yet taken note of by its parent.
_ASLEEP = b"S"
_QUIET = frozenset((_ASLEEP, b"Z", b"X"))
_READ = 4096
#: proc(5), /proc/PID/stat: the fields after the name in parentheses; the number of threads is the 20th of all.
_THREADS = 17
#: How many times a thread was given a processor; where the kernel does not count that, how often it lost one.
_RUNS, _SWITCHES = "schedstat", "status"
#: Where a thread waits in the kernel; what is there for one that is queued for a processor, or may not be looked at.
_WCHAN, _NOT_WAITING = "wchan", b"0"
#: One of which the kernel does not tell is taken to be asleep when it has not run for so long.
_ASSUMED_ASLEEP_S = 1.0

Thread = tuple[int, int]
"""Process and thread, by their numbers."""


def check_kernel() -> None:
    """Raise InputError unless the kernel tells all that is looked at here."""
    if not os.path.exists("/proc/thread-self/children"):
        raise InputError(
            "the clock of a program",
            problem="this kernel does not tell which processes a program has started (CONFIG_PROC_CHILDREN)",
            remedy="write --time paced and real: instead",
        )


class _Task:
    """One thread, by the files of /proc that tell of it; they stay open, which makes looking cheap."""

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
        """Return what it does, and how many threads its process has."""
        fields = os.pread(self._descriptors[0], _READ, 0).rpartition(b")")[2].split()
        return fields[0], int(fields[_THREADS])

    def is_waiting(self) -> bool:
        """Return whether it is queued for no processor."""
        return os.pread(self._descriptors[3], _READ, 0) != _NOT_WAITING

    def children(self) -> list[int]:
        """Return the processes that it has started and that have not been taken note of as ended."""
        return [int(text) for text in os.pread(self._descriptors[1], _READ, 0).split()]

    def run_count(self) -> bytes:
        """Return what changes whenever it runs."""
        return os.pread(self._descriptors[2], _READ, 0)

    def close(self) -> None:
        """Give the files back."""
        for file in self._descriptors:
            os.close(file)


class ThreadStates:
    """The threads of a program and of all processes that it has started."""

    def __init__(self, leader: int) -> None:
        self._leader = leader
        self._tasks: dict[Thread, _Task] = {}
        self._threads: dict[int, list[int]] = {}
        self._run_counter = _RUNS if _counts_runs() else _SWITCHES
        #: How often threads had run of which the kernel does not tell where they wait, and since when.
        self._unclear: dict[Thread, tuple[bytes, Stopwatch]] = {}

    def are_all_asleep(self, others: Iterable[int] = ()) -> bool:
        """Return whether at one moment during this call all of them slept; `others` are processes of its session.

        Those may have lost their parent, and nobody else would know of them.
        """
        extra = [pid for pid in others if pid != self._leader and _session(pid) == self._leader]
        first = self._scan(extra)
        return first is not None and self._scan(extra) == first

    def _scan(self, others: Iterable[int]) -> dict[Thread, bytes] | None:
        """Return how often each has run; None as soon as one is not asleep, or has come or gone meanwhile."""
        sleeping: dict[Thread, bytes] = {}
        processes = [self._leader, *others]
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
        """Return whether a thread with the state of one that sleeps has come to rest, as far as can be told."""
        if task.is_waiting():
            self._unclear.pop(thread, None)
            return True
        runs, watch = self._unclear.setdefault(thread, (task.run_count(), Stopwatch()))
        if runs != task.run_count():
            self._unclear[thread] = task.run_count(), Stopwatch()
            return False
        return watch.real_s > _ASSUMED_ASLEEP_S

    def _threads_of(self, process: int) -> list[int]:
        """Return the threads of a process: those known, if there are as many as the kernel says."""
        known = self._threads.get(process)
        if known is None or self._task(process, process).state()[1] != len(known):
            known = self._threads[process] = [int(name) for name in os.listdir(f"/proc/{process}/task")]
        return known

    def _task(self, process: int, thread: int) -> _Task:
        task = self._tasks.get((process, thread))
        if task is None:
            task = self._tasks[process, thread] = _Task(process, thread, self._run_counter)
        return task

    def _clear(self) -> None:
        """Look at everybody anew: somebody has gone."""
        for task in self._tasks.values():
            task.close()
        self._tasks.clear()
        self._threads.clear()
        self._unclear.clear()

    def close(self) -> None:
        """Give all files back."""
        self._clear()


def _counts_runs() -> bool:
    """Return whether this kernel counts how often threads run; we have, at least once."""
    with contextlib.suppress(OSError, IndexError), open("/proc/self/schedstat", "rb") as file:
        return int(file.read().split()[2]) > 0
    return False


def _session(pid: int) -> int:
    """Return the session of a process; 0 when it has ended."""
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0
