"""Output folder of a run: complete or absent, and never a replacement of files that no run wrote.

A run writes into a hidden folder beside its destination (`partial_folder`), which is renamed into place at the end. A
reader therefore never sees an incomplete folder, and a full disk leaves no files. The destination is checked
before anything is computed, and again before anything is moved. Only an unmodified run is replaced, and only with
`--force`; if its folder holds anything else, InputError names it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path

from batkube.kernel.errors import InputError
from batkube.outputs.files.file_list import FileList
from batkube.outputs.files.manifest import MANIFEST, file_list_in, read_manifest, write_manifest
from batkube.outputs.files.partial_folder import PartialFolder, remove_abandoned

#: Maximum number of unexpected files that an error message names.
_MAX_NAMES = 5


class OutputFolder:
    """Output folder of a run, at `path` once the run has ended."""

    def __init__(self, path: Path, *, force: bool = False) -> None:
        """Check `path`; a symbolic link means its target. Raises InputError if the folder must not be written."""
        _check_not_dangling(path)
        #: `path` if it is a symbolic link; nothing is removed through a link.
        self._link = path if path.is_symlink() else None
        #: The destination, as the user typed it unless that is a link, so that messages show the same path.
        self.path = path.resolve() if self._link or path.name in ("", "..") else path
        self._force = force
        self._check()
        check_writable(self.path)
        #: The hidden folder, while the run writes.
        self._partial: PartialFolder | None = None

    def _check(self) -> None:
        if not os.path.lexists(self.path):
            return
        if not self.path.is_dir():
            raise InputError(self.path, problem="is a file, not an output folder", remedy="choose another --out")
        if Path.cwd().is_relative_to(self.path.resolve()):
            raise InputError(
                self.path,
                problem="is the current folder or a parent of it, so it cannot be replaced",
                remedy="choose another --out",
            )
        if not any(self.path.iterdir()):
            return
        listing = file_list_of_run(self.path)
        if not self._force:
            raise InputError(
                self.path, problem="exists already", remedy="choose another --out, or add --force to replace it"
            )
        check_not_link(self._link or self.path)
        check_only_run_files(self.path, listing)

    def file(self, name: str) -> Path:
        """Return the path at which to write the output file `name`, inside `writing()`."""
        return self._open_partial.file(name)

    def seal(self, manifest: Mapping[str, object], *, mutable_files: Collection[str] = ()) -> None:
        """Write the manifest, after all other files; `mutable_files` may still change."""
        self.file(MANIFEST)
        write_manifest(self._open_partial.new, manifest, mutable_files=mutable_files)

    @property
    def _open_partial(self) -> PartialFolder:
        assert self._partial is not None, "files are written inside `with folder.writing()`"
        return self._partial

    def protect_completed_run(self) -> None:
        """Write to `DIR.failed` if DIR holds a completed run, which a failed one must not replace."""
        if not _is_replaceable_by_failed_run(self.path):
            name = self.path.name
            candidates = (self.path.with_name(f"{name}.failed{'' if n == 1 else f'-{n}'}") for n in count(1))
            self.path = next(filter(_is_replaceable_by_failed_run, candidates))
            self._force = True

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Create the hidden folder; after the block, rename it to the destination, or remove it if writing failed.

        An OSError in the block means a full or read-only disk and becomes an InputError. A run that fails for another
        reason has results, so the caller catches that error inside the block, and the folder is kept.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            remove_abandoned(self.path.parent)
            self._partial = PartialFolder.create_beside(self.path)
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            yield
            # The destination may have changed during the run.
            self._check()
            self._partial.move_into_place(self.path)
        except OSError as error:
            raise self._unwritable(error) from error
        finally:
            self._partial.clean_up(self.path)

    def _unwritable(self, error: OSError) -> InputError:
        return InputError(
            self.path,
            problem=f"cannot be written: {error.strerror or error}; no output was kept",
            remedy="choose an --out on a writable disk with free space",
        )


def file_list_of_run(folder: Path) -> FileList:
    """Return the files that the run in `folder` wrote. Raises InputError if its manifest is missing or was edited."""
    manifest = read_manifest(folder)
    if not manifest:
        problem = "exists and is not the output of a run, so even --force does not replace it"
        raise InputError(folder, problem=problem, remedy="choose another --out")
    listing = file_list_in(manifest)
    if listing is None:
        raise InputError(
            folder / MANIFEST,
            problem="was edited or written by an earlier version, so the files of the run are unknown",
            remedy=f"choose another --out, or check {folder} and remove it yourself",
        )
    return listing


def check_only_run_files(folder: Path, listing: FileList) -> None:
    """Raise InputError if `folder` also holds files that the run did not write, or that were modified since."""
    remedy = "move these files, or choose another --out"
    if unlisted := listing.unlisted(folder):
        problem = f"contains files that no run wrote, so it is not removed: {_first_names(unlisted)}"
        raise InputError(folder, problem=problem, remedy=remedy)
    if modified := listing.modified(folder):
        problem = f"contains files that were modified after the run, so it is not removed: {_first_names(modified)}"
        raise InputError(folder, problem=problem, remedy=remedy)


def check_not_link(path: Path) -> None:
    """Raise InputError if `path` is a symbolic link: nothing is removed through a link."""
    if path.is_symlink():
        raise InputError(
            path,
            problem=f"is a link to {path.readlink()}, and nothing is removed through a link",
            remedy=f"name the folder itself: {path.resolve()}",
        )


def _first_names(names: Sequence[str]) -> str:
    more = len(names) - _MAX_NAMES
    return ", ".join(names[:_MAX_NAMES]) + (f" and {more:,} more" if more > 0 else "")


def check_writable(path: Path) -> None:
    """Raise InputError if a folder cannot be created at `path`, as far as permissions show."""
    nearest = next(parent for parent in path.absolute().parents if parent.exists())
    problem = ""
    if not nearest.is_dir():
        problem = f"cannot be written: {nearest} is not a folder"
    elif not os.access(nearest, os.W_OK | os.X_OK):
        problem = f"cannot be written: no permission to create files in {nearest}"
    if problem:
        raise InputError(path, problem=problem, remedy="choose an --out on a writable disk with free space")


def _check_not_dangling(path: Path) -> None:
    if path.is_symlink() and not path.exists():
        raise InputError(
            path,
            problem=f"is a link to {path.readlink()}, which does not exist",
            remedy="create that folder, remove the link, or choose another --out",
        )


def _is_replaceable_by_failed_run(path: Path) -> bool:
    """Return whether a failed run may take this path: it is free, empty, or holds another failed run, unmodified."""
    if not os.path.lexists(path):
        return True
    if not path.is_dir() or path.is_symlink():
        return False
    if not any(path.iterdir()):
        return True
    try:
        check_only_run_files(path, file_list_of_run(path))
    except InputError:
        return False
    return read_manifest(path).get("result") == "failed"
