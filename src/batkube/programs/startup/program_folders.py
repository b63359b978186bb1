"""The paths under which a program knows its folders: the same in every run.

The output folder of a run has a random name until the run is over, and so has each folder for temporary files. A path
may decide what a program does: where it is hashed, for instance. So a program gets other paths.

* A Go program: those of descriptors that it inherits, `/proc/self/fd/64`.
* Any other may start children without descriptors. It gets those of links in the user's cache, `runs/001/files`. The
  number is the lowest that no other program of the user has at that time. So the paths of a run are always the same
  while it is alone, and have the same length in any case.

Where the cache cannot be written, or others can write there, programs other than Go get the real paths.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import resource
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from batkube.kernel.errors import InputError
from batkube.programs.startup.command_lines import ProgramFolder
from batkube.schedulers.build.cache_permissions import check_permissions, make_private_folder

#: Descriptors that programs inherit have the lowest free numbers from here on, however many files are open.
_FIRST_DESCRIPTOR = 64
_MOST = 999

_log = logging.getLogger(__name__)


class KnownFolders:
    """The folders of one program: that of its files, and one for temporary files, which goes with the program."""

    def __init__(self, files: Path, cache: Path, *, inherits: bool) -> None:
        """`inherits` says that the program keeps the descriptors which it inherits; `cache` is Batkube's own folder."""
        self._stack = contextlib.ExitStack()
        #: Open until the program has been started.
        self.descriptors: list[int] = []
        temporary = tempfile.TemporaryDirectory(prefix="batkube-", ignore_cleanup_errors=True)
        folders = {"files": files, "temporary": Path(self._stack.enter_context(temporary))}
        paths = self._inherited(folders) if inherits else self._linked(folders, cache)
        self.files = ProgramFolder(files, paths["files"])
        self.temporary = paths["temporary"]

    def _inherited(self, folders: Mapping[str, Path]) -> dict[str, str]:
        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        first = _FIRST_DESCRIPTOR if most == resource.RLIM_INFINITY else min(_FIRST_DESCRIPTOR, most // 2)
        for folder in folders.values():
            descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                self.descriptors.append(fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, first))
            finally:
                os.close(descriptor)
        return {name: f"/proc/self/fd/{number}" for name, number in zip(folders, self.descriptors, strict=True)}

    def _linked(self, folders: Mapping[str, Path], cache: Path) -> dict[str, str]:
        try:
            place = self._stack.enter_context(_numbered(cache))
            for name, folder in folders.items():
                (place / name).unlink(missing_ok=True)
                (place / name).symlink_to(folder.absolute())
                self._stack.callback((place / name).unlink, missing_ok=True)
        except (OSError, InputError) as problem:
            _log.info("a program gets the real paths of its folders: %s", problem)
            return {name: str(folder) for name, folder in folders.items()}
        return {name: str(place / name) for name in folders}

    def close_descriptors(self) -> None:
        """Close what the program has inherited, once it has been started."""
        while self.descriptors:
            os.close(self.descriptors.pop())

    def release(self) -> None:
        """Remove the links and the temporary files, when the program has ended."""
        self._stack.close()


@contextlib.contextmanager
def _numbered(cache: Path) -> Iterator[Path]:
    """Take the numbered folder, inside, with the lowest number that is free. Raises OSError if there is none."""
    for number in range(1, _MOST + 1):
        place = cache / "runs" / f"{number:03}"
        make_private_folder(place)
        check_permissions(place, cache)
        lock = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        try:
            yield place
        finally:
            os.close(lock)
        return
    raise OSError(f"{_MOST} programs run already")
