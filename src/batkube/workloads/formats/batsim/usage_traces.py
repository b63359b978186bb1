"""Read usage traces: the computations of each process of a job, step by step (Batsim: profile type `usage_trace`).

A profile refers to a file that lists one file per process. Paths are relative to the file that contains them. A line of
a process file is

    RANK m_usage SHARE FLOPS        SHARE of the host's cores are busy until each has computed FLOPS
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

from batkube.kernel.errors import InputError
from batkube.workloads.files import read_bytes
from batkube.workloads.model import Composed, Profile, RawProfile

#: The profile type in Batsim's workloads.
USAGE_TRACE = "usage_trace"
_ACTION = "m_usage"


class UsageStep(NamedTuple):
    """A share of a host's cores, and the flops that each of them computes."""

    share: float
    flops: float


UsageTrace = tuple[tuple[UsageStep, ...], ...]
"""The steps of each process."""


class UsageTraces:
    """The usage traces of profiles; each file is read once."""

    def __init__(self) -> None:
        self._files: dict[Path, UsageTrace] = {}
        #: By id() of the profile, because the same name can mean different files in two workloads.
        self._by_profile: dict[int, UsageTrace] = {}

    def load(self, profile: Profile, folder: Path) -> None:
        """Read the traces of a profile and its parts; paths are relative to `folder`. Raises InputError."""
        if isinstance(profile, Composed):
            for part in profile.parts:
                self.load(part, folder)
        elif isinstance(profile, RawProfile) and profile.kind == USAGE_TRACE:
            path = folder / str(profile.fields.get("trace", ""))
            if path not in self._files:
                self._files[path] = read_usage_trace(path)
            self._by_profile[id(profile)] = self._files[path]

    def trace(self, profile: RawProfile) -> UsageTrace:
        """Return the trace of a profile that was loaded."""
        return self._by_profile[id(profile)]


def read_usage_trace(path: Path) -> UsageTrace:
    """Return the steps of each process, from the files that `path` lists. Raises InputError."""
    return tuple(map(_steps, trace_files(path)))


def trace_files(path: Path) -> list[Path]:
    """Return the files of the processes, which `path` lists. Raises InputError."""
    names = [line for line in _text(path).split("\n") if line.strip()]
    if not names:
        raise InputError(path, problem="lists no trace", remedy="write one file name per line, one for each process")
    return [path.parent / name.strip() for name in names]


def _steps(path: Path) -> tuple[UsageStep, ...]:
    lines = enumerate(_text(path).split("\n"), 1)
    return tuple(_step(path, number, line) for number, line in lines if line.strip() and not line.startswith("#"))


def _step(path: Path, number: int, line: str) -> UsageStep:
    words = line.split()
    try:
        share, flops = (float(word) for word in words[2:4])
    except ValueError:
        share, flops = math.nan, math.nan
    if len(words) < 4 or words[1] != _ACTION or not 0 <= share <= 1 or not 0 <= flops < math.inf:
        raise InputError(
            path,
            at=f"line {number}",
            problem=f"{line.strip()!r} is not a step of a usage trace",
            remedy=f"write RANK {_ACTION} SHARE FLOPS, with a share from 0 to 1",
        )
    return UsageStep(share, flops)


def _text(path: Path) -> str:
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(path, problem="is not UTF-8 text") from None
