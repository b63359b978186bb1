"""What a program prints: read in full through a pipe, and copied to a file.

Results depend on what is read (failed attempts, the program's version), never on the copy, which a full disk or a limit
on file sizes may cut. A program blocks while the pipe is full, so a thread reads it once somebody follows the log; the
thread is started after all programs, since a process with threads should not fork.

`drain` may be called at any time as well. When a program is idle, one call returns all that it has printed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import threading
from collections.abc import Callable
from pathlib import Path

#: The capacity that is asked of the kernel for the pipe; an unprivileged user may get less (pipe(7)).
_CAPACITY = 1 << 20
_READ_SIZE = 1 << 16
#: How long the thread lets output gather, so that a program that prints line by line does not wake it for each.
_BATCH_MS = 10
#: How much of the beginning and of the end is kept in memory.
_HEAD_SIZE, _TAIL_SIZE = 1 << 20, 1 << 18
_SHOWN_LINES = 15
#: klog: `I0101 00:00:00.000000       1 flags.go:64] FLAG: --v="2"`, dozens of which hide what matters.
_FLAG_LINE = re.compile(r"\bflags\.go:\d+\] FLAG: ")

Listener = Callable[[bytes], None]
"""Called with each piece of output, in order, by whichever thread reads it."""


class ProgramLog:
    """The output of one program."""

    def __init__(self, path: Path) -> None:
        #: The copy.
        self.path = path
        #: Why the copy is incomplete; empty as long as it is not.
        self.copy_error = ""
        #: The first output, up to a limit.
        self.head = bytearray()
        self._copy = path.open("wb", buffering=0)
        self._source, self._sink = os.pipe()
        os.set_blocking(self._source, False)
        with contextlib.suppress(PermissionError):
            fcntl.fcntl(self._source, fcntl.F_SETPIPE_SZ, _CAPACITY)
        self._capacity = fcntl.fcntl(self._source, fcntl.F_GETPIPE_SZ)
        self._wake = os.eventfd(0)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._listeners: list[Listener] = []
        self._received = 0
        self._tail = bytearray()
        self._is_closed = False

    @property
    def sink(self) -> int:
        """The descriptor that the program prints to."""
        return self._sink

    def close_sink(self) -> None:
        """Leave the sink to the program."""
        os.close(self._sink)
        self._sink = -1

    def follow(self, listener: Listener) -> None:
        """Call `listener` with everything that is read from now on, and keep reading in a thread."""
        with self._lock:
            self._listeners.append(listener)
        if self._thread is None:
            self._thread = threading.Thread(target=self._read_loop, name=f"log of {self.path}", daemon=True)
            self._thread.start()

    def unfollow(self, listener: Listener) -> None:
        """Stop calling `listener`."""
        with self._lock:
            self._listeners.remove(listener)

    def drain(self) -> int:
        """Read what the pipe holds; return how many bytes were read since the start.

        If two calls return the same number, the pipe was empty all the time between them: nothing was printed, and no
        process was waiting for room in it.
        """
        with self._lock:
            limit = self._received + self._capacity  # or a program that prints without end would keep us here
            while not self._is_closed and self._received < limit:
                try:
                    piece = os.read(self._source, _READ_SIZE)
                except BlockingIOError:
                    break
                self._is_closed = not piece
                self._handle_output(piece)
            return self._received

    def _handle_output(self, piece: bytes) -> None:
        self._received += len(piece)
        self.head += piece[: max(0, _HEAD_SIZE - len(self.head))]
        self._tail += piece
        if len(self._tail) > 2 * _TAIL_SIZE:
            del self._tail[:-_TAIL_SIZE]
        self._write(piece)
        for listener in self._listeners:
            listener(piece)

    def _write(self, piece: bytes) -> None:
        """Append to the copy, up to the first error: a copy with a gap would be misread."""
        rest = memoryview(piece)
        try:
            while rest and not self.copy_error:
                rest = rest[self._copy.write(rest) :]
        except OSError as error:  # a full disk, or a file size limit: Python ignores the signal SIGXFSZ
            self.copy_error = error.strerror or str(error)

    def _read_loop(self) -> None:
        printed, closed = select.poll(), select.poll()
        for poll in (printed, closed):
            poll.register(self._wake, select.POLLIN)
        printed.register(self._source, select.POLLIN)
        while not self._is_closed:
            printed.poll()
            if closed.poll(_BATCH_MS):
                return
            self.drain()

    def last_lines(self) -> list[str]:
        """Return the last informative lines of everything that was printed so far."""
        self.drain()
        return last_lines(self._tail.decode("utf-8", "replace"))

    def close(self) -> None:
        """Read what is left and release everything. A process that outlives the program may keep the pipe open."""
        if self._copy.closed:
            return
        if self._thread is not None:
            os.eventfd_write(self._wake, 1)
            self._thread.join()
        self.drain()
        self._is_closed = True
        self._copy.close()
        for descriptor in (self._source, self._sink, self._wake):
            if descriptor >= 0:
                os.close(descriptor)


def last_lines(log: str) -> list[str]:
    """Return the last lines of a log that tell something: not those in which klog lists all flags."""
    return [line for line in log.splitlines() if not _FLAG_LINE.search(line)][-_SHOWN_LINES:]
