"""Where a run writes until it is over: a hidden folder beside its destination.

    .NAME.partial-XXXXXXXX/
        files.txt   a first line that says what this is, then the name of each file or folder that is written
        new/        what is written
        old/        what new/ takes the place of, for the moment between two renamings

The list is locked by the process that writes, and a lock dies with its holder. So what a killed process left can be
told from what another is at: it is swept by the next command that writes beside it, as far as the list goes. What was
about to be replaced goes back where it was.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from batkube.outputs.files.manifest import file_list_in, read_manifest

_NAME = re.compile(r"\.(?P<name>.+)\.partial-[a-z0-9_]{8}")
_LIST_FILE = "files.txt"
_FIRST_LINE = b"batkube: what is written here is removed by the next run beside it, once this one is gone\n"


class PartialFolder:
    """The hidden folder of one destination, and the lock on it."""

    def __init__(self, folder: Path, names: BinaryIO) -> None:
        self._folder = folder
        self._names = names
        self.new = folder / "new"
        self.old = folder / "old"

    @classmethod
    def create_beside(cls, target: Path) -> PartialFolder:
        """Return a new one for `target`."""
        folder = Path(tempfile.mkdtemp(prefix=f".{target.name}.partial-", dir=target.parent))
        try:
            # The list is given its name when it is locked already, so that nobody can take it for one that was left.
            names = (folder / f"{_LIST_FILE}.new").open("xb+", buffering=0)
            _lock(names)
            names.write(_FIRST_LINE)
            (folder / f"{_LIST_FILE}.new").rename(folder / _LIST_FILE)
            partial = cls(folder, names)
            # A folder inside, since the one that mkdtemp makes is closed to everybody else and the output must not be.
            partial.new.mkdir()
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return partial

    @classmethod
    def open_abandoned(cls, folder: Path) -> PartialFolder | None:
        """Return the one in `folder` if whoever made it is gone; None if that is not known, or it is not of ours."""
        with contextlib.ExitStack() as undo:
            names = undo.enter_context((folder / _LIST_FILE).open("rb+", buffering=0))
            if names.readline() != _FIRST_LINE or not _lock(names):
                return None
            undo.pop_all()
        return cls(folder, names)

    def file(self, name: str) -> Path:
        """Return the path at which to write the file or folder called `name`."""
        self._names.write(f"{name}\n".encode())
        return self.new / name

    def move_into_place(self, target: Path) -> None:
        """Move what was written to `target`, and what was there away."""
        if target.is_dir():
            target.rename(self.old)
        self.new.rename(target)

    def clean_up(self, target: Path) -> None:
        """Put back what was moved away for nothing, and remove what we wrote; what is not of ours stays."""
        with contextlib.suppress(OSError), self._names:
            self._restore_or_remove_old(target)
            self._remove_new()
            # What is not empty now holds something that is not of ours, and so stays as it is.
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
        self._names.seek(0)
        names = self._names.read().decode().splitlines()[1:]
        for path in [path for path in self.new.iterdir() if path.name in names]:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


def remove_abandoned(folder: Path) -> None:
    """Remove from `folder` what runs left half-written whose processes are gone."""
    for path, target in _candidates(folder):
        with contextlib.suppress(OSError):
            if path.lstat().st_uid == os.geteuid() and (partial := PartialFolder.open_abandoned(path)) is not None:
                partial.clean_up(target)


def _candidates(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yield each hidden folder that has such a name, and what it is for."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if (match := _NAME.fullmatch(entry.name)) and entry.is_dir(follow_symlinks=False):
                yield Path(entry.path), folder / match["name"]


def _lock(file: BinaryIO) -> bool:
    """Lock a file until it is closed, were it by SIGKILL; return whether it is ours alone now."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        # Another holds it; or the file system knows no locks, as some of clusters: then nothing is ever swept.
        return False
    return True
