"""The output of a program, read through a pipe and copied to a file.

Results depend on what is read (failed scheduling attempts, the program's version), never on the file, which a full disk
or a file size limit may truncate. A program blocks while the pipe is full, so a thread reads it as soon as the log has
a listener. The thread is started after all programs, since a process with threads should not fork.

`drain` may also be called at any time. When the program is idle, one call reads all its output.
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

from batkube.kernel.error_causes import out_of_memory

#: The requested capacity of the pipe; an unprivileged user may get less (pipe(7)).
_CAPACITY = 1 << 20
_READ_SIZE = 1 << 16
#: How long the thread lets output accumulate, so that it does not wake for each line.
_BATCH_MS = 10
#: How much of the beginning and the end of the output is kept in memory.
_HEAD_SIZE, _TAIL_SIZE = 1 << 20, 1 << 18
_SHOWN_LINES = 15
#: klog lists every flag as `I0101 00:00:00.000000       1 flags.go:64] FLAG: --v="2"`, which hides relevant lines.
_FLAG_LINE = re.compile(r"\bflags\.go:\d+\] FLAG: ")

Listener = Callable[[bytes], None]
"""Called with each piece of output, in order, in the thread that reads it."""


class ProgramLog:
    """The output of one program."""

    def __init__(self, path: Path) -> None:
        #: The file to which the output is copied.
        self.path = path
        #: Why the file is incomplete, or "".
        self.copy_error = ""
        #: The beginning of the output, up to a limit.
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
        """The descriptor to which the program prints."""
        return self._sink

    def close_sink(self) -> None:
        """Close our descriptor of the sink, once the program has inherited it."""
        os.close(self._sink)
        self._sink = -1

    def follow(self, listener: Listener) -> None:
        """Call `listener` with all output from now on, and read it in a thread."""
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
        """Read the content of the pipe; return the number of bytes read since the start.

        If two calls return the same number, the pipe was empty throughout: nothing was printed, and no process was
        blocked by a full pipe.
        """
        with self._lock:
            limit = self._received + self._capacity  # a program that prints without end must not block us
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
        """Append to the file, up to the first error: a file with a gap would be misleading."""
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
        """Return the last lines of the output so far, without klog's list of flags."""
        self.drain()
        return last_lines(self._tail.decode("utf-8", "replace"))

    def close(self) -> None:
        """Read the rest of the output and release everything, even if another process keeps the pipe open."""
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
    """Return the last lines of a log, without those in which klog lists all flags, or the reason if memory ran out."""
    if reason := out_of_memory(log):
        return [reason]
    return [line for line in log.splitlines() if not _FLAG_LINE.search(line)][-_SHOWN_LINES:]
