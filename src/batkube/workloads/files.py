"""Opening input files, plain or gzipped, with errors a person can act on.

Whether a file is gzipped is told by its first two bytes and not by its name: traces are often renamed.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from batkube.kernel.errors import InputError

_GZIP_MAGIC = b"\x1f\x8b"


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open `path` for reading, ungzipped; what goes wrong on the way is an InputError."""
    if path.is_dir():
        raise InputError(path, problem="is a directory", remedy="name a file in it")
    try:
        with path.open("rb") as raw:
            start = raw.read(2)
            if not start:
                raise InputError(path, problem="is empty")
            raw.seek(0)
            if start == _GZIP_MAGIC:
                with gzip.open(raw, "rb") as stream:
                    yield cast(BinaryIO, stream)
            else:
                yield raw
    except FileNotFoundError:
        raise InputError(path, problem="no such file", remedy="check the path") from None
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise InputError(path, problem=f"is a damaged gzip file ({error})", remedy="fetch it again") from None
    except OSError as error:
        raise InputError(path, problem=f"cannot be read ({error.strerror or error})") from None


def read_bytes(path: Path) -> bytes:
    """Return all of `path`, ungzipped."""
    with opened(path) as stream:
        return stream.read()


@contextmanager
def lines(path: Path) -> Iterator[Iterator[str]]:
    """Open `path` to read it line by line, so that a long trace is never held as text.

    A context and not a plain generator: a reader that stops at a mistake closes the file there and then.
    Bytes that are not UTF-8 become `\N{REPLACEMENT CHARACTER}`: old traces have Latin-1 names in their headers, and in
    a number the character is refused where it stands.
    """
    with opened(path) as stream, io.TextIOWrapper(stream, encoding="utf-8", errors="replace") as text:
        yield text
