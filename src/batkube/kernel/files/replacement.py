"""Writing a file in the place of another: whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from batkube.kernel.errors import InputError


@contextlib.contextmanager
def replace_on_success(path: Path) -> Iterator[Path]:
    """Yield where to write what takes the place of the file at `path` when the block ends; if it raises, nothing does.

    A link at `path` is itself replaced, and what it leads to is left alone. Nobody can know the name that is written to
    beforehand, so in a folder of several people's nobody can have put a link there either. What is no plain file, such
    as a pipe or /dev/stdout, is written to as it is.
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
    """Write a file in the place of what is there. Raises InputError."""
    if not path.parent.is_dir():
        raise InputError(path, problem=f"the folder {path.parent} does not exist", remedy="create it first")
    if path.is_dir():
        raise InputError(path, problem="is a folder", remedy="name a file in it")
    try:
        with replace_on_success(path) as partial:
            partial.write_bytes(content)
    except OSError as error:
        raise InputError(path, problem=f"cannot be written: {error.strerror}") from error
