"""Replace standard output and error by streams whose writes never fail.

They can be closed, full, or a pipe whose reader has exited (`| head -1`). No result may be lost: text that
cannot be written is dropped, the command continues, and its exit code reports the failure. Control
characters are escaped (`text.terminal`).
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from batkube.text.terminal import EscapingStream


class TolerantFile(io.FileIO):
    """A file whose writes never fail; the first error is stored."""

    failure: OSError | None = None

    def write(self, data: Any, /) -> int:  # noqa: ANN401 - any buffer, which has no type before Python 3.12
        """Write `data`, or drop it after a failure."""
        try:
            while self.failure is None:
                written = super().write(data)
                if written is not None:
                    return written
                # The descriptor is non-blocking (another process can set this), and its reader is slow.
                select.select([], [self], [])
        except OSError as error:
            self.failure = error
        return len(data)


@contextlib.contextmanager
def tolerant_streams() -> Iterator[TolerantFile]:
    """Replace standard output and error, and yield the file of standard output.

    Streams that are already replaced, as in tests, are left alone.
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
    """Open /dev/null for closed standard streams; otherwise the next opened file would get their descriptor."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)


def _text_stream(file: TolerantFile, stream: TextIO | None) -> TextIO:
    """Return a text stream with the settings of Python's own stream, if that exists."""
    original = stream if isinstance(stream, io.TextIOWrapper) else None
    return EscapingStream(
        io.BufferedWriter(file),
        encoding="utf-8" if original is None else original.encoding,
        errors="replace",  # an ASCII terminal shows question marks, instead of an encoding error
        line_buffering=original is None or original.line_buffering,
        write_through=original is not None and original.write_through,
    )
