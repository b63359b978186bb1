"""Opening input files, plain or gzipped, with errors a person can act on; `-` is standard input.

Whether a file is gzipped is told by its first two bytes and not by its name: traces are often renamed. A gzipped file
may unpack to a thousand times its size, and to more than there is memory; traces come to some twenty times, so what
unpacks to far more is refused on the way.
"""

from __future__ import annotations

import functools
import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from batkube.kernel.errors import InputError

#: What stands for standard input in the place of a file.
STANDARD_INPUT = Path("-")
_GZIP_MAGIC = b"\x1f\x8b"
_MIB = 1024 * 1024
#: How far a gzipped file may unpack: so many times its size and a little more, but no further than all.
_UNPACKED_RATIO, _UNPACKED_ALLOWANCE, _UNPACKED_MAX = 200, 64 * _MIB, 1024 * _MIB


class _LimitedGzipFile(gzip.GzipFile):
    """Unpacks a file as far as it may."""

    def __init__(self, path: Path, raw: BinaryIO) -> None:
        size = raw.seek(0, io.SEEK_END)
        raw.seek(0)
        super().__init__(fileobj=raw, mode="rb")
        self._path = path
        self._limit = min(_UNPACKED_ALLOWANCE + _UNPACKED_RATIO * size, _UNPACKED_MAX)

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(_MIB), b""))
        return self._check_size(super().read(size))

    def read1(self, size: int = -1) -> bytes:
        return self._check_size(super().read1(size))

    def _check_size(self, data: bytes) -> bytes:
        if self.tell() > self._limit:
            raise InputError(
                self._path,
                problem=f"unpacks to more than {self._limit // _MIB} MiB",
                remedy="if it is no mistake, unpack it and name the plain file",
            )
        return data


@contextmanager
def open_input(path: Path) -> Iterator[BinaryIO]:
    """Open `path` for reading, ungzipped; what goes wrong on the way is an InputError."""
    if path.is_dir():
        raise InputError(path, problem="is a directory", remedy="name a file in it")
    try:
        with _open_raw(path) as raw:
            start = raw.read(2)
            if not start:
                raise InputError(path, problem="is empty")
            raw.seek(0)
            if start == _GZIP_MAGIC:
                with _LimitedGzipFile(path, raw) as stream:
                    yield cast(BinaryIO, stream)
            else:
                yield raw
    except FileNotFoundError:
        raise InputError(path, problem="no such file", remedy="check the path") from None
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise InputError(path, problem=f"is a damaged gzip file ({error})", remedy="fetch it again") from None
    except OSError as error:
        raise InputError(path, problem=f"cannot be read ({error.strerror or error})") from None


def _open_raw(path: Path) -> BinaryIO:
    return io.BytesIO(_standard_input()) if path == STANDARD_INPUT else path.open("rb")


@functools.cache
def _standard_input() -> bytes:
    """Return all of it, kept, since it comes only once and readers may look twice."""
    return sys.stdin.buffer.read()


def read_bytes(path: Path) -> bytes:
    """Return all of `path`, ungzipped."""
    with open_input(path) as stream:
        return stream.read()


@contextmanager
def open_lines(path: Path) -> Iterator[Iterator[str]]:
    """Open `path` to read it line by line, so that a long trace is never held as text.

    A context and not a plain generator: a reader that stops at a mistake closes the file there and then.
    Bytes that are not UTF-8 become `\N{REPLACEMENT CHARACTER}`: old traces have Latin-1 names in their headers, and in
    a number the character is refused where it stands.
    """
    with open_input(path) as stream, io.TextIOWrapper(stream, encoding="utf-8", errors="replace") as text:
        yield text
