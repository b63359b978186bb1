"""The folder of an experiment, and the state of its runs.

    DIR/experiment.json   the experiment and the state of its runs
    DIR/results.csv       the results, also as results.parquet if pyarrow is installed
    DIR/timings.csv       the cost of the runs, in real time
    DIR/runs/NAME/        the output folder of each run; if it left none, a manifest with the reason
    DIR/set-aside/NAME/   a damaged run that was repeated

A run's folder appears complete or not at all, under a name that contains its hash, so an existing folder is a finished
run. Before it counts as finished, its files are compared with the list in its manifest. Only runs are ever removed, and
only the files that they wrote (`outputs.files.manifest`).
"""

from __future__ import annotations

import contextlib
import enum
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import IO, Any

from batkube.files.locks import open_lock_file, try_lock
from batkube.kernel.errors import InputError
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

#: The files of the experiment beside the folders of its runs.
DESCRIPTION_FILE, RESULTS_FILE, TIMINGS_FILE, PARQUET_FILE = (
    "experiment.json",
    "results.csv",
    "timings.csv",
    "results.parquet",
)
#: Key of experiment.json with the version that wrote it, which identifies the file as ours.
VERSION_KEY = "batkube"
#: Locked while an experiment writes into the folder; the first file in it.
_LOCK = ".lock"


class RunState(enum.StrEnum):
    """How a run ended."""

    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A finished run, with data of its manifest; a run that left no folder has only a failure."""

    state: RunState
    #: The failure message; None if the run completed.
    failure: str | None = None
    digest: str | None = None
    #: The external programs.
    programs: Sequence[Mapping[str, Any]] = ()
    #: Its cost in real time.
    real: Mapping[str, Any] | None = None


class ExperimentFolder:
    """The folder of one experiment."""

    def __init__(self, path: Path) -> None:
        """Check `path`. Raises InputError if it exists and is not the folder of an experiment."""
        self.path = path
        #: Cache of finished runs.
        self._finished: dict[str, FinishedRun] = {}
        if path.exists() and not path.is_dir():
            raise InputError(path, problem="is a file, not a folder", remedy="choose another --out")
        if not path.exists():
            check_writable(path)
        if path.is_dir() and not (self._is_new or VERSION_KEY in self._description):
            problem = "exists and is not the folder of an experiment"
            raise InputError(path, problem=problem, remedy="choose another --out")

    @property
    def _is_new(self) -> bool:
        """Whether the folder contains at most a lock file and an empty folder of runs, which are created first."""
        runs = self.path / "runs"
        return {entry.name for entry in self.path.iterdir()} <= {_LOCK, runs.name} and not any(self._runs)

    @property
    def _description(self) -> dict[str, Any]:
        """The content of experiment.json; empty if it is missing or unreadable."""
        try:
            content = json.loads((self.path / DESCRIPTION_FILE).read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        return content if isinstance(content, dict) else {}

    @property
    def _runs(self) -> list[Path]:
        """Everything in the folder of runs, also runs of another experiment."""
        runs = self.path / "runs"
        return sorted(runs.iterdir()) if runs.is_dir() else []

    def run_folder(self, name: str) -> Path:
        """Return the output folder of a run, which may not exist yet."""
        return run_folder(self.path, name)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Create the folder, lock it against other experiments, and remove partial outputs of a killed one."""
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
        """Return the state of a finished run; None if it is not finished."""
        if name not in self._finished:
            run = self._read_finished_run(name)
            if run is None:
                return None
            self._finished[name] = run
        return self._finished[name]

    def _read_finished_run(self, name: str) -> FinishedRun | None:
        manifest = read_manifest(self.run_folder(name))
        if not manifest:
            return None
        is_completed = manifest.get("result") == "completed"
        return FinishedRun(
            RunState.DONE if is_completed else RunState.FAILED,
            None if is_completed else str(manifest.get("failure") or "failed"),
            manifest.get("digest"),
            manifest.get("programs", ()),
            manifest.get("real"),
        )

    def move_damaged_aside(self, names: Iterable[str]) -> Iterator[str]:
        """Move away runs whose files are not as written, so that they are repeated; yield a message for each."""
        for name in names:
            folder = self.run_folder(name)
            damage = _describe_damage(folder) if os.path.lexists(folder) else ""
            if damage:
                self._finished.pop(name, None)
                yield f"damaged: {folder}: {damage}; it is kept as {self._move_aside(folder)}, and run again"

    def _move_aside(self, folder: Path) -> Path:
        aside = self.path / "set-aside"
        aside.mkdir(exist_ok=True)
        candidates = (aside / f"{folder.name}{'' if n == 1 else f'-{n}'}" for n in count(1))
        return folder.rename(next(path for path in candidates if not os.path.lexists(path)))

    def record_failure(self, name: str, message: str) -> None:
        """Record the reason of a failed run, unless the run left a folder, whose manifest has it."""
        if self.finished_run(name) is None:
            folder = OutputFolder(self.run_folder(name))
            with folder.writing():
                folder.seal({VERSION_KEY: __version__, "result": "failed", "failure": message.rstrip()})

    @property
    def code_digests(self) -> list[str]:
        """Digests of the code that executed the runs here, the latest one last (`code_digest`)."""
        codes = self._description.get("code")
        return codes if isinstance(codes, list) else []

    @property
    def is_empty(self) -> bool:
        """Whether the folder has no finished runs, not even of another experiment."""
        return not any(map(read_manifest, self._runs))

    def remove_all_runs(self) -> None:
        """Remove all runs, also those of another experiment."""
        self.remove_runs(folder.name for folder in self._runs if read_manifest(folder))

    def remove_runs(self, names: Iterable[str]) -> None:
        """Remove runs, so that they are repeated. Raises InputError, and removes none, if one contains other files."""
        folders = [self.run_folder(name) for name in names]
        for path in (self.path, self.path / "runs", *folders):
            check_not_link(path)
        listings = {folder: file_list_of_run(folder) for folder in folders}
        for folder, listing in listings.items():
            check_only_run_files(folder, listing)
        for folder, listing in listings.items():
            self._finished.pop(folder.name, None)
            listing.remove(folder)


def run_folder(experiment: Path, name: str) -> Path:
    """Return the output folder of a run in the folder of an experiment."""
    return experiment / "runs" / name


def _describe_damage(folder: Path) -> str:
    """Describe what is wrong with the files of a run; empty if they are as written."""
    listing = file_list_in(read_manifest(folder))
    if listing is None:
        return f"{MANIFEST} is missing, or is not what the run wrote"
    damaged = listing.damaged(folder)
    return f"{', '.join(damaged)} {'is' if len(damaged) == 1 else 'are'} not what the run wrote" if damaged else ""


def _lock(file: IO[bytes], path: Path) -> None:
    """Lock `file` until it is closed, also by SIGKILL."""
    try:
        is_locked = try_lock(file)
    except OSError:
        # A file system without locks (some network ones): there it is the user's responsibility.
        return
    if not is_locked:
        problem = "another experiment is writing into this folder"
        raise InputError(path, problem=problem, remedy="wait for its end, or choose another --out")
