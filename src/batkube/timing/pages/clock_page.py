"""The page of memory that a program under virtual time shares with the coordinator, and two eventfds beside it.

The program's Go runtime reads its clock from the page and reports on it when it is idle (see `go/`). One eventfd wakes
the program, the other reports that it has become idle. Each slot is eight bytes and has one writer, except for `now`,
which the program moves within a grant.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import select

from batkube.kernel.errors import InputError
from batkube.timing.pages.interruptions import HeadStart

_MAGIC = 0x334B4256
#: The slots, with room for the waits of sessions (`sessions`); then two bytes for each of the latest connections to the
#: run's server: its local port. (`ulimit -f`, the limit on file sizes, applies.)
_PORTS_OFFSET, _MAX_PORTS = 65536, 1 << 14
SIZE = _PORTS_OFFSET + 2 * _MAX_PORTS

_NOW, _PROBE, _LIMIT, _FLAGS, _SEED, _BUSY_GARBAGE = 1, 2, 3, 4, 5, 6
_SEEN, _NEXT, _WROTE, _JUMPS, _HEAP, _GRANTED_WROTE = 8, 9, 11, 12, 13, 14  # 10: how often it was idle, for people
_CONNECTS, _BYTES_WRITTEN, _BYTES_READ, _LIVE, _PID = 15, 16, 17, 18, 19
_ELSEWHERE, _PORT, _FOREIGN, _ARRIVING, _OPENED = 23, 24, 29, 30, 31
#: What `arriving` is made of: the program's port, a number that tells two equal announcements apart, bytes ever sent.
_TOTAL_BITS, _NUMBER_BITS = 40, 8

_DETERMINISTIC, _COLLECT = 1, 2

NEVER = 2**63 - 1
"""The moment of what never happens."""


def _new_file() -> int:
    """Return a file of zeros in memory. Raises InputError if the limit on file sizes is too small."""
    file = os.memfd_create("batkube-clock", os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(file, SIZE)
    except OSError as error:
        os.close(file)
        if error.errno != errno.EFBIG:
            raise
        raise InputError(
            "the machine",
            problem=f"allows no file of {SIZE // 1024} KiB, which the clock of a real scheduler takes",
            remedy="raise the limit of this shell: ulimit -f unlimited",
        ) from error
    return file


class ClockPage:
    """One program's clock."""

    def __init__(self, now_ns: int, *, deterministic: bool, seed: int, port: int = 0, magic: int = _MAGIC) -> None:
        """`port` is where the run's API server listens for the program."""
        self._file = _new_file()
        os.fchmod(self._file, 0o600)
        # If the program could shrink the file, the kernel would kill us at our next access.
        fcntl.fcntl(self._file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        self._page = mmap.mmap(self._file, SIZE)
        # A view of eight-byte numbers reads and writes each of them in one piece, which `struct` does not promise.
        self._slots = memoryview(self._page)[:_PORTS_OFFSET].cast("q")
        self._ports = memoryview(self._page)[_PORTS_OFFSET:].cast("H")
        #: The number of the latest connection from each local port, as far as they have been read from the page.
        self._connection_numbers: dict[int, int] = {}
        self._read_connections = 0
        self._wake = os.eventfd(0, os.EFD_NONBLOCK)
        self._idle = os.eventfd(0, os.EFD_NONBLOCK)
        self._poll = select.poll()
        self._poll.register(self._idle, select.POLLIN)
        self._number = 0
        self._announcements = 0
        self._slots[0] = magic
        self._slots[_PORT] = port
        self._slots[_FLAGS] = _DETERMINISTIC if deterministic else 0
        self._slots[_SEED] = seed & (2**63 - 1)
        #: Given to a program that wakes whenever its clock is moved, where that is to be shown not to matter.
        self.head_start: HeadStart | None = None
        self.now = now_ns

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which the program finds its page."""
        return {
            "BATKUBE_PAGE": f"/proc/self/fd/{self._file}",
            "BATKUBE_WAKE": str(self._wake),
            "BATKUBE_IDLE": str(self._idle),
        }

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The file descriptors that the program inherits."""
        return (self._file, self._wake, self._idle)

    def set_process(self, pid: int) -> None:
        """Take note of the process that was started with the page; a Go program tells by itself who it is."""

    @property
    def now(self) -> int:
        """The program's time, in nanoseconds of Unix."""
        return self._slots[_NOW]

    @now.setter
    def now(self, value: int) -> None:
        self._slots[_NOW] = value
        if self.head_start is not None:
            self._wake_program()

    def _wake_program(self) -> bool:
        """Wake the program, so that it looks at its clock; return whether there was anybody to wake."""
        os.eventfd_write(self._wake, 1)
        return True

    def probe(self) -> int:
        """Ask the program whether it is idle; return the number of the question."""
        self._number += 1
        self._slots[_PROBE] = self._number
        self._wake_program()
        return self._number

    def is_idle_since(self, number: int) -> bool:
        """Return whether the program was idle after the question `number` was put."""
        return self._slots[_SEEN] >= number

    def wait(self, timeout_s: float) -> bool:
        """Wait for the program to tell that it is idle; return whether it did in time."""
        if not self._poll.poll(timeout_s * 1000):
            return False
        os.eventfd_read(self._idle)
        return True

    @property
    def next_timer(self) -> int:
        """When the program's next timer is due, in nanoseconds of Unix; the largest number if there is none."""
        return self._slots[_NEXT]

    @property
    def write_count(self) -> int:
        """How often the program wrote to the network or began to connect."""
        return self._slots[_WROTE]

    @property
    def connect_count(self) -> int:
        """How many connections to the run's server the program began."""
        return self._slots[_CONNECTS]

    @property
    def bytes_written(self) -> int:
        """How many bytes the program wrote to the run's server."""
        return self._slots[_BYTES_WRITTEN]

    @property
    def bytes_read(self) -> int:
        """How many bytes the program read from the run's server."""
        return self._slots[_BYTES_READ]

    def announce(self, port: int, total: int) -> None:
        """Announce that the server sends on the connection from `port`, on which `total` bytes will have been sent.

        The program does not look at its connections until these have arrived, so it cannot notice how the kernel
        divides them into segments.
        """
        self._announcements = (self._announcements + 1) % (1 << _NUMBER_BITS)
        value = (port << _NUMBER_BITS | self._announcements) << _TOTAL_BITS | total
        self._slots[_ARRIVING] = value - (1 << 64) if value >> 63 else value

    def connection_number(self, port: int) -> int:
        """Return which connection to the run, counted from 1, the program made from a local port; 0 if unknown.

        To be called when the program is idle.
        """
        opened = self._slots[_OPENED]
        for number in range(max(self._read_connections, opened - _MAX_PORTS), opened):
            self._connection_numbers[self._ports[number % _MAX_PORTS]] = number + 1
        self._read_connections = opened
        return self._connection_numbers.get(port, 0)

    @property
    def jump_count(self) -> int:
        """How often the program moved its own clock within a grant."""
        return self._slots[_JUMPS]

    @property
    def heap_bytes(self) -> int:
        """How much memory the program's objects took after it last collected its garbage when asked to."""
        return self._slots[_HEAP]

    @property
    def live_bytes(self) -> int:
        """How much memory its objects took, garbage included, when it was last idle."""
        return self._slots[_LIVE]

    @property
    def pid(self) -> int:
        """The process that uses the page; 0 as long as none does, and for ever if it was built without the overlay."""
        return self._slots[_PID]

    @property
    def is_collecting(self) -> bool:
        """Whether a collection was asked for and is not done yet."""
        return bool(self._slots[_FLAGS] & _COLLECT)

    @property
    def remedy(self) -> str:
        """What to ask of a program that has not taken its page."""
        return (
            "is it built for virtual time? `batkube schedulers build --module DIR` does that for any Go program, "
            "and `--time paced` goes without"
        )

    @property
    def counts_all(self) -> bool:
        """Whether nothing can reach the run's server that the program has not counted."""
        return True

    @property
    def reports_arrivals(self) -> bool:
        """Whether the program reports that it is idle only when everything announced has arrived."""
        return True

    @property
    def foreign_connections(self) -> int:
        """How many connections to others than the run were begun."""
        return self._slots[_ELSEWHERE]

    @property
    def foreign_bytes(self) -> int:
        """How many bytes the program read from connections to others than the run."""
        return self._slots[_FOREIGN]

    @property
    def unsupported_features(self) -> list[str]:
        """What the program did that knows of no virtual time."""
        return []

    def distrust_counters(self) -> None:
        """Take note that what the program counts is not all that it reads and writes."""

    def grant(self, limit_ns: int) -> None:
        """Let the program move its own clock from timer to timer before `limit_ns`, until it writes something."""
        if self.head_start is not None:
            self.head_start.wait()
        self._slots[_GRANTED_WROTE] = self.write_count
        self._slots[_LIMIT] = limit_ns

    def revoke(self) -> None:
        """End the grant."""
        self._slots[_LIMIT] = 0

    def request_collection(self) -> None:
        """Let the program collect its garbage before it is next idle."""
        self._slots[_FLAGS] = self._slots[_FLAGS] | _COLLECT

    def collect_when_busy(self, garbage_bytes: int) -> None:
        """Let the program collect even while it is busy, once it has left so much beside twice what is in use."""
        self._slots[_BUSY_GARBAGE] = garbage_bytes

    def close(self) -> None:
        """Give everything back; the program must have ended."""
        self._slots.release()
        self._ports.release()
        self._page.close()
        for descriptor in (self._file, self._wake, self._idle):
            os.close(descriptor)
