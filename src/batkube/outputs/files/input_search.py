"""Find the input files of an earlier run by hash, so that a different file of the same name is not taken for one.

Nearby paths come first, and only files of the right size are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

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

    def __init__(self, run: Path, pack: str, more: Sequence[Path]) -> None:
        """`pack` is the folder inside the run's that may hold copies; `more` are files, and folders to search."""
        self._run = run.absolute()
        self._packed = self._run / pack
        self._extra_paths = more
        self._hashes: dict[Path, str] = {}
        self._files_below: list[tuple[Path, int]] | None = None

    def find(self, wanted: RecordedInput) -> Path | None:
        """Return the path of the file; None if it was not found."""
        return next((path for path in self._candidates(wanted) if self._matches(path, wanted)), None)

    def _candidates(self, wanted: RecordedInput) -> Iterator[Path]:
        """Yield candidates: the packed copy, the recorded path, files beside the run, then `more`."""
        yield self._packed / wanted.place
        yield Path(wanted.path)
        for folder in self._run.parents:
            yield folder / wanted.path
        yield from _files(self._run.parent)
        if self._files_below is None:
            paths = (
                path for place in self._extra_paths for path in ([place] if place.is_file() else _files_below(place))
            )
            self._files_below = [(path, path.stat().st_size) for path in paths]
        yield from (path for path, size in self._files_below if size == wanted.size)

    def _matches(self, path: Path, wanted: RecordedInput) -> bool:
        try:
            if not path.is_file() or path.stat().st_size != wanted.size:
                return False
            if path not in self._hashes:
                self._hashes[path] = file_digest(path)["sha256"]
        except OSError:  # unreadable, or removed meanwhile
            return False
        return self._hashes[path] == wanted.sha256


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_file())
    except OSError:
        return []


def _files_below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())
