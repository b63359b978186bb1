"""The output folder: complete, or not there at all.

A run writes into a hidden folder beside its destination and is renamed into place at the end, so a reader never meets a
half-written one and a full disk leaves nothing behind. The destination is checked before anything is computed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from batkube.kernel.errors import InputError

MANIFEST = "manifest.json"


class OutputFolder:
    """The folder a run will leave at `path`."""

    def __init__(self, path: Path, *, force: bool = False) -> None:
        self.path = path
        self._check(force)
        self.partial = path.parent / f".{path.name}.partial-{os.getpid()}"

    def _check(self, force: bool) -> None:
        if not self.path.exists() and not self.path.is_symlink():
            return
        if not self.path.is_dir():
            raise InputError(self.path, problem="is a file, not an output folder", remedy="choose another --out")
        if not any(self.path.iterdir()):
            return
        if not (self.path / MANIFEST).is_file():
            raise InputError(
                self.path,
                problem="exists and is not the output of a run, so it is not replaced even with --force",
                remedy="choose another --out",
            )
        if not force:
            raise InputError(
                self.path, problem="exists already", remedy="choose another --out, or add --force to replace it"
            )

    def file(self, name: str) -> Path:
        """Return the path at which to write the output called `name`."""
        return self.partial / name

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Make the folder to write to; when the block ends, put it in place, or remove it if writing failed.

        An OSError in the block is a full or read-only disk and becomes an InputError. A run that fails for any other
        reason has computed something, so the caller catches that inside the block and the folder is kept.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.partial.mkdir()
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            yield
            self._put_in_place()
        except OSError as error:
            shutil.rmtree(self.partial, ignore_errors=True)
            raise self._unwritable(error) from error
        except BaseException:
            shutil.rmtree(self.partial, ignore_errors=True)
            raise

    def _put_in_place(self) -> None:
        if self.path.is_dir():
            shutil.rmtree(self.path)
        self.partial.rename(self.path)

    def _unwritable(self, error: OSError) -> InputError:
        return InputError(
            self.path,
            problem=f"cannot be written: {error.strerror or error}; nothing was left behind",
            remedy="choose an --out on a disk that is writable and has room",
        )
