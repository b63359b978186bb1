"""Standard output and error, which may be closed, full, or read by a program that has seen enough (`| head -1`).

None of that may cost a result: what can no longer be written is dropped, the command goes on, and how it ends says so.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import sys
from collections.abc import Iterator
from typing import Any, TextIO


class TolerantFile(io.FileIO):
    """A file descriptor to which writing never fails; what was the matter is kept."""

    failure: OSError | None = None

    def write(self, data: Any, /) -> int:  # noqa: ANN401 - any buffer, which has no type before Python 3.12
        """Write `data`, or forget it once something has gone wrong."""
        try:
            while self.failure is None:
                written = super().write(data)
                if written is not None:
                    return written
                # Somebody has made it non-blocking, and its reader is slow.
                select.select([], [self], [])
        except OSError as error:
            self.failure = error
        return len(data)


@contextlib.contextmanager
def tolerant_streams() -> Iterator[TolerantFile]:
    """Put outlets in the place of standard output and error, and yield that of the output.

    Where they have been replaced already, as in tests, they stay as they are.
    """
    _open_missing_descriptors()
    before = sys.stdout, sys.stderr
    output, error = TolerantFile(1, "w", closefd=False), TolerantFile(2, "w", closefd=False)
    try:
        if sys.stdout is sys.__stdout__:
            sys.stdout = _text_stream(output, sys.stdout)
        if sys.stderr is sys.__stderr__:
            sys.stderr = _text_stream(error, sys.stderr)
        yield output
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        sys.stdout, sys.stderr = before


def _open_missing_descriptors() -> None:
    """Open nothing where a standard stream is closed, or the next file that is opened would be taken for it."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)


def _text_stream(outlet: TolerantFile, stream: TextIO | None) -> TextIO:
    """Return the text stream of an outlet, like the one that Python made (none, if it was closed)."""
    made = stream if isinstance(stream, io.TextIOWrapper) else None
    return io.TextIOWrapper(
        io.BufferedWriter(outlet),
        encoding="utf-8" if made is None else made.encoding,
        errors="replace",  # a terminal that knows only ASCII gets question marks, not a crash
        line_buffering=made is None or made.line_buffering,
        write_through=made is not None and made.write_through,
    )
