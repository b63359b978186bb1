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

from batkube.outputs.files.confinement import is_confined


@dataclass(frozen=True, slots=True)
class FileList:
    """The files of one run."""

    #: Size and hash by path in the folder, such as `scheduler/log.txt`; None if only the name is recorded.
    files: Mapping[str, Mapping[str, Any] | None]

    @classmethod
    def of(cls, folder: Path, mutable_files: Collection[str] = ()) -> FileList:
        """Return the list of all files in `folder`; those of `mutable_files` have no size and hash."""
        paths = [path for path in _walk(folder) if not path.endswith("/")]
        return cls({path: None if path in mutable_files else _digest_of_plain_file(folder / path) for path in paths})

    def unlisted(self, folder: Path) -> list[str]:
        """Return the paths in `folder` that the run did not write; a folder ends in a slash and covers its content."""
        own = {*self.files, *(f"{parent}/" for path in self.files for parent in PurePosixPath(path).parents)}
        paths: list[str] = []
        for path in _walk(folder):
            if path not in own and not (paths and paths[-1].endswith("/") and path.startswith(paths[-1])):
                paths.append(path)
        return paths

    def modified(self, folder: Path) -> list[str]:
        """Return the listed files that exist and differ from what the run wrote."""
        return [path for path in self.damaged(folder) if os.path.lexists(folder / path)]

    def damaged(self, folder: Path) -> list[str]:
        """Return the listed files that are missing, or differ from what the run wrote."""
        digests = {path: digest for path, digest in self.files.items() if digest is not None}
        return [
            path
            for path, digest in digests.items()
            if not is_confined(folder, path) or _digest_of_plain_file(folder / path) != digest
        ]

    def remove(self, folder: Path) -> None:
        """Remove the run's files from `folder`, then empty folders, including itself; anything else stays."""
        for parent, folders, names, descriptor in os.fwalk(folder, topdown=False):
            below = PurePosixPath(os.path.relpath(parent, folder))
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
        path = f"{below}{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield f"{path}/"
            yield from _walk(Path(entry.path), f"{path}/")
        else:
            yield path
