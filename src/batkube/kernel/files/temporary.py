"""Temporary files: where there is no room for them, the user is told what to do."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator

from batkube.kernel.errors import InputError


@contextlib.contextmanager
def temporary_file_errors() -> Iterator[None]:
    """Make and write temporary files inside; an OSError then means that they cannot be, and becomes an InputError."""
    try:
        yield
    except OSError as error:
        place = tempfile.tempdir or "$TMPDIR"
        problem = f"there is no room for temporary files: {error.strerror or error}"
        raise InputError(place, problem=problem, remedy="make room, or set TMPDIR to a folder with some") from error
