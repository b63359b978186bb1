"""What is kept: each built program has a folder with a record of what it is.

The folder's name ends in the key of the build. A later Batkube, with another overlay or recipe, looks for another name
and never finds the old folder again: it is outdated, and may be removed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import msgspec

from batkube.schedulers.build.toolchains import Toolchain, file_lock
from batkube.schedulers.recipes import BuildRecipe

_FILE = "build.json"
#: What else builds write: the files that replace Go's, the folder they are made in, the program until it is whole.
OVERLAY, SOURCE, PARTIAL = ".overlay", ".source", ".partial"
#: The definitions of the program's own kinds.
DEFINITIONS = "definitions.json"


class BuildRecord(msgspec.Struct, frozen=True):
    """What a program was built from and with."""

    name: str
    #: "" for a folder of the user's.
    version: str
    #: The published module, or the user's folder.
    source: str
    package: str
    #: The version of Go, as in `go1.26.8`; "" for a program without a virtual clock.
    go: str

    @classmethod
    def of(cls, wanted: BuildRecipe, go: Toolchain | None) -> BuildRecord:
        """Return the record of a program that is built with a toolchain."""
        source = wanted.module or str(wanted.folder)
        version = wanted.version.removeprefix("v")
        return cls(wanted.name, version, source, wanted.package, "" if go is None else go.version)

    @property
    def is_local(self) -> bool:
        """Whether it was built from a folder of the user's."""
        return not self.version


class CachedBuild(msgspec.Struct, frozen=True):
    """A folder that builds are kept in, and the program in it, if there is a whole one."""

    folder: Path
    #: None if there is no whole program in it.
    record: BuildRecord | None
    size_bytes: int


def programs_folder(cache: Path) -> Path:
    """Return the folder that all builds are kept in."""
    return cache / "programs"


def lock_of(folder: Path) -> Path:
    """Return the file that is locked while a folder is written or removed; it lies outside, so it outlives it."""
    return folder.parent / f"{folder.name}.lock"


def write_record(folder: Path, record: BuildRecord) -> None:
    """Say what the program in a folder is."""
    (folder / _FILE).write_bytes(msgspec.json.encode(record))


def cached_builds(cache: Path) -> list[CachedBuild]:
    """Return the folders of all builds, sorted by name."""
    folder = programs_folder(cache)
    if not folder.is_dir():
        return []
    return [_read_build(path) for path in sorted(folder.iterdir()) if path.is_dir() and not path.is_symlink()]


def _read_build(folder: Path) -> CachedBuild:
    return CachedBuild(folder, record_at(folder), _size(folder))


def record_at(folder: Path) -> BuildRecord | None:
    """Return the record of the program in a folder; None if there is no whole one."""
    try:
        record = msgspec.json.decode((folder / _FILE).read_bytes(), type=BuildRecord)
    except (OSError, msgspec.MsgspecError):
        return None
    return record if (folder / record.name).exists() else None


def _size(folder: Path) -> int:
    """Return how many bytes a folder takes; what vanishes meanwhile, because a build is at work, takes none."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += os.lstat(Path(root) / name).st_size
    return total


def remove_build(kept: CachedBuild) -> str:
    """Remove a build; return why it was left instead: somebody works on it, or it holds more than builds write."""
    try:
        with file_lock(lock_of(kept.folder), _raise_busy):
            strangers = sorted(path.name for path in kept.folder.iterdir() if not _is_build_file(path, kept))
            if strangers:
                return f"no build wrote {', '.join(strangers)}"
            shutil.rmtree(kept.folder)
    except BlockingIOError:
        return "somebody is building it"
    return ""


def _is_build_file(path: Path, kept: CachedBuild) -> bool:
    """Say whether something in the folder of a build is what builds write there (`builds`)."""
    return (
        path.name in (_FILE, OVERLAY, SOURCE, DEFINITIONS, kept.record and kept.record.name) or path.suffix == PARTIAL
    )


def _raise_busy() -> None:
    raise BlockingIOError
