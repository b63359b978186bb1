"""Errors of temporary files, with a remedy for the user."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator

from batkube.kernel.errors import InputError


@contextlib.contextmanager
def temporary_file_errors() -> Iterator[None]:
    """Turn an OSError of the block, which must only create and write temporary files, into an InputError."""
    try:
        yield
    except OSError as error:
        folder = tempfile.tempdir or "$TMPDIR"
        problem = f"temporary files cannot be written: {error.strerror or error}"
        raise InputError(folder, problem=problem, remedy="free some space, or set TMPDIR to another folder") from error
