"""Paths of a program's folders that are the same in every run.

During a run, its output folder has a random name, and so has each folder for temporary files. A program that hashes a
path, for instance, would therefore behave differently in each run. Programs get other paths instead:

* Go programs: paths of inherited descriptors, such as `/proc/self/fd/64`.
* Other programs: paths of symbolic links in the user's cache, such as `runs/001/files`, because they may start child
  processes without the descriptors. The number is the lowest that no other program of the user has at that time. The
  paths are the same in every run that does not overlap with others, and always have the same length.

If the cache cannot be written, or other users can write to it, programs that are not Go get the real paths.
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

from batkube.files.locks import try_lock
from batkube.kernel.errors import InputError
from batkube.programs.startup.command_lines import ProgramFolder
from batkube.schedulers.build.cache_permissions import check_permissions, make_private_folder

#: The lowest number of an inherited descriptor, so that it does not depend on the number of open files.
_FIRST_DESCRIPTOR = 64
_MAX_FOLDERS = 999

_log = logging.getLogger(__name__)


class StableFolders:
    """The folders of one program: its files, and temporary files, which are removed when the program ends."""

    def __init__(self, files: Path, cache: Path, *, inherits: bool) -> None:
        """`inherits` is whether the program keeps inherited descriptors; `cache` is Batkube's cache folder."""
        self._stack = contextlib.ExitStack()
        #: Descriptors to inherit, open until the program has started.
        self.descriptors: list[int] = []
        temporary = tempfile.TemporaryDirectory(prefix="batkube-", ignore_cleanup_errors=True)
        folders = {"files": files, "temporary": Path(self._stack.enter_context(temporary))}
        paths = self._inherited(folders) if inherits else self._linked(folders, cache)
        self.files = ProgramFolder(files, paths["files"])
        self.temporary = paths["temporary"]

    def _inherited(self, folders: Mapping[str, Path]) -> dict[str, str]:
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        first = _FIRST_DESCRIPTOR if limit == resource.RLIM_INFINITY else min(_FIRST_DESCRIPTOR, limit // 2)
        for folder in folders.values():
            descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                self.descriptors.append(fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, first))
            finally:
                os.close(descriptor)
        return {name: f"/proc/self/fd/{number}" for name, number in zip(folders, self.descriptors, strict=True)}

    def _linked(self, folders: Mapping[str, Path], cache: Path) -> dict[str, str]:
        try:
            numbered = self._stack.enter_context(_numbered_folder(cache))
            for name, folder in folders.items():
                (numbered / name).unlink(missing_ok=True)
                (numbered / name).symlink_to(folder.absolute())
                self._stack.callback((numbered / name).unlink, missing_ok=True)
        except (OSError, InputError) as problem:
            _log.info("a program gets the real paths of its folders: %s", problem)
            return {name: str(folder) for name, folder in folders.items()}
        return {name: str(numbered / name) for name in folders}

    def close_descriptors(self) -> None:
        """Close this process's copies of the descriptors once the program has started."""
        while self.descriptors:
            os.close(self.descriptors.pop())

    def release(self) -> None:
        """Remove the links and the temporary files after the program has ended."""
        self._stack.close()


@contextlib.contextmanager
def _numbered_folder(cache: Path) -> Iterator[Path]:
    """Lock the numbered folder with the lowest free number. Raise OSError if none is free."""
    for number in range(1, _MAX_FOLDERS + 1):
        numbered = cache / "runs" / f"{number:03}"
        make_private_folder(numbered)
        check_permissions(numbered, cache)
        lock = os.open(numbered, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if try_lock(lock):
                yield numbered
                return
        finally:
            os.close(lock)
    raise OSError(f"{_MAX_FOLDERS} programs are running already")
