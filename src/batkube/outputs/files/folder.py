"""The output folder: complete, or not there at all, and never in the place of something that is not ours.

A run writes into a hidden folder beside its destination (`partials`) and is renamed into place at the end, so a reader
never meets a half-written one and a full disk leaves nothing behind. The destination is checked before anything is
computed, and again before anything is moved: only a run that is still as it was written is replaced, and only by
`--force`. Where there is anything else in its folder, we stop and name it.
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

#: So many names of what is in the way are told.
_SHOWN_NAMES = 5


class OutputFolder:
    """The folder a run will leave at `path`."""

    def __init__(self, path: Path, *, force: bool = False) -> None:
        """A link to a folder stands for that folder. Raises InputError when nothing may be written there."""
        _check_not_dangling(path)
        #: The link that was given, if it was one; nothing is removed behind it.
        self._link = path if path.is_symlink() else None
        #: Where the run will be found. As given, so that messages show what the user typed, unless that is a link.
        self.path = path.resolve() if self._link or path.name in ("", "..") else path
        self._force = force
        self._check()
        check_writable(self.path)
        #: Where it is written until then.
        self._partial: PartialFolder | None = None

    def _check(self) -> None:
        if not os.path.lexists(self.path):
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
        listing = file_list_of_run(self.path)
        if not self._force:
            raise InputError(
                self.path, problem="exists already", remedy="choose another --out, or add --force to replace it"
            )
        check_not_link(self._link or self.path)
        check_only_run_files(self.path, listing)

    def file(self, name: str) -> Path:
        """Return the path at which to write the output called `name`, inside `writing`."""
        return self._open_partial.file(name)

    def seal(self, manifest: Mapping[str, object], *, living: Collection[str] = ()) -> None:
        """Write the manifest, once all else is written; files called `living` may still change in the folder."""
        self.file(MANIFEST)
        write_manifest(self._open_partial.new, manifest, living=living)

    @property
    def _open_partial(self) -> PartialFolder:
        assert self._partial is not None, "files are written inside `with folder.writing()`"
        return self._partial

    def protect_completed_run(self) -> None:
        """Turn to `DIR.failed` when DIR holds a run that completed: one that failed never takes its place."""
        if not _is_replaceable_by_failed_run(self.path):
            name = self.path.name
            candidates = (self.path.with_name(f"{name}.failed{'' if n == 1 else f'-{n}'}") for n in count(1))
            self.path = next(filter(_is_replaceable_by_failed_run, candidates))
            self._force = True

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Make the folder to write to; when the block ends, put it in place, or remove it if writing failed.

        An OSError in the block is a full or read-only disk and becomes an InputError. A run that fails for any other
        reason has computed something, so the caller catches that inside the block and the folder is kept.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            remove_abandoned(self.path.parent)
            self._partial = PartialFolder.create_beside(self.path)
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            yield
            # Somebody may have put something there while the run went on.
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
            remedy="choose an --out on a disk that is writable and has room",
        )


def file_list_of_run(folder: Path) -> FileList:
    """Return which files the run in `folder` wrote. Raises InputError when that is not known."""
    manifest = read_manifest(folder)
    if not manifest:
        problem = "exists and is not the output of a run, so it is not replaced even with --force"
        raise InputError(folder, problem=problem, remedy="choose another --out")
    listing = file_list_in(manifest)
    if listing is None:
        raise InputError(
            folder / MANIFEST,
            problem="was edited, or is of an earlier version, so it is not known which files here are a run's",
            remedy=f"choose another --out; or see what is in {folder}, and remove it yourself",
        )
    return listing


def check_only_run_files(folder: Path, listing: FileList) -> None:
    """Raise InputError when more would be lost with the run in `folder` than what it wrote."""
    remedy = "move that away, or choose another --out"
    if strangers := listing.unlisted(folder):
        raise InputError(
            folder, problem=f"holds what no run wrote, so it is not removed: {_first_names(strangers)}", remedy=remedy
        )
    if altered := listing.modified(folder):
        problem = f"holds what was changed since the run wrote it, so it is not removed: {_first_names(altered)}"
        raise InputError(folder, problem=problem, remedy=remedy)


def check_not_link(path: Path) -> None:
    """Raise InputError when something would be removed behind a link."""
    if path.is_symlink():
        raise InputError(
            path,
            problem=f"is a link to {path.readlink()}, and nothing is removed behind a link",
            remedy=f"name the folder itself: {path.resolve()}",
        )


def _first_names(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN_NAMES
    return ", ".join(names[:_SHOWN_NAMES]) + (f" and {more:,} more" if more > 0 else "")


def check_writable(path: Path) -> None:
    """Raise InputError when a folder cannot be made at `path`, as far as that can be known without trying."""
    nearest = next(parent for parent in path.absolute().parents if parent.exists())
    problem = ""
    if not nearest.is_dir():
        problem = f"cannot be written: {nearest} is not a folder"
    elif not os.access(nearest, os.W_OK | os.X_OK):
        problem = f"cannot be written: in {nearest} nothing may be made"
    if problem:
        raise InputError(path, problem=problem, remedy="choose an --out on a disk that is writable and has room")


def _check_not_dangling(path: Path) -> None:
    if path.is_symlink() and not path.exists():
        raise InputError(
            path,
            problem=f"is a link to {path.readlink()}, which is not there",
            remedy="make that folder, or remove the link, or choose another --out",
        )


def _is_replaceable_by_failed_run(path: Path) -> bool:
    """Say whether nothing is lost when a failed run takes this place: nothing is there, or another failed run."""
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
