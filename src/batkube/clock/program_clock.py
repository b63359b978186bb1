"""The page of memory shared with the coordinator, and the thread that ends timed waits."""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import select
import socket
import threading
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable, Iterator

_MAGIC = 0x344B4256
#: The page has numbers of eight bytes, then the local ports of the latest connections, two bytes each.
_NUMBERS, _RECORDED_PORTS = 65536, 1 << 14
_SIZE = _NUMBERS + 2 * _RECORDED_PORTS
#: Indexes of numbers on the page (docs/reference/schedulers.md); the first ones are counters.
WROTE, CONNECTS, SENT, RECEIVED, FOREIGN_CONNECTS = 11, 15, 16, 17, 23
_NOW, _FLAGS, _SEED, _PID, _EPOCH, _PORT, _TOKEN, _MODULE_SLOTS = 1, 4, 5, 19, 20, 24, 27, 28
_ANNOUNCEMENT, _CONNECTION_COUNT = 30, 31
#: An announcement packs the local port and the total number of bytes sent to it into one number.
_PORT_SHIFT, _TOTAL_MASK = 48, 2**40 - 1
_TABLE, _FIRST_WAIT, _LAST_WAIT = 512, 3584, 3840
_DETERMINISTIC = 1
_NEVER = 2**63 - 1
#: How long to wait for a wake-up before checking whether the coordinator still runs.
_LIVENESS_CHECK_MS = 10_000
SECOND = 10**9


class SharedPage:
    """The page of memory shared with the coordinator."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        page = memoryview(mmap.mmap(self._file, _SIZE))
        self._numbers = page[:_NUMBERS].cast("q")
        self._ports = page[_NUMBERS:].cast("H")
        self._mutex = allocate_lock()
        if self._numbers[0] != _MAGIC:
            raise RuntimeError("the file named by BATKUBE_CLOCK is not a page of this version of Batkube")
        if not self._numbers[_PID]:
            self._numbers[_PID] = os.getpid()

    @property
    def now(self) -> int:
        """The current time in Unix nanoseconds."""
        return self._numbers[_NOW]

    @property
    def monotonic(self) -> int:
        """The current time of the monotonic clock, in nanoseconds."""
        return self._numbers[_NOW] - self._numbers[_EPOCH]

    @property
    def seed(self) -> int | None:
        """The seed of all random numbers of the program; None if the run is not deterministic."""
        return self._numbers[_SEED] if self._numbers[_FLAGS] & _DETERMINISTIC else None

    @property
    def port(self) -> int:
        """The port of the run's API server on the loopback interface."""
        return self._numbers[_PORT]

    def increment(self, counter: int, number: int = 1) -> None:
        """Add to a counter."""
        with self._mutex:
            self._numbers[counter] += number

    def record_connection(self, port: int) -> None:
        """Record the local port of a connection to the run, because the server numbers connections in this order."""
        with self._mutex:
            self._ports[self._numbers[_CONNECTION_COUNT] % _RECORDED_PORTS] = port
            self._numbers[_CONNECTION_COUNT] += 1

    @property
    def announced_arrival(self) -> tuple[int, int]:
        """The local port and the total number of bytes of the announced piece."""
        value = self._numbers[_ANNOUNCEMENT] % 2**64
        return value >> _PORT_SHIFT, value & _TOTAL_MASK

    def allocate_wait(self) -> int:
        """Allocate a wait slot for the calling thread. The file lock excludes other processes of the program."""
        fcntl.lockf(self._file, fcntl.LOCK_EX)
        try:
            for number in range(_FIRST_WAIT, _LAST_WAIT):
                if not self._numbers[_TABLE + 2 * number]:
                    self.set_wakeup(number, _NEVER)
                    self._numbers[_TABLE + 2 * number] = os.getpid() | threading.get_native_id() << 32
                    self._numbers[_MODULE_SLOTS] = max(self._numbers[_MODULE_SLOTS], number - _FIRST_WAIT + 1)
                    return number
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN)
        raise RuntimeError("the program has more processes with timers than the page has slots")

    def set_wakeup(self, number: int, instant: int) -> None:
        """Set the instant at which the coordinator wakes a wait slot."""
        self._numbers[_TABLE + 2 * number + 1] = instant

    def wait_for_wakeup(self, wakeups: socket.socket) -> None:
        """Wait for a wake-up; exit if the coordinator no longer runs."""
        poll = select.poll()
        poll.register(wakeups, select.POLLIN)
        while not poll.poll(_LIVENESS_CHECK_MS):
            if not os.path.exists(self._path):
                os._exit(1)
        wakeups.recv(8)

    def wakeup_socket(self, number: int) -> socket.socket:
        """Return the socket on which the coordinator wakes a wait slot."""
        wakeups = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        wakeups.bind(f"\0batkube-{self._numbers[_TOKEN]:x}-{number}")
        return wakeups


class WaitTimer:
    """Ends timed waits at their deadlines."""

    def __init__(self, page: SharedPage) -> None:
        self._page = page
        self._mutex = allocate_lock()
        #: Deadline and callback of each wait.
        self._waits: dict[int, tuple[int, Callable[[], object]]] = {}
        self._last = 0
        #: The slot on the page with the earliest deadline; None until the thread has started.
        self._slot: int | None = None

    @contextlib.contextmanager
    def timer(self, instant: int, end: Callable[[], object]) -> Iterator[None]:
        """Call `end` in another thread at `instant`, unless the block ends first."""
        with self._mutex:
            if self._slot is None:
                self._start_thread()
            self._last = number = self._last + 1
            self._waits[number] = (instant, end)
            self._publish_next_wakeup()
        try:
            yield
        finally:
            with self._mutex:
                self._waits.pop(number, None)
                self._publish_next_wakeup()

    def _publish_next_wakeup(self) -> None:
        assert self._slot is not None, "the timer thread has not started"
        self._page.set_wakeup(self._slot, min((instant for instant, _ in self._waits.values()), default=_NEVER))

    def _start_thread(self) -> None:
        has_started = allocate_lock()
        has_started.acquire()
        start_new_thread(self._run, (has_started.release,))
        has_started.acquire()

    def _run(self, has_started: Callable[[], None]) -> None:
        slot = self._page.allocate_wait()
        wakeups = self._page.wakeup_socket(slot)
        self._slot = slot
        has_started()
        while True:
            self._page.wait_for_wakeup(wakeups)
            with self._mutex:
                # Run the callbacks before publishing: the woken threads must be awake when the page shows no deadline.
                for number in [wait for wait, (instant, _) in self._waits.items() if instant <= self._page.now]:
                    self._waits.pop(number)[1]()
                self._publish_next_wakeup()


class ProgramClock:
    """The clock of this process."""

    def __init__(self, page: SharedPage) -> None:
        self.page = page
        self._timer = WaitTimer(page)

    def after_fork(self) -> None:
        """Start without a timer thread in a forked child."""
        self._timer = WaitTimer(self.page)

    def timer(self, seconds: float, end: Callable[[], object]) -> contextlib.AbstractContextManager[None]:
        """Call `end` in another thread after `seconds`, unless the block ends first.

        A positive timeout lasts at least one nanosecond.
        """
        return self._timer.timer(min(self.page.now + max(1, round(seconds * SECOND)), _NEVER - 1), end)
