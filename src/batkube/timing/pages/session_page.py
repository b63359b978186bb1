"""The clock page of a session: a program that is not written in Go, with all processes that it starts.

Their timed waits go through our preloaded library (`native/`) or our module `batkube.clock`. These write the end of
each wait into a table on the page. When the clock reaches the end of a wait, we wake its thread by a datagram; the
socket's name contains the wait's number in the table. Idleness is determined from the kernel (`thread_states`). A
thread that blocks because its output pipe is full is asleep but not idle, so the pipe must also be empty.

The coordinator uses it like the page of a Go program (`clock_page`), which reports all this itself.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import socket
from collections.abc import Callable

from batkube.kernel.stopwatch import Stopwatch
from batkube.timing.pages.clock_page import NEVER, ClockPage
from batkube.timing.pages.thread_states import ThreadStates, check_kernel

_MAGIC = 0x344B4256
_LIMIT, _JUMPS, _GRANTED_WROTE = 3, 12, 14
_EPOCH, _SLOTS, _UNSUPPORTED, _PROXY_PORT, _TOKEN, _MODULE_SLOTS = 20, 21, 22, 25, 27, 28
#: The offset of the table of waits, in eight-byte numbers, two per wait. The library's waits precede the module's.
_TABLE, _LIBRARY_WAITS = 512, 3584
#: The value of monotonic clocks when the program starts, as on a machine that has just booted.
_MONOTONIC_START_NS = 10**9
#: The initial and maximum pause between two checks of a program that is working.
_MIN_PAUSE_S, _MAX_PAUSE_S = 0.00002, 0.001
#: The maximum number of jumps in a grant, so that the watchdog does not take a long grant for a stuck program.
_MAX_JUMPS = 2000

_UNSUPPORTED_FEATURES = {
    1: "alarm and setitimer",
    2: "timerfd_settime and timer_settime",
    4: "timeouts of sockets (SO_RCVTIMEO, SO_SNDTIMEO)",
    8: "more waits at once than there is room for",
}


class SessionPage(ClockPage):
    """The clock page of one session."""

    def __init__(
        self,
        now_ns: int,
        *,
        deterministic: bool,
        seed: int,
        port: int,
        proxy_port: int = 0,
        drain: Callable[[], int] = lambda: 0,
    ) -> None:
        """`port` is that of the run's API server; connections to `proxy_port` are redirected to it. Raise InputError.

        `drain` reads the program's output and returns the bytes read so far (`ProgramLog.drain`).
        """
        check_kernel()
        super().__init__(now_ns, deterministic=deterministic, seed=seed, port=port, magic=_MAGIC)
        self._token = secrets.randbits(63)
        self._slots[_EPOCH] = now_ns - _MONOTONIC_START_NS
        self._slots[_PROXY_PORT], self._slots[_TOKEN] = proxy_port, self._token
        self._wake_socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._wake_socket.setblocking(False)
        self._thread_states: ThreadStates | None = None
        self._drain = drain
        self._idle_number = 0
        self._granted_jumps = 0
        #: Whether the program's own count of its writes is reliable.
        self._counters_agree = True

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which processes find the page, by path: inherited descriptors might be closed."""
        return {"BATKUBE_CLOCK": f"/proc/{os.getpid()}/fd/{self._file}"}

    @property
    def descriptors(self) -> tuple[int, ...]:
        """No descriptors are inherited."""
        return ()

    def set_process(self, pid: int) -> None:
        """Set the process that leads the session."""
        self._thread_states = ThreadStates(pid)

    def probe(self) -> int:
        """Begin a check whether all threads are asleep; return the number of the probe."""
        self._number += 1
        self._wake_program()
        return self._number

    def is_idle_since(self, number: int) -> bool:
        """Return whether all threads were asleep at some moment after probe `number`."""
        if self._idle_number < number:
            self.wait(0.0)
        return self._idle_number >= number

    def wait(self, timeout_s: float) -> bool:
        """Wait until all threads are asleep and any time grant is used up; return whether that happened in time.

        Without an open probe, only pause and return False.
        """
        watch, pause_s = Stopwatch(), _MIN_PAUSE_S
        if self._idle_number == self._number:
            select.select((), (), (), min(timeout_s, _MAX_PAUSE_S))
            return False
        while True:
            if self._is_quiet():
                if not self._jump():
                    self._idle_number = self._number
                    return True
                watch, pause_s = Stopwatch(), _MIN_PAUSE_S
            elif watch.real_s > timeout_s:
                return False
            else:
                select.select((), (), (), pause_s)
                pause_s = min(2 * pause_s, _MAX_PAUSE_S)

    def _is_quiet(self) -> bool:
        """Return whether all threads are asleep and no wait is over; processes without our library are included.

        Nothing may be printed during the check, since a thread that blocks on the output pipe is asleep but not idle.
        """
        assert self._thread_states is not None, "the program has not been started"
        printed = self._drain()
        return (
            bool(self.pid)
            and not self._wake_program()
            and self._thread_states.are_all_asleep(self._processes())
            and self._drain() == printed
            and not self._wake_program()
        )

    def _waits(self) -> list[tuple[int, int, int]]:
        """Return the index in the table, the thread and the end of each registered wait."""
        slots, waits = self._slots, []
        for first, count in ((0, slots[_SLOTS]), (_LIBRARY_WAITS, slots[_MODULE_SLOTS])):
            begin = _TABLE + 2 * first
            numbers = slots[begin : begin + 2 * count].tolist()
            waits += [(first + index, numbers[2 * index], numbers[2 * index + 1]) for index in range(count)]
        return [wait for wait in waits if wait[1]]

    def _processes(self) -> list[int]:
        return list(dict.fromkeys(thread & 0xFFFFFFFF for _, thread, _ in self._waits()))

    def _wake_program(self) -> bool:
        """Wake the threads whose waits are over; return whether there were any."""
        now, has_woken = self.now, False
        for index, thread, end in self._waits():
            if end <= now and self._is_alive(index, thread):
                has_woken = True
                # A full or missing socket means that datagrams are queued already, or that the thread is waking.
                with contextlib.suppress(BlockingIOError, ConnectionRefusedError):
                    self._wake_socket.sendto(b"1", f"\0batkube-{self._token:x}-{index}")
        return has_woken

    def _is_alive(self, index: int, thread: int) -> bool:
        """Return whether a thread exists; if not, free its entry in the table, which nothing else would do."""
        if os.path.exists(f"/proc/{thread & 0xFFFFFFFF}/task/{thread >> 32}"):
            return True
        self._slots[_TABLE + 2 * index] = 0
        return False

    @property
    def next_timer(self) -> int:
        """When the next wait ends, in Unix nanoseconds; the largest number if none does."""
        ends = sorted((end, index, thread) for index, thread, end in self._waits())
        return next((end for end, index, thread in ends if end < NEVER and self._is_alive(index, thread)), NEVER)

    # Grants

    def grant(self, limit_ns: int) -> None:
        """Allow the clock to move from wait to wait before `limit_ns`, until the session writes something."""
        super().grant(limit_ns)
        self._granted_jumps = 0

    def _jump(self) -> bool:
        """Move the clock to the end of the next wait, if the grant allows it; return whether it did."""
        limit, granted = self._slots[_LIMIT], self._slots[_GRANTED_WROTE]
        if not limit or self._granted_jumps >= _MAX_JUMPS or self.write_count != granted:
            return False
        next_ns = self.next_timer
        if next_ns >= limit:
            return False
        self._granted_jumps += 1
        self._slots[_JUMPS] += 1
        self.now = next_ns
        return True

    @property
    def write_count(self) -> int:
        """How often the session wrote to the run. If its own count is unreliable, every jump counts as a write."""
        return super().write_count + (0 if self._counters_agree else self.jump_count)

    def distrust_counters(self) -> None:
        """Stop using the counters: some process of the session writes without counting."""
        self._counters_agree = False

    def request_collection(self) -> None:
        """Do nothing: garbage collection in programs other than Go's cannot be controlled."""

    @property
    def remedy(self) -> str:
        """The remedy in the error about a program that has not opened its page."""
        return "it must be dynamically linked and keep its environment; otherwise use `--time paced` and real:"

    @property
    def counts_all(self) -> bool:
        """False: a statically linked process counts nothing, nor does one that makes system calls directly."""
        return False

    @property
    def reports_arrivals(self) -> bool:
        """False: idleness comes from the kernel, for which a thread is asleep while bytes for it are in flight."""
        return False

    @property
    def unsupported_features(self) -> list[str]:
        """The features used by the session that do not support virtual time."""
        return [text for bit, text in _UNSUPPORTED_FEATURES.items() if self._slots[_UNSUPPORTED] & bit]

    def close(self) -> None:
        """Release the page and its sockets; the processes must have ended."""
        self._wake_socket.close()
        if self._thread_states is not None:
            self._thread_states.close()
        super().close()
