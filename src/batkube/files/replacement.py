"""Atomic replacement of files."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from batkube.kernel.errors import InputError


@contextlib.contextmanager
def replace_on_success(path: Path) -> Iterator[Path]:
    """Yield a temporary path whose file replaces `path` when the block ends; if the block raises, discard it.

    A symbolic link at `path` is replaced, its target left alone. The temporary name is random, so in a shared folder no
    other user can have placed a link there. If `path` exists and is not a regular file (a pipe, /dev/stdout), it is
    yielded itself and written directly.
    """
    if (path.exists() and not path.is_file()) or path.absolute().parent == Path("/dev"):
        yield path
        return
    partial = path.with_name(f".{path.name}.partial-{secrets.token_hex(4)}")
    try:
        os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file atomically. Raises InputError."""
    with open_atomically(path) as file:
        file.write(content)


@contextlib.contextmanager
def open_atomically(path: Path) -> Iterator[BinaryIO]:
    """Yield a file that replaces `path` when the block ends, unless it raises. Raises InputError."""
    if not path.parent.is_dir():
        raise InputError(path, problem=f"the folder {path.parent} does not exist", remedy="create it first")
    if path.is_dir():
        raise InputError(path, problem="is a folder", remedy="name a file in it")
    try:
        with replace_on_success(path) as partial, partial.open("wb") as file:
            yield file
    except OSError as error:
        raise InputError(path, problem=f"cannot be written: {error.strerror}") from error
