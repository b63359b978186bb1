"""Find the input files of an earlier run by hash, so that another file with the same name is not used instead.

Nearby paths are searched first, and only files of the right size are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from batkube.outputs.files.confinement import is_confined
from batkube.outputs.files.file_list import file_digest


@dataclass(frozen=True, slots=True)
class RecordedInput:
    """An input file as the manifest records it."""

    path: str
    #: In bytes.
    size: int
    sha256: str
    #: Its path inside a pack.
    place: str


class InputSearch:
    """Finds the input files of one run."""

    def __init__(self, run: Path, pack: str, extra_paths: Sequence[Path]) -> None:
        """`pack` is a folder in the run's that may contain copies; `extra_paths` are files, and folders to search."""
        self._run = run.absolute()
        self._packed = self._run / pack
        self._extra_paths = extra_paths
        self._hashes: dict[Path, str] = {}
        self._files_below: list[tuple[Path, int]] | None = None

    def find(self, recorded: RecordedInput) -> Path | None:
        """Return the path of the file; None if it was not found."""
        return next((path for path in self._candidates(recorded) if self._matches(path, recorded)), None)

    def _candidates(self, recorded: RecordedInput) -> Iterator[Path]:
        """Yield candidates: the packed copy, the recorded path, files beside the run, then the extra paths."""
        if is_confined(self._packed, recorded.place):
            yield self._packed / recorded.place
        yield Path(recorded.path)
        for folder in self._run.parents:
            yield folder / recorded.path
        yield from _files(self._run.parent)
        if self._files_below is None:
            paths = (
                path
                for extra_path in self._extra_paths
                for path in ([extra_path] if extra_path.is_file() else _files_below(extra_path))
            )
            self._files_below = [(path, path.stat().st_size) for path in paths]
        yield from (path for path, size in self._files_below if size == recorded.size)

    def _matches(self, path: Path, recorded: RecordedInput) -> bool:
        try:
            if not path.is_file() or path.stat().st_size != recorded.size:
                return False
            if path not in self._hashes:
                self._hashes[path] = file_digest(path)["sha256"]
        except OSError:  # unreadable, or removed meanwhile
            return False
        return self._hashes[path] == recorded.sha256


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_file())
    except OSError:
        return []


def _files_below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())
