"""The list of files that a run wrote, compared with the current content of its folder.

Symbolic links are never followed: a link counts as a file, and its target is never touched. Files to remove are found
by walking the folder, so a listed name cannot point outside it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any


@dataclass(frozen=True, slots=True)
class FileList:
    """The files of one run."""

    #: Size and hash by path in the folder, such as `scheduler/log.txt`; None if only the name is recorded.
    files: Mapping[str, Mapping[str, Any] | None]

    @classmethod
    def of(cls, folder: Path, living: Collection[str] = ()) -> FileList:
        """Return the list of all files in `folder`; of the `living` ones, which may still change, only the names."""
        places = [place for place in _walk(folder) if not place.endswith("/")]
        return cls({place: None if place in living else _digest_of_plain_file(folder / place) for place in places})

    def unlisted(self, folder: Path) -> list[str]:
        """Return the paths in `folder` that the run did not write; a folder ends in a slash and covers its content."""
        own = {*self.files, *(f"{parent}/" for place in self.files for parent in PurePosixPath(place).parents)}
        places: list[str] = []
        for place in _walk(folder):
            if place not in own and not (places and places[-1].endswith("/") and place.startswith(places[-1])):
                places.append(place)
        return places

    def modified(self, folder: Path) -> list[str]:
        """Return the listed files that exist and differ from what the run wrote."""
        return [place for place in self.damaged(folder) if os.path.lexists(folder / place)]

    def damaged(self, folder: Path) -> list[str]:
        """Return the listed files that are missing, or differ from what the run wrote."""
        stamps = {place: stamp for place, stamp in self.files.items() if stamp is not None}
        return [place for place, stamp in stamps.items() if _digest_of_plain_file(folder / place) != stamp]

    def remove(self, folder: Path) -> None:
        """Remove the run's files from `folder`, then empty folders, including itself; anything else stays."""
        for place, folders, names, descriptor in os.fwalk(folder, topdown=False):
            below = PurePosixPath(os.path.relpath(place, folder))
            for name in (*names, *folders):
                with contextlib.suppress(OSError):
                    if (below / name).as_posix() in self.files:
                        os.unlink(name, dir_fd=descriptor)
                    else:
                        os.rmdir(name, dir_fd=descriptor)
        with contextlib.suppress(OSError):
            folder.rmdir()


def file_digest(path: Path) -> dict[str, Any]:
    """Return a file's size and SHA-256."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return {"bytes": file.tell(), "sha256": digest}


def _digest_of_plain_file(path: Path) -> dict[str, Any] | None:
    """Return size and hash of a regular file; None for a link or a pipe, or if it is missing or unreadable."""
    try:
        return file_digest(path) if stat.S_ISREG(path.lstat().st_mode) else None
    except OSError:
        return None


def _walk(folder: Path, below: str = "") -> Iterator[str]:
    """Yield the relative path of everything in `folder`; folders end in a slash, and precede their content."""
    with os.scandir(folder) as scan:
        entries = sorted(scan, key=lambda entry: entry.name)
    for entry in entries:
        place = f"{below}{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield f"{place}/"
            yield from _walk(Path(entry.path), f"{place}/")
        else:
            yield place
