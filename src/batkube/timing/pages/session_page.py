"""The clock of a program that is not written in Go, and of the processes it starts: a session.

Their waits go through a library (`native/`) or a module of ours (`batkube.clock`), which write on the page until when
each of them lasts. Moving the clock means to ring for those whose time has come; each has a bell, a socket by the
number of its place on the page. That nobody is at work any more we hear from the kernel (`thread_states`). A thread
that
waits for room in the pipe it prints to is asleep as well, and not idle; so the pipe must be empty, too.

To the coordinator this is a page like that of a Go program (`page`), which answers all these questions itself.
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
#: The table of waits, in numbers of eight bytes: two for each wait. The library's come first, then those of the module.
_TABLE, _LIBRARY_WAITS = 512, 3584
#: Monotonic clocks show a second when the program starts, as on a machine that was switched on a moment ago.
_MONOTONIC_START_NS = 10**9
#: How long to leave a program in peace that is at work, at first and at most.
_MIN_PAUSE_S, _MAX_PAUSE_S = 0.00002, 0.001
#: A grant ends after so many jumps, so that nobody takes a long one for a program that is stuck.
_MAX_JUMPS = 2000

_UNSUPPORTED_FEATURES = {
    1: "alarm and setitimer",
    2: "timerfd_settime and timer_settime",
    4: "timeouts of sockets (SO_RCVTIMEO, SO_SNDTIMEO)",
    8: "more waits at once than there is room for",
}


class SessionPage(ClockPage):
    """The clock of one session."""

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
        """`port` is that of the run's API, which connections to `proxy_port` are led to as well. Raises InputError.

        `drain` reads what the program has printed and returns how much that is (`ProgramLog.drain`).
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
        #: Whether the program's own count of what it wrote can be believed.
        self._counters_agree = True

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which processes find their page: no descriptor of it is handed down, so none can be lost."""
        return {"BATKUBE_CLOCK": f"/proc/{os.getpid()}/fd/{self._file}"}

    @property
    def descriptors(self) -> tuple[int, ...]:
        """None are inherited."""
        return ()

    def set_process(self, pid: int) -> None:
        """Take note of the process that begins the session."""
        self._thread_states = ThreadStates(pid)

    def probe(self) -> int:
        """Ask whether everybody is asleep; return the number of the question."""
        self._number += 1
        self._wake_program()
        return self._number

    def is_idle_since(self, number: int) -> bool:
        """Return whether everybody was asleep after the question `number` was put, or is now."""
        if self._idle_number < number:
            self.wait(0.0)
        return self._idle_number >= number

    def wait(self, timeout_s: float) -> bool:
        """Wait until everybody is asleep, also after whatever time was granted; return whether that came in time.

        As long as nothing is asked, it does not.
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
        """Return whether everybody is asleep, and nobody whose time has come; who has no clock may sleep by another.

        While we look, nothing may be printed: who waits for the pipe sleeps without being idle.
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
        """Return the place, the thread and the end of each wait that there may be."""
        slots, waits = self._slots, []
        for first, count in ((0, slots[_SLOTS]), (_LIBRARY_WAITS, slots[_MODULE_SLOTS])):
            begin = _TABLE + 2 * first
            numbers = slots[begin : begin + 2 * count].tolist()
            waits += [(first + each, numbers[2 * each], numbers[2 * each + 1]) for each in range(count)]
        return [wait for wait in waits if wait[1]]

    def _processes(self) -> list[int]:
        return list(dict.fromkeys(thread & 0xFFFFFFFF for _, thread, _ in self._waits()))

    def _wake_program(self) -> bool:
        """Ring for those whose time has come; return whether there were any."""
        now, rung = self.now, False
        for place, thread, end in self._waits():
            if end <= now and self._is_alive(place, thread):
                rung = True
                # One that does not hear has been rung for often enough, or is about to wake by itself.
                with contextlib.suppress(BlockingIOError, ConnectionRefusedError):
                    self._wake_socket.sendto(b"1", f"\0batkube-{self._token:x}-{place}")
        return rung

    def _is_alive(self, place: int, thread: int) -> bool:
        """Return whether a thread lives; if not, nobody else will give its place back."""
        if os.path.exists(f"/proc/{thread & 0xFFFFFFFF}/task/{thread >> 32}"):
            return True
        self._slots[_TABLE + 2 * place] = 0
        return False

    @property
    def next_timer(self) -> int:
        """When the next wait ends, in nanoseconds of Unix; the largest number if none does."""
        ends = sorted((end, place, thread) for place, thread, end in self._waits())
        return next((end for end, place, thread in ends if end < NEVER and self._is_alive(place, thread)), NEVER)

    # Grants

    def grant(self, limit_ns: int) -> None:
        """Let the clock move from wait to wait before `limit_ns`, until something is written."""
        super().grant(limit_ns)
        self._granted_jumps = 0

    def _jump(self) -> bool:
        """Move the clock to the end of the next wait, if that is granted; return whether it was."""
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
        """How often the session wrote to the run; as long as that is not certain, as often as it had reason to."""
        return super().write_count + (0 if self._counters_agree else self.jump_count)

    def distrust_counters(self) -> None:
        """Take note that some process of the session writes without counting."""
        self._counters_agree = False

    def request_collection(self) -> None:
        """Ask for nothing: whose garbage it is cannot be told."""

    @property
    def remedy(self) -> str:
        """What to ask of a program that has not taken its page."""
        return "is it dynamically linked, and started with its environment? `--time paced` and real: go without"

    @property
    def counts_all(self) -> bool:
        """A process that is statically linked counts nothing, and neither does one that writes as the library does."""
        return False

    @property
    def reports_arrivals(self) -> bool:
        """Idleness is read from the kernel, to which a thread sleeps while bytes for it are in flight."""
        return False

    @property
    def unsupported_features(self) -> list[str]:
        """What was used that knows of no virtual time."""
        return [text for bit, text in _UNSUPPORTED_FEATURES.items() if self._slots[_UNSUPPORTED] & bit]

    def close(self) -> None:
        """Give everything back; the processes must have ended."""
        self._wake_socket.close()
        if self._thread_states is not None:
            self._thread_states.close()
        super().close()
