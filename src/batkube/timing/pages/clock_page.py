"""The clock page: memory that a program under virtual time shares with the coordinator, with two eventfds.

The program's Go runtime reads its clock from the page and writes on it when it is idle (see `go/`). One eventfd wakes
the program, the other reports that it has become idle. Each slot has eight bytes and one writer, except for `now`,
which the program also moves within a grant.
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
#: The page has the slots, including the table of waits (`session_page`), then two bytes for each of the latest
#: connections to the run's server: its local port. It is small, since the limit on file sizes (`ulimit -f`) applies.
_PORTS_OFFSET, _MAX_PORTS = 65536, 1 << 14
SIZE = _PORTS_OFFSET + 2 * _MAX_PORTS

_NOW, _PROBE, _LIMIT, _FLAGS, _SEED, _BUSY_GARBAGE = 1, 2, 3, 4, 5, 6
_SEEN, _NEXT, _WROTE, _JUMPS, _HEAP, _GRANTED_WROTE = 8, 9, 11, 12, 13, 14  # 10: how often it was idle, for debugging
_CONNECTS, _BYTES_WRITTEN, _BYTES_READ, _LIVE, _PID = 15, 16, 17, 18, 19
_ELSEWHERE, _PORT, _FOREIGN, _ARRIVING, _OPENED = 23, 24, 29, 30, 31
#: `arriving` consists of the program's port, a number that distinguishes equal announcements, and the bytes ever sent.
_TOTAL_BITS, _NUMBER_BITS = 40, 8

_DETERMINISTIC, _COLLECT = 1, 2

NEVER = 2**63 - 1
"""The time of a timer that is not set."""


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
            problem=f"allows no file of {SIZE // 1024} KiB, which the clock of a real scheduler needs",
            remedy="raise the limit of this shell: ulimit -f unlimited",
        ) from error
    return file


class ClockPage:
    """The clock page of one program."""

    def __init__(self, now_ns: int, *, deterministic: bool, seed: int, port: int = 0, magic: int = _MAGIC) -> None:
        """`port` is where the run's API server listens for the program."""
        self._file = _new_file()
        os.fchmod(self._file, 0o600)
        # If the program could shrink the file, our next access would end in SIGBUS.
        fcntl.fcntl(self._file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        self._page = mmap.mmap(self._file, SIZE)
        # A view of eight-byte numbers reads and writes each of them atomically, which `struct` does not guarantee.
        self._slots = memoryview(self._page)[:_PORTS_OFFSET].cast("q")
        self._ports = memoryview(self._page)[_PORTS_OFFSET:].cast("H")
        #: The number of the latest connection from each local port, as far as read from the page.
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
        #: For tests of repeatability: wakes the program whenever its clock is moved, and lets it run for a moment.
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
        """Set the process that was started with the page; a Go program writes its process id itself."""

    @property
    def now(self) -> int:
        """The program's time, in Unix nanoseconds."""
        return self._slots[_NOW]

    @now.setter
    def now(self, value: int) -> None:
        self._slots[_NOW] = value
        if self.head_start is not None:
            self._wake_program()

    def _wake_program(self) -> bool:
        """Wake the program, so that it reads its clock; return whether there was anything to wake."""
        os.eventfd_write(self._wake, 1)
        return True

    def probe(self) -> int:
        """Ask the program to report when it is idle; return the number of the probe."""
        self._number += 1
        self._slots[_PROBE] = self._number
        self._wake_program()
        return self._number

    def is_idle_since(self, number: int) -> bool:
        """Return whether the program was idle after probe `number`."""
        return self._slots[_SEEN] >= number

    def wait(self, timeout_s: float) -> bool:
        """Wait for the program's idle report; return whether it came in time."""
        if not self._poll.poll(timeout_s * 1000):
            return False
        os.eventfd_read(self._idle)
        return True

    @property
    def next_timer(self) -> int:
        """When the program's next timer is due, in Unix nanoseconds; the largest number if there is none."""
        return self._slots[_NEXT]

    @property
    def write_count(self) -> int:
        """How often the program wrote to the network or opened a connection."""
        return self._slots[_WROTE]

    @property
    def connect_count(self) -> int:
        """How many connections to the run's server the program opened."""
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
        """Announce a write on the connection from `port`, after which `total` bytes will have been sent on it.

        The program does not poll its connections until all these bytes have arrived. So it cannot observe how the
        kernel divides them into segments.
        """
        self._announcements = (self._announcements + 1) % (1 << _NUMBER_BITS)
        value = (port << _NUMBER_BITS | self._announcements) << _TOTAL_BITS | total
        self._slots[_ARRIVING] = value - (1 << 64) if value >> 63 else value

    def connection_number(self, port: int) -> int:
        """Return the number, from 1, of the program's connection to the run from a local port; 0 if unknown.

        Call it only while the program is idle.
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
        """The size of the program's objects after its last requested garbage collection."""
        return self._slots[_HEAP]

    @property
    def live_bytes(self) -> int:
        """The size of the program's objects, including garbage, when it was last idle."""
        return self._slots[_LIVE]

    @property
    def pid(self) -> int:
        """The process that uses the page; 0 while none does, as with a program built without the overlay."""
        return self._slots[_PID]

    @property
    def is_collecting(self) -> bool:
        """Whether a requested collection is not done yet."""
        return bool(self._slots[_FLAGS] & _COLLECT)

    @property
    def remedy(self) -> str:
        """The remedy in the error about a program that has not opened its page."""
        return (
            "build it for virtual time with `batkube schedulers build --module DIR`, "
            "or run it on real time with `--time paced`"
        )

    @property
    def counts_all(self) -> bool:
        """Whether the program counts all bytes that it exchanges with the run's server."""
        return True

    @property
    def reports_arrivals(self) -> bool:
        """Whether the program reports idle only after everything announced has arrived."""
        return True

    @property
    def foreign_connections(self) -> int:
        """How many connections to other servers the program opened."""
        return self._slots[_ELSEWHERE]

    @property
    def foreign_bytes(self) -> int:
        """How many bytes the program read from connections to other servers."""
        return self._slots[_FOREIGN]

    @property
    def unsupported_features(self) -> list[str]:
        """The features used by the program that do not support virtual time."""
        return []

    def distrust_counters(self) -> None:
        """Stop using the counters: the program does not count all bytes that it reads and writes."""

    def grant(self, limit_ns: int) -> None:
        """Allow the program to move its own clock from timer to timer before `limit_ns`, until it writes something."""
        if self.head_start is not None:
            self.head_start.wait()
        self._slots[_GRANTED_WROTE] = self.write_count
        self._slots[_LIMIT] = limit_ns

    def revoke(self) -> None:
        """End the grant."""
        self._slots[_LIMIT] = 0

    def request_collection(self) -> None:
        """Make the program collect its garbage before it is next idle."""
        self._slots[_FLAGS] = self._slots[_FLAGS] | _COLLECT

    def collect_when_busy(self, garbage_bytes: int) -> None:
        """Allow collections while the program is busy, once its garbage exceeds the size in use by `garbage_bytes`."""
        self._slots[_BUSY_GARBAGE] = garbage_bytes

    def close(self) -> None:
        """Release the page and its descriptors; the program must have ended."""
        self._slots.release()
        self._ports.release()
        self._page.close()
        for descriptor in (self._file, self._wake, self._idle):
            os.close(descriptor)
