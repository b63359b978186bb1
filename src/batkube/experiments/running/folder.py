"""The folder of an experiment, and what it tells of runs that are over.

    DIR/experiment.json   what was run
    DIR/results.csv       what came out, and results.parquet where pyarrow is installed
    DIR/timings.csv       what it cost, in real time
    DIR/runs/NAME/        the output folder of each run; of one that left nothing, a manifest that says why
    DIR/set-aside/NAME/   a run that was found damaged, and was done again

A run's folder appears complete or not at all, under a name that holds its hash; so what is there is finished. Before
it is counted as such, its files are compared with what its manifest says of them. Only runs are ever removed, and only
what they wrote (`outputs.manifest`).
"""

from __future__ import annotations

import contextlib
import enum
import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import IO, Any

from batkube.kernel.errors import InputError
from batkube.kernel.files.locks import open_lock_file
from batkube.outputs.files.folder import (
    OutputFolder,
    check_not_link,
    check_only_run_files,
    check_writable,
    file_list_of_run,
)
from batkube.outputs.files.manifest import MANIFEST, file_list_in, read_manifest
from batkube.outputs.files.partial_folder import remove_abandoned
from batkube.version import __version__

#: The files that are written when runs are over, beside the folders of the runs themselves.
DESCRIPTION_FILE, RESULTS_FILE, TIMINGS_FILE, PARQUET_FILE = (
    "experiment.json",
    "results.csv",
    "timings.csv",
    "results.parquet",
)
#: What marks the description as ours: which version wrote it.
VERSION_KEY = "batkube"
#: Locked while an experiment is run into the folder; the first file that is there.
_LOCK = ".lock"


class RunState(enum.StrEnum):
    """How a run ended."""

    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run that is over, with what its manifest says of it; a run that left no folder has only a failure."""

    state: RunState
    #: What went wrong; None if nothing did.
    failure: str | None = None
    digest: str | None = None
    #: The outside programs.
    programs: Sequence[Mapping[str, Any]] = ()
    #: What it cost.
    real: Mapping[str, Any] | None = None


class ExperimentFolder:
    """The folder of one experiment."""

    def __init__(self, path: Path) -> None:
        """Raises InputError when `path` is there and is not the folder of an experiment."""
        self.path = path
        #: The runs that were found to be over.
        self._ended: dict[str, FinishedRun] = {}
        if path.exists() and not path.is_dir():
            raise InputError(path, problem="is a file, not a folder", remedy="choose another --out")
        if not path.exists():
            check_writable(path)
        if path.is_dir() and not (self._is_new or VERSION_KEY in self._description):
            problem = "exists and is not the folder of an experiment"
            raise InputError(path, problem=problem, remedy="choose another --out")

    @property
    def _is_new(self) -> bool:
        """Whether nothing has been written here but what comes before the description."""
        runs = self.path / "runs"
        return {entry.name for entry in self.path.iterdir()} <= {_LOCK, runs.name} and not any(self._runs)

    @property
    def _description(self) -> dict[str, Any]:
        """What experiment.json holds; nothing when there is none that can be read."""
        try:
            content = json.loads((self.path / DESCRIPTION_FILE).read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        return content if isinstance(content, dict) else {}

    @property
    def _runs(self) -> list[Path]:
        """All that lies where the folders of runs do, be they of this experiment or of another."""
        runs = self.path / "runs"
        return sorted(runs.iterdir()) if runs.is_dir() else []

    def run_folder(self, name: str) -> Path:
        """Return where a run's outputs are, or will be."""
        return run_folder(self.path, name)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Make the folder, keep other experiments out of it, and throw away what a killed one left half-written."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = open_lock_file(self.path / _LOCK)
            (self.path / "runs").mkdir(exist_ok=True)
        except OSError as error:
            problem = f"cannot be written: {error.strerror or error}"
            raise InputError(self.path, problem=problem, remedy="choose another --out") from error
        with lock:
            _lock(lock, self.path)
            remove_abandoned(self.path / "runs")
            yield

    def finished_run(self, name: str) -> FinishedRun | None:
        """Return how a run ended; None if it has not."""
        if name not in self._ended:
            end = self._read_finished_run(name)
            if end is None:
                return None
            self._ended[name] = end
        return self._ended[name]

    def _read_finished_run(self, name: str) -> FinishedRun | None:
        manifest = read_manifest(self.run_folder(name))
        if not manifest:
            return None
        completed = manifest.get("result") == "completed"
        return FinishedRun(
            RunState.DONE if completed else RunState.FAILED,
            None if completed else str(manifest.get("failure") or "failed"),
            manifest.get("digest"),
            manifest.get("programs", ()),
            manifest.get("real"),
        )

    def move_damaged_aside(self, names: Iterable[str]) -> Iterator[str]:
        """Move away the runs that are not what was written, so that they are done again; yield what to tell of each."""
        for name in names:
            folder = self.run_folder(name)
            damage = _describe_damage(folder) if os.path.lexists(folder) else ""
            if damage:
                self._ended.pop(name, None)
                yield f"damaged: {folder}: {damage}; it is kept as {self._move_aside(folder)}, and run again"

    def _move_aside(self, folder: Path) -> Path:
        aside = self.path / "set-aside"
        aside.mkdir(exist_ok=True)
        places = (aside / f"{folder.name}{'' if n == 1 else f'-{n}'}" for n in count(1))
        return folder.rename(next(place for place in places if not os.path.lexists(place)))

    def record_failure(self, name: str, message: str) -> None:
        """Keep why a run failed; where the run left a folder, its manifest says it."""
        if self.finished_run(name) is None:
            folder = OutputFolder(self.run_folder(name))
            with folder.writing():
                folder.seal({VERSION_KEY: __version__, "result": "failed", "failure": message.rstrip()})

    @property
    def code_digests(self) -> list[str]:
        """Which code of ours the runs here were done with, the last one last (`code_digest`)."""
        codes = self._description.get("code")
        return codes if isinstance(codes, list) else []

    @property
    def is_empty(self) -> bool:
        """Whether no run is over here, be it of this experiment or of another."""
        return not any(map(read_manifest, self._runs))

    def remove_all_runs(self) -> None:
        """Remove all runs, whichever experiment they are of."""
        self.remove_runs(folder.name for folder in self._runs if read_manifest(folder))

    def remove_runs(self, names: Iterable[str]) -> None:
        """Remove runs, so that they can be run anew. Raises InputError if one holds more than it wrote: all stay."""
        folders = [self.run_folder(name) for name in names]
        for path in (self.path, self.path / "runs", *folders):
            check_not_link(path)
        listings = {folder: file_list_of_run(folder) for folder in folders}
        for folder, listing in listings.items():
            check_only_run_files(folder, listing)
        for folder, listing in listings.items():
            self._ended.pop(folder.name, None)
            listing.remove(folder)


def run_folder(experiment: Path, name: str) -> Path:
    """Return where the outputs of a run are, in the folder of an experiment."""
    return experiment / "runs" / name


def _describe_damage(folder: Path) -> str:
    """Say what is wrong with the files of a run; nothing if they are what it wrote."""
    listing = file_list_in(read_manifest(folder))
    if listing is None:
        return f"{MANIFEST} is missing, or is not what the run wrote"
    damaged = listing.damaged(folder)
    return f"{', '.join(damaged)} {'is' if len(damaged) == 1 else 'are'} not what the run wrote" if damaged else ""


def _lock(file: IO[bytes], path: Path) -> None:
    """Keep others out until `file` is closed, were it by SIGKILL."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        problem = "another experiment is being run into this folder"
        raise InputError(path, problem=problem, remedy="wait for its end, or choose another --out") from None
    except OSError:
        # A file system without locks, as some of clusters are; there it is the user's care.
        return
