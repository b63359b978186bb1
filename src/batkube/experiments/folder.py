"""The folder of an experiment, and what it tells of runs that are over.

    DIR/experiment.json   what was run
    DIR/results.csv       what came out, and results.parquet where pyarrow is installed
    DIR/timings.csv       what it cost, in real time
    DIR/runs/NAME/        the output folder of each run
    DIR/failures/NAME.txt why a run left no output folder

A run's folder appears complete or not at all, under a name that holds its hash; so what is there is finished, and
half-written folders, hidden beside it, are what a killed experiment left.
"""

from __future__ import annotations

import contextlib
import enum
import fcntl
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from batkube.kernel.errors import InputError
from batkube.outputs.folder import MANIFEST, refuse_unwritable

DESCRIPTION = "experiment.json"
#: Locked while an experiment is run into the folder; the first file that is there.
_LOCK = ".lock"


class RunState(enum.StrEnum):
    """How a run ended."""

    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Ended:
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
        self._ended: dict[str, Ended] = {}
        if path.exists() and not path.is_dir():
            raise InputError(path, problem="is a file, not a folder", remedy="choose another --out")
        if not path.exists():
            refuse_unwritable(path)
        if path.is_dir() and any(path.iterdir()) and not any((path / name).is_file() for name in (DESCRIPTION, _LOCK)):
            problem = "exists and is not the folder of an experiment"
            raise InputError(path, problem=problem, remedy="choose another --out")

    def run_folder(self, name: str) -> Path:
        """Return where a run's outputs are, or will be."""
        return self.path / "runs" / name

    def _failure_file(self, name: str) -> Path:
        return self.path / "failures" / f"{name}.txt"

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Make the folder, keep other experiments out of it, and throw away what a killed one left half-written."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = (self.path / _LOCK).open("w")
            (self.path / "runs").mkdir(exist_ok=True)
        except OSError as error:
            problem = f"cannot be written: {error.strerror or error}"
            raise InputError(self.path, problem=problem, remedy="choose another --out") from error
        with lock:
            _lock(lock, self.path)
            for partial in sorted((self.path / "runs").glob(".*.partial-*")):
                shutil.rmtree(partial, ignore_errors=True)
            yield

    def ended(self, name: str) -> Ended | None:
        """Return how a run ended; None if it has not."""
        if name not in self._ended:
            found = self._look(name)
            if found is None:
                return None
            self._ended[name] = found
        return self._ended[name]

    def _look(self, name: str) -> Ended | None:
        manifest = self._manifest(name)
        if manifest:
            completed = manifest.get("result") == "completed"
            return Ended(
                RunState.DONE if completed else RunState.FAILED,
                None if completed else str(manifest.get("failure") or "failed"),
                manifest.get("digest"),
                manifest.get("programs", ()),
                manifest.get("real"),
            )
        file = self._failure_file(name)
        return Ended(RunState.FAILED, file.read_text(encoding="utf-8").rstrip()) if file.is_file() else None

    def _manifest(self, name: str) -> dict[str, Any]:
        try:
            content = json.loads((self.run_folder(name) / MANIFEST).read_bytes())
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}

    def record_failure(self, name: str, message: str) -> None:
        """Keep why a run failed; where the run left a folder, its manifest says it."""
        if self.ended(name) is None:
            file = self._failure_file(name)
            file.parent.mkdir(exist_ok=True)
            file.write_text(message.rstrip() + "\n", encoding="utf-8")

    @property
    def codes(self) -> list[str]:
        """Which code of ours the runs here were done with, the last one last (`own_code`)."""
        try:
            codes = json.loads((self.path / DESCRIPTION).read_bytes())["code"]
        except (OSError, ValueError, LookupError, TypeError):
            return []
        return codes if isinstance(codes, list) else []

    @property
    def is_empty(self) -> bool:
        """Whether no run is over here, be it of this experiment or of another."""
        return not any(path.exists() and any(path.iterdir()) for path in (self.path / "runs", self.path / "failures"))

    def clear(self) -> None:
        """Remove all runs, whichever experiment they are of."""
        self._ended.clear()
        for name in ("runs", "failures"):
            shutil.rmtree(self.path / name, ignore_errors=True)
        (self.path / "runs").mkdir()

    def forget(self, name: str) -> None:
        """Remove all that is there of a run, so that it can be run anew."""
        self._ended.pop(name, None)
        self._failure_file(name).unlink(missing_ok=True)
        shutil.rmtree(self.run_folder(name), ignore_errors=True)


def _lock(file: IO[str], path: Path) -> None:
    """Keep others out until `file` is closed, were it by SIGKILL."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        problem = "another experiment is being run into this folder"
        raise InputError(path, problem=problem, remedy="wait for its end, or choose another --out") from None
    except OSError:
        # A file system without locks, as some of clusters are; there it is the user's care.
        return
