"""The page that is shared with the coordinator, and the thread that ends waits when the coordinator rings."""

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
#: The numbers, then two bytes for each of the latest connections to the run: its local port.
_NUMBERS, _RECORDED = 65536, 1 << 14
_SIZE = _NUMBERS + 2 * _RECORDED
#: Places on the page, in numbers of eight bytes (docs/reference/schedulers.md); the first ones are for counting.
WROTE, CONNECTS, SENT, RECEIVED, FOREIGN_CONNECTS = 11, 15, 16, 17, 23
_NOW, _FLAGS, _SEED, _PID, _EPOCH, _PORT, _TOKEN, _MODULE_SLOTS = 1, 4, 5, 19, 20, 24, 27, 28
_ARRIVING, _OPENED = 30, 31
#: What is announced: a local port and how many bytes the server will have sent to it, with a number between them.
_PORT_SHIFT, _TOTAL_MASK = 48, 2**40 - 1
_TABLE, _FIRST_WAIT, _LAST_WAIT = 512, 3584, 3840
_DETERMINISTIC = 1
_NEVER = 2**63 - 1
#: How long to wait for a bell before looking whether the coordinator is still there.
_LIVENESS_CHECK_MS = 10_000
SECOND = 10**9


class SharedPage:
    """What is shared with the coordinator."""

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
        """The time in nanoseconds of Unix."""
        return self._numbers[_NOW]

    @property
    def monotonic(self) -> int:
        """The time of monotonic clocks."""
        return self._numbers[_NOW] - self._numbers[_EPOCH]

    @property
    def seed(self) -> int | None:
        """What everything that is drawn by lot is to follow from; None if it need not."""
        return self._numbers[_SEED] if self._numbers[_FLAGS] & _DETERMINISTIC else None

    @property
    def port(self) -> int:
        """Where the run's API is, on the loopback."""
        return self._numbers[_PORT]

    def increment(self, place: int, number: int = 1) -> None:
        """Count something."""
        with self._mutex:
            self._numbers[place] += number

    def record_connection(self, port: int) -> None:
        """Record the local port of a connection to the run: the server numbers connections in this order."""
        with self._mutex:
            self._ports[self._numbers[_OPENED] % _RECORDED] = port
            self._numbers[_OPENED] += 1

    @property
    def announced_arrival(self) -> tuple[int, int]:
        """The local port of the connection on which the server sends, and how many bytes it will have sent then."""
        value = self._numbers[_ARRIVING] % 2**64
        return value >> _PORT_SHIFT, value & _TOTAL_MASK

    def allocate_wait(self) -> int:
        """Return the number of a wait for the calling thread; other processes take theirs at the same time."""
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
        raise RuntimeError("more processes than the page has room for")

    def set_wakeup(self, number: int, moment: int) -> None:
        """Have the bell of a wait rung at a moment."""
        self._numbers[_TABLE + 2 * number + 1] = moment

    def wait_for_wakeup(self, bell: socket.socket) -> None:
        """Wait for a bell; end, if nobody is left to ring it."""
        poll = select.poll()
        poll.register(bell, select.POLLIN)
        while not poll.poll(_LIVENESS_CHECK_MS):
            if not os.path.exists(self._path):
                os._exit(1)
        bell.recv(8)

    def wakeup_socket(self, number: int) -> socket.socket:
        """Return the bell of a wait."""
        bell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        bell.bind(f"\0batkube-{self._numbers[_TOKEN]:x}-{number}")
        return bell


class WaitTimer:
    """Ends waits whose time has come."""

    def __init__(self, page: SharedPage) -> None:
        self._page = page
        self._mutex = allocate_lock()
        #: Moment and what ends it, by a number of its own.
        self._waits: dict[int, tuple[int, Callable[[], object]]] = {}
        self._last = 0
        #: The wait on the page that stands for the next of them; None as long as there is no thread.
        self._slot: int | None = None

    @contextlib.contextmanager
    def timer(self, moment: int, end: Callable[[], object]) -> Iterator[None]:
        """Have `end` called at a moment, in another thread, unless the wait is over before."""
        with self._mutex:
            if self._slot is None:
                self._start_thread()
            self._last = number = self._last + 1
            self._waits[number] = (moment, end)
            self._publish_next_wakeup()
        try:
            yield
        finally:
            with self._mutex:
                self._waits.pop(number, None)
                self._publish_next_wakeup()

    def _publish_next_wakeup(self) -> None:
        assert self._slot is not None, "the keeper has not begun"
        self._page.set_wakeup(self._slot, min((moment for moment, _ in self._waits.values()), default=_NEVER))

    def _start_thread(self) -> None:
        is_there = allocate_lock()
        is_there.acquire()
        start_new_thread(self._run, (is_there.release,))
        is_there.acquire()

    def _run(self, is_there: Callable[[], None]) -> None:
        place = self._page.allocate_wait()
        bell = self._page.wakeup_socket(place)
        self._slot = place
        is_there()
        while True:
            self._page.wait_for_wakeup(bell)
            with self._mutex:
                # Whoever is woken can be seen to be awake before the page says that nobody has to be.
                for number in [one for one, (moment, _) in self._waits.items() if moment <= self._page.now]:
                    self._waits.pop(number)[1]()
                self._publish_next_wakeup()


class ProgramClock:
    """The clock of this process."""

    def __init__(self, page: SharedPage) -> None:
        self.page = page
        self._timer = WaitTimer(page)

    def after_fork(self) -> None:
        """Begin anew in a child, where there is no keeper."""
        self._timer = WaitTimer(self.page)

    def timer(self, seconds: float, end: Callable[[], object]) -> contextlib.AbstractContextManager[None]:
        """Have `end` called after so many seconds, in another thread, unless the wait is over before.

        What lasts at all lasts a nanosecond, however small a number it was.
        """
        return self._timer.timer(min(self.page.now + max(1, round(seconds * SECOND)), _NEVER - 1), end)
