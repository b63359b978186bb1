"""Hidden folder beside the destination, into which a run writes until it is complete.

    .NAME.partial-XXXXXXXX/
        files.txt   a first line that identifies the file, then the name of each file or folder that is written
        new/        the new output
        old/        the output that new/ replaces, between two renames

The writing process locks files.txt with flock(2), and the kernel releases the lock when that process ends. A folder
of a killed process can therefore be distinguished from one in use. The next command that writes beside it removes the
listed files, and moves an output that was about to be replaced back into place.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from batkube.files.locks import try_lock
from batkube.outputs.files.manifest import file_list_in, read_manifest

_NAME = re.compile(r"\.(?P<name>.+)\.partial-[a-z0-9_]{8}")
_LIST_FILE = "files.txt"
_FIRST_LINE = b"batkube: the next run beside this folder removes these files if this run has ended\n"


class PartialFolder:
    """The hidden folder of one destination, and the lock on its list of files."""

    def __init__(self, folder: Path, list_file: BinaryIO) -> None:
        self._folder = folder
        self._list = list_file
        self.new = folder / "new"
        self.old = folder / "old"

    @classmethod
    def create_beside(cls, target: Path) -> PartialFolder:
        """Create a hidden folder beside `target`."""
        folder = Path(tempfile.mkdtemp(prefix=f".{target.name}.partial-", dir=target.parent))
        try:
            # The list gets its name once it is locked, so that no other process considers the folder abandoned.
            names = (folder / f"{_LIST_FILE}.new").open("xb+", buffering=0)
            _lock(names)
            names.write(_FIRST_LINE)
            (folder / f"{_LIST_FILE}.new").rename(folder / _LIST_FILE)
            partial = cls(folder, names)
            # Only the owner can access the folder of mkdtemp; the output has the usual permissions.
            partial.new.mkdir()
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return partial

    @classmethod
    def open_abandoned(cls, folder: Path) -> PartialFolder | None:
        """Return a hidden folder whose process has ended; None if the lock is held, or the list is not from Batkube."""
        with contextlib.ExitStack() as undo:
            names = undo.enter_context((folder / _LIST_FILE).open("rb+", buffering=0))
            if names.readline() != _FIRST_LINE or not _lock(names):
                return None
            undo.pop_all()
        return cls(folder, names)

    def file(self, name: str) -> Path:
        """Add `name` to the list, and return the path at which to write this file or folder."""
        self._list.write(f"{name}\n".encode())
        return self.new / name

    def move_into_place(self, target: Path) -> None:
        """Move the new output to `target`, and a previous one to `old`."""
        if target.is_dir():
            target.rename(self.old)
        self.new.rename(target)

    def clean_up(self, target: Path) -> None:
        """Restore a previous output that was not replaced, and remove the listed files; any others stay."""
        with contextlib.suppress(OSError), self._list:
            self._restore_or_remove_old(target)
            self._remove_new()
            # A folder that is not empty contains files of other programs: rmdir fails, and it stays.
            for folder in (self.new, self.old):
                if folder.is_dir():
                    folder.rmdir()
            (self._folder / _LIST_FILE).unlink()
            self._folder.rmdir()

    def _restore_or_remove_old(self, target: Path) -> None:
        if not os.path.lexists(self.old):
            return
        if not os.path.lexists(target):
            self.old.rename(target)
        elif (listing := file_list_in(read_manifest(self.old))) is not None:
            listing.remove(self.old)

    def _remove_new(self) -> None:
        if not self.new.is_dir() or self.new.is_symlink():
            return
        self._list.seek(0)
        names = self._list.read().decode().splitlines()[1:]
        for path in [path for path in self.new.iterdir() if path.name in names]:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


def remove_abandoned(folder: Path) -> None:
    """Remove from `folder` the partial outputs of processes that have ended."""
    for path, target in _candidates(folder):
        with contextlib.suppress(OSError):
            if path.lstat().st_uid == os.geteuid() and (partial := PartialFolder.open_abandoned(path)) is not None:
                partial.clean_up(target)


def _candidates(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yield each hidden folder with such a name, and its destination."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if (match := _NAME.fullmatch(entry.name)) and entry.is_dir(follow_symlinks=False):
                yield Path(entry.path), folder / match["name"]


def _lock(file: BinaryIO) -> bool:
    """Lock a file until it is closed, also by SIGKILL; return whether the lock was acquired."""
    try:
        return try_lock(file)
    except OSError:
        return False
