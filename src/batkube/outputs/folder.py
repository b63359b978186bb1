"""The output folder: complete, or not there at all.

A run writes into a hidden folder beside its destination and is renamed into place at the end, so a reader never meets a
half-written one and a full disk leaves nothing behind. The destination is checked before anything is computed.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from batkube.kernel.errors import InputError

MANIFEST = "manifest.json"


class OutputFolder:
    """The folder a run will leave at `path`."""

    def __init__(self, path: Path, *, force: bool = False) -> None:
        """A link to a folder stands for that folder. Raises InputError when nothing may be written there."""
        _refuse_dangling(path)
        #: Where the run will be found. As given, so that messages show what the user typed, unless that is a link.
        self.path = path.resolve() if path.is_symlink() or path.name in ("", "..") else path
        self._force = force
        self._check()
        refuse_unwritable(self.path)
        #: Where it is written until then.
        self._partial: Path | None = None

    def _check(self) -> None:
        if not self.path.exists() and not self.path.is_symlink():
            return
        if not self.path.is_dir():
            raise InputError(self.path, problem="is a file, not an output folder", remedy="choose another --out")
        if Path.cwd().is_relative_to(self.path.resolve()):
            raise InputError(
                self.path,
                problem="is the current folder, or holds it, so it cannot be replaced",
                remedy="choose another --out",
            )
        if not any(self.path.iterdir()):
            return
        if not (self.path / MANIFEST).is_file():
            raise InputError(
                self.path,
                problem="exists and is not the output of a run, so it is not replaced even with --force",
                remedy="choose another --out",
            )
        if not self._force:
            raise InputError(
                self.path, problem="exists already", remedy="choose another --out, or add --force to replace it"
            )

    def file(self, name: str) -> Path:
        """Return the path at which to write the output called `name`, inside `writing`."""
        assert self._partial is not None, "files are written inside `with folder.writing()`"
        return self._partial / name

    def keep_completed_run(self) -> None:
        """Turn to `DIR.failed` when DIR holds a run that completed: one that failed never takes its place."""
        if not _replaceable_by_failed(self.path):
            name = self.path.name
            candidates = (self.path.with_name(f"{name}.failed{'' if n == 1 else f'-{n}'}") for n in count(1))
            self.path = next(filter(_replaceable_by_failed, candidates))
            self._force = True

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Make the folder to write to; when the block ends, put it in place, or remove it if writing failed.

        An OSError in the block is a full or read-only disk and becomes an InputError. A run that fails for any other
        reason has computed something, so the caller catches that inside the block and the folder is kept.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            hidden = Path(tempfile.mkdtemp(prefix=f".{self.path.name}.partial-", dir=self.path.parent))
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            # A folder inside, since the one that mkdtemp makes is closed to everybody else and the output must not be.
            self._partial = hidden / "new"
            self._partial.mkdir()
            yield
            self._put_in_place(self._partial, hidden / "old")
        except OSError as error:
            raise self._unwritable(error) from error
        finally:
            shutil.rmtree(hidden, ignore_errors=True)

    def _put_in_place(self, new: Path, old: Path) -> None:
        # Somebody may have put something there while the run went on.
        self._check()
        if not self.path.is_dir():
            new.rename(self.path)
            return
        self.path.rename(old)
        try:
            new.rename(self.path)
        except BaseException:
            old.rename(self.path)
            raise

    def _unwritable(self, error: OSError) -> InputError:
        return InputError(
            self.path,
            problem=f"cannot be written: {error.strerror or error}; no output was kept",
            remedy="choose an --out on a disk that is writable and has room",
        )


def refuse_unwritable(path: Path) -> None:
    """Raise InputError when a folder cannot be made at `path`, as far as that can be known without trying."""
    nearest = next(parent for parent in path.absolute().parents if parent.exists())
    problem = ""
    if not nearest.is_dir():
        problem = f"cannot be written: {nearest} is not a folder"
    elif not os.access(nearest, os.W_OK | os.X_OK):
        problem = f"cannot be written: in {nearest} nothing may be made"
    if problem:
        raise InputError(path, problem=problem, remedy="choose an --out on a disk that is writable and has room")


def _refuse_dangling(path: Path) -> None:
    if path.is_symlink() and not path.exists():
        raise InputError(
            path,
            problem=f"is a link to {path.readlink()}, which is not there",
            remedy="make that folder, or remove the link, or choose another --out",
        )


def _replaceable_by_failed(path: Path) -> bool:
    """Say whether nothing is lost when a failed run takes this place: nothing is there, or another failed run."""
    if not path.exists() and not path.is_symlink():
        return True
    if not path.is_dir() or path.is_symlink():
        return False
    if not any(path.iterdir()):
        return True
    try:
        manifest = json.loads((path / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and manifest.get("result") == "failed"
