"""Records of the build cache: each build folder describes the program in it.

The folder name ends in the key of the build. A later Batkube with another overlay or recipe uses another name and never
finds the old folder again: it is outdated and can be removed.
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
#: Other files in a build folder: the overlay, the source folder, the suffix of an incomplete binary.
OVERLAY, SOURCE, PARTIAL = ".overlay", ".source", ".partial"
#: The CustomResourceDefinitions of the program.
DEFINITIONS = "definitions.json"


class BuildRecord(msgspec.Struct, frozen=True):
    """Origin and toolchain of a built program."""

    name: str
    #: "" for a folder of the user.
    version: str
    #: The published module, or the user's folder.
    source: str
    package: str
    #: The version of Go, such as `go1.26.8`; "" for a program without the overlay.
    go: str

    @classmethod
    def of(cls, recipe: BuildRecipe, go: Toolchain | None) -> BuildRecord:
        """Return the record of a program built with this toolchain."""
        source = recipe.module or str(recipe.folder)
        version = recipe.version.removeprefix("v")
        return cls(recipe.name, version, source, recipe.package, "" if go is None else go.version)

    @property
    def is_local(self) -> bool:
        """Whether it was built from a folder of the user."""
        return not self.version


class CachedBuild(msgspec.Struct, frozen=True):
    """A folder of the build cache, with its program if the build is complete."""

    folder: Path
    #: None if the build is incomplete.
    record: BuildRecord | None
    size_bytes: int


def programs_folder(cache: Path) -> Path:
    """Return the folder of all builds."""
    return cache / "programs"


def lock_of(folder: Path) -> Path:
    """Return the lock file for a build folder; it is outside the folder, so it survives its removal."""
    return folder.parent / f"{folder.name}.lock"


def write_record(folder: Path, record: BuildRecord) -> None:
    """Write the record of a build."""
    (folder / _FILE).write_bytes(msgspec.json.encode(record))


def cached_builds(cache: Path) -> list[CachedBuild]:
    """Return all build folders, sorted by name."""
    folder = programs_folder(cache)
    if not folder.is_dir():
        return []
    return [_read_build(path) for path in sorted(folder.iterdir()) if path.is_dir() and not path.is_symlink()]


def _read_build(folder: Path) -> CachedBuild:
    return CachedBuild(folder, record_at(folder), _size(folder))


def record_at(folder: Path) -> BuildRecord | None:
    """Return the record of the program in a folder; None if the build is incomplete."""
    try:
        record = msgspec.json.decode((folder / _FILE).read_bytes(), type=BuildRecord)
    except (OSError, msgspec.MsgspecError):
        return None
    return record if (folder / record.name).exists() else None


def _size(folder: Path) -> int:
    """Return the size of a folder; files that a concurrent build removes meanwhile do not count."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += os.lstat(Path(root) / name).st_size
    return total


def remove_build(build: CachedBuild) -> str:
    """Remove a build. If that is not safe (a build is running, or foreign files), return the reason instead."""
    try:
        with file_lock(lock_of(build.folder), _raise_busy):
            foreign_files = sorted(path.name for path in build.folder.iterdir() if not _is_build_file(path, build))
            if foreign_files:
                return f"no build wrote {', '.join(foreign_files)}"
            shutil.rmtree(build.folder)
    except BlockingIOError:
        return "a build is running"
    return ""


def _is_build_file(path: Path, build: CachedBuild) -> bool:
    """Return whether a path in a build folder was created by a build."""
    return (
        path.name in (_FILE, OVERLAY, SOURCE, DEFINITIONS, build.record and build.record.name) or path.suffix == PARTIAL
    )


def _raise_busy() -> None:
    raise BlockingIOError
