"""First divergence of two runs: the first line at which their journals differ, and the lines before it."""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from batkube.kernel.errors import InputError

_JOURNAL, _LOG = "journal.jsonl", "scheduler/log.txt"
#: Numbers of lines shown: the last common ones, the next ones of each run, and earlier ones about the same object.
_BEFORE, _AFTER, _HISTORY = 3, 3, 10
#: klog: the process id after the time differs between any two runs.
_PROCESS = re.compile(rb"^([IWEF]\d{4} [\d:.]+) +\d+ ")


class Divergence(NamedTuple):
    """The first difference between two files of lines."""

    file: str
    #: Number of common lines before it.
    common: int
    #: The last common lines, and the next lines of each side; none if a side has ended.
    before: list[str]
    lines: tuple[list[str], list[str]]
    #: Earlier common lines about the pod or job of the first differing line.
    history: list[str]

    def describe(self, names: tuple[str, str]) -> Iterator[str]:
        """Yield lines to print; `names` are those of the runs."""
        yield f"{self.file}: the first {self.common:,} lines agree, line {self.common + 1:,} differs"
        width = max(map(len, ("both", *names)))
        for line in self.before:
            yield f"  {'both':{width}}  {line}"
        for name, side in zip(names, self.lines, strict=True):
            for line in side or ["(ends here)"]:
                yield f"  {name:{width}}  {line}"
        if self.history:
            yield "  earlier lines about the same object, in both:"
            yield from (f"    {line}" for line in self.history)


def divergences(one: Path, other: Path) -> list[Divergence]:
    """Return where the journals of two output folders diverge, and the logs of their schedulers; none if they agree."""
    for folder in (one, other):
        if not (folder / _JOURNAL).is_file():
            raise InputError(
                folder,
                problem=f"has no {_JOURNAL}, which --journal compares",
                remedy="give output folders of `batkube run`; `batkube rerun DIR --outputs all` writes a missing one",
            )
    differences = [_first_difference(_JOURNAL, one / _JOURNAL, other / _JOURNAL, bytes.rstrip)]
    if (one / _LOG).is_file() and (other / _LOG).is_file():
        differences.append(_first_difference(_LOG, one / _LOG, other / _LOG, _without_process))
    return [difference for difference in differences if difference is not None]


def _first_difference(name: str, one: Path, other: Path, normalised: Callable[[bytes], bytes]) -> Divergence | None:
    with one.open("rb") as first, other.open("rb") as second:
        before: deque[bytes] = deque(maxlen=_BEFORE)
        pairs = itertools.zip_longest(map(normalised, first), map(normalised, second))
        for common, (left, right) in enumerate(pairs):
            if left != right:
                sides = (
                    _following_lines(left, map(normalised, first)),
                    _following_lines(right, map(normalised, second)),
                )
                history = _history(one, common, _objects_of(left or b"") | _objects_of(right or b""))
                return Divergence(name, common, _texts(before), sides, history)
            before.append(left)
    return None


def _without_process(line: bytes) -> bytes:
    return _PROCESS.sub(rb"\1 ", line).rstrip()


def _following_lines(line: bytes | None, rest: Iterator[bytes]) -> list[str]:
    return [] if line is None else _texts([line, *itertools.islice(rest, _AFTER - 1)])


def _texts(lines: Iterable[bytes]) -> list[str]:
    return [line.decode("utf-8", "replace") for line in lines]


def _objects_of(line: bytes) -> set[tuple[str, str]]:
    """Return the pod and the job of a journal line; nothing for a line of a log."""
    try:
        entry = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return set()
    return {(key, entry[key]) for key in ("pod", "job") if isinstance(entry, dict) and key in entry}


def _history(path: Path, common: int, objects: set[tuple[str, str]]) -> list[str]:
    if not objects:
        return []
    with path.open("rb") as lines:
        about = (line.rstrip() for line in itertools.islice(lines, common) if _objects_of(line) & objects)
        return _texts(deque(about, maxlen=_HISTORY))
