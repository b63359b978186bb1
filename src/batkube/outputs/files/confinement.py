"""Paths that a run folder records: the folder may come from a stranger, and its manifest can name any path."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath


def is_relative(place: object) -> bool:
    """Return whether a recorded path is relative, in its shortest form, and does not contain `..`."""
    return (
        isinstance(place, str)
        and place == PurePosixPath(place).as_posix()
        and not place.startswith("/")
        and not {".", ".."} & set(place.split("/"))
        and "\0" not in place
    )


def is_confined(folder: Path, place: str) -> bool:
    """Return whether `place` stays in `folder`, with every link resolved."""
    root = os.path.realpath(folder)
    return is_relative(place) and os.path.realpath(folder / place).startswith(f"{root.rstrip('/')}/")
