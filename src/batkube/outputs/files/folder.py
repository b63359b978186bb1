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
from batkube.outputs.files.listing import Listing
from batkube.outputs.files.manifest import MANIFEST, listing_in, read_manifest, write_manifest
from batkube.outputs.files.partials import Partial, sweep

#: So many names of what is in the way are told.
_SHOWN_NAMES = 5


class OutputFolder:
    """The folder a run will leave at `path`."""

    def __init__(self, path: Path, *, force: bool = False) -> None:
        """A link to a folder stands for that folder. Raises InputError when nothing may be written there."""
        _refuse_dangling(path)
        #: The link that was given, if it was one; nothing is removed behind it.
        self._link = path if path.is_symlink() else None
        #: Where the run will be found. As given, so that messages show what the user typed, unless that is a link.
        self.path = path.resolve() if self._link or path.name in ("", "..") else path
        self._force = force
        self._check()
        refuse_unwritable(self.path)
        #: Where it is written until then.
        self._partial: Partial | None = None

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
        listing = run_listing(self.path)
        if not self._force:
            raise InputError(
                self.path, problem="exists already", remedy="choose another --out, or add --force to replace it"
            )
        refuse_link(self._link or self.path)
        refuse_others_files(self.path, listing)

    def file(self, name: str) -> Path:
        """Return the path at which to write the output called `name`, inside `writing`."""
        return self._writing.file(name)

    def seal(self, manifest: Mapping[str, object], *, living: Collection[str] = ()) -> None:
        """Write the manifest, once all else is written; files called `living` may still change in the folder."""
        self.file(MANIFEST)
        write_manifest(self._writing.new, manifest, living=living)

    @property
    def _writing(self) -> Partial:
        assert self._partial is not None, "files are written inside `with folder.writing()`"
        return self._partial

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
            sweep(self.path.parent)
            self._partial = Partial.beside(self.path)
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            yield
            # Somebody may have put something there while the run went on.
            self._check()
            self._partial.put_in_place(self.path)
        except OSError as error:
            raise self._unwritable(error) from error
        finally:
            self._partial.clear(self.path)

    def _unwritable(self, error: OSError) -> InputError:
        return InputError(
            self.path,
            problem=f"cannot be written: {error.strerror or error}; no output was kept",
            remedy="choose an --out on a disk that is writable and has room",
        )


def run_listing(folder: Path) -> Listing:
    """Return which files the run in `folder` wrote. Raises InputError when that is not known."""
    manifest = read_manifest(folder)
    if not manifest:
        problem = "exists and is not the output of a run, so it is not replaced even with --force"
        raise InputError(folder, problem=problem, remedy="choose another --out")
    listing = listing_in(manifest)
    if listing is None:
        raise InputError(
            folder / MANIFEST,
            problem="was edited, or is of an earlier version, so it is not known which files here are a run's",
            remedy=f"choose another --out; or see what is in {folder}, and remove it yourself",
        )
    return listing


def refuse_others_files(folder: Path, listing: Listing) -> None:
    """Raise InputError when more would be lost with the run in `folder` than what it wrote."""
    remedy = "move that away, or choose another --out"
    if strangers := listing.strangers(folder):
        raise InputError(
            folder, problem=f"holds what no run wrote, so it is not removed: {_some(strangers)}", remedy=remedy
        )
    if altered := listing.altered(folder):
        problem = f"holds what was changed since the run wrote it, so it is not removed: {_some(altered)}"
        raise InputError(folder, problem=problem, remedy=remedy)


def refuse_link(path: Path) -> None:
    """Raise InputError when something would be removed behind a link."""
    if path.is_symlink():
        raise InputError(
            path,
            problem=f"is a link to {path.readlink()}, and nothing is removed behind a link",
            remedy=f"name the folder itself: {path.resolve()}",
        )


def _some(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN_NAMES
    return ", ".join(names[:_SHOWN_NAMES]) + (f" and {more:,} more" if more > 0 else "")


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
    if not os.path.lexists(path):
        return True
    if not path.is_dir() or path.is_symlink():
        return False
    if not any(path.iterdir()):
        return True
    try:
        refuse_others_files(path, run_listing(path))
    except InputError:
        return False
    return read_manifest(path).get("result") == "failed"
