"""Open input files, plain or gzipped, with actionable errors; `-` is standard input.

A gzipped file is recognised by its first two bytes and not by its name, because traces are often renamed. A gzipped
file can unpack to a thousand times its size and exhaust the memory. Traces unpack to about twenty times their size, so
reading stops with an error when a file unpacks to much more.
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

#: The path that means standard input.
STANDARD_INPUT = Path("-")
_GZIP_MAGIC = b"\x1f\x8b"
_MIB = 1024 * 1024
#: The limit of unpacking: this multiple of the file's size plus an allowance, but at most the maximum.
_UNPACKED_RATIO, _UNPACKED_ALLOWANCE, _UNPACKED_MAX = 200, 64 * _MIB, 1024 * _MIB


class _LimitedGzipFile(gzip.GzipFile):
    """Unpacks a file, and raises InputError when it exceeds the limit."""

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
                remedy="if this is intended, unpack it and use the plain file",
            )
        return data


@contextmanager
def open_input(path: Path) -> Iterator[BinaryIO]:
    """Open `path` for reading, ungzipped. Errors while reading become InputError, too."""
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
        raise InputError(path, problem=f"is a damaged gzip file ({error})", remedy="download it again") from None
    except OSError as error:
        raise InputError(path, problem=f"cannot be read ({error.strerror or error})") from None


def _open_raw(path: Path) -> BinaryIO:
    return io.BytesIO(_standard_input()) if path == STANDARD_INPUT else path.open("rb")


@functools.cache
def _standard_input() -> bytes:
    """Read standard input once and keep it, because format detection and the reader both need it."""
    return sys.stdin.buffer.read()


def raw_bytes(path: Path) -> bytes:
    """Return the content of `path`, not decompressed."""
    with _open_raw(path) as raw:
        return raw.read()


def read_bytes(path: Path) -> bytes:
    """Return all of `path`, ungzipped."""
    with open_input(path) as stream:
        return stream.read()


@contextmanager
def open_lines(path: Path) -> Iterator[Iterator[str]]:
    """Open `path` to read it line by line, so that the text of a long trace is never in memory as a whole.

    This is a context manager and not a generator so that the file is closed at once when a reader raises an error.
    Bytes that are not UTF-8 become `\N{REPLACEMENT CHARACTER}`, because old traces have Latin-1 names in their headers.
    In a number, the reader rejects this character.
    """
    with open_input(path) as stream, io.TextIOWrapper(stream, encoding="utf-8", errors="replace") as text:
        yield text
