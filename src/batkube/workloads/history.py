"""The history of a workload file: the commands that made it, each with its options, its sources and what it changed.

A converted trace differs from the original. Its header therefore has a *step* for each command, oldest first, as a line
of JSON: in comments of SWF and manifests, in a key of Batsim JSON. A conversion of a converted file keeps the steps.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from batkube.kernel.fidelity import FidelityNote
from batkube.workloads.files import STANDARD_INPUT, raw_bytes

#: The label of a step in the comments of a file, and the key of all steps in Batsim JSON.
STEP_LABEL, HISTORY_KEY = "BatkubeStep", "batkube_history"
UNREADABLE_STEP = FidelityNote("workload", "a step of the file's history is not readable and was left out")
#: The length to which hashes are shortened in sentences; enough to identify a file.
HASH_CHARACTERS = 12


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a step read."""

    #: Without its folder, which differs between machines.
    name: str
    sha256: str


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One command that made the workload from its sources."""

    #: Such as `batkube workload convert`.
    command: str
    #: The version of Batkube.
    batkube: str
    #: The options that affect the content, as words of the command line.
    options: tuple[str, ...] = ()
    #: The input first; empty for generated workloads.
    sources: tuple[Source, ...] = ()
    #: The number of jobs that were written.
    jobs: int
    #: By what was changed, such as `walltimes replaced`, the number of jobs.
    changes: dict[str, int] = {}
    #: By message, the number of occurrences: what the reader left out or assumed, and what the writer lost.
    notes: dict[str, int] = {}

    @property
    def command_line(self) -> str:
        """The command with its options, as for a shell."""
        return shlex.join([*self.command.split(), *self.options])

    @property
    def counts(self) -> list[str]:
        """The counts of changes and of notes, as phrases."""
        changes = [f"{count:,} {what}" for what, count in self.changes.items()]
        return [*changes, *(f"{count:,} × {message}" for message, count in self.notes.items())]

    def __str__(self) -> str:
        sources = ", ".join(f"{source.name} (SHA-256 {source.sha256[:HASH_CHARACTERS]})" for source in self.sources)
        counts = "; ".join(self.counts)
        origin = f" of {sources}" if sources else ""
        return f"{self.command_line}{origin}: {self.jobs:,} jobs{f'; {counts}' if counts else ''}"


def source_of(path: Path) -> Source:
    """Return the name and the hash of an input file; `-` is standard input."""
    if path == STANDARD_INPUT:
        return Source(name="standard input", sha256=hashlib.sha256(raw_bytes(path)).hexdigest())
    with path.open("rb") as file:
        return Source(name=path.name, sha256=hashlib.file_digest(file, "sha256").hexdigest())


def step_text(step: Step) -> str:
    """Return a step as one line of JSON."""
    return msgspec.json.encode(step).decode()


def steps_in(values: Iterable[str]) -> tuple[tuple[Step, ...], int]:
    """Parse steps from lines of JSON. Also return the number of steps that are not readable."""
    return _readable(lambda value: msgspec.json.decode(value, type=Step), values)


def converted_steps(values: object) -> tuple[tuple[Step, ...], int]:
    """Convert steps from decoded JSON. Also return the number of steps that are not readable."""
    if not isinstance(values, list):
        return (), int(values is not None)
    return _readable(lambda value: msgspec.convert(value, Step), values)


def step_values(history: Sequence[Step]) -> list[dict[str, Any]]:
    """Return steps as JSON values."""
    return [msgspec.to_builtins(step) for step in history]


def commented_steps(lines: Iterable[str]) -> Iterator[str]:
    """Yield the JSON of the steps in the `#` comments at the top of a file."""
    prefix = f"# {STEP_LABEL}: "
    for line in lines:
        if not line.startswith("#"):
            return
        if line.startswith(prefix):
            yield line.removeprefix(prefix)


def _readable(parse: Callable[[Any], Step], values: Iterable[Any]) -> tuple[tuple[Step, ...], int]:
    steps, unreadable = [], 0
    for value in values:
        try:
            steps.append(parse(value))
        except (msgspec.DecodeError, ValueError, RecursionError):
            unreadable += 1
    return tuple(steps), unreadable
