"""First divergence of two runs: the first line at which their journals differ, with earlier lines of each side.

The logs of their programs are compared as well, line by line.
"""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from batkube.kernel.errors import InputError
from batkube.kernel.intervals import members, parse_intervals

_JOURNAL, _LOGS = "journal.jsonl", "scheduler/**/log.txt"
#: Numbers of lines shown: the last common ones, the next ones of each run, and earlier ones about the same objects.
_BEFORE, _AFTER, _HISTORY = 3, 3, 10
#: klog: the process id after the time, which differs between any two runs.
_PROCESS = re.compile(rb"^([IWEF]\d{4} [\d:.]+) +\d+ ")
#: klog's structured lines name objects so; a pod with its namespace.
_NAMED = re.compile(rb'\b(pod|node|job)="?([^\s",]+)')

ObjectName = tuple[str, str | int]
"""A kind of object and a name or a number."""


class Divergence(NamedTuple):
    """The first difference between two files of lines."""

    file: str
    #: Number of common lines before it.
    common: int
    #: The last common lines, and the next lines of each side; none if a side has ended, None if it has no such file.
    before: list[str]
    lines: tuple[list[str] | None, list[str] | None]
    #: For each side, earlier common lines about the objects of its first differing line.
    histories: tuple[list[str], list[str]]

    def describe(self, names: tuple[str, str]) -> Iterator[str]:
        """Yield lines to print; `names` are those of the runs."""
        yield f"{self.file}: line {self.common + 1:,} is the first that differs"
        width = max(map(len, ("both", *names)))
        for line in self.before:
            yield f"  {'both':{width}}  {line}"
        for name, side in zip(names, self.lines, strict=True):
            for line in ["(no such file)"] if side is None else side or ["(ends here)"]:
                yield f"  {name:{width}}  {line}"
        one, other = self.histories
        if one == other:
            yield from _titled("earlier lines about the same objects", one)
        else:
            for name, history in zip(names, self.histories, strict=True):
                yield from _titled(f"earlier lines about the objects that {name} names", history)


def _titled(title: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield f"  {title}, in both runs:"
        yield from (f"    {line}" for line in lines)


def divergences(one: Path, other: Path) -> list[Divergence]:
    """Return where the journals of two output folders diverge, and the logs of their programs; none if they agree."""
    for folder in (one, other):
        if not (folder / _JOURNAL).is_file():
            raise InputError(
                folder,
                problem=f"has no {_JOURNAL}, which --journal compares",
                remedy="use output folders of `batkube run`; `batkube rerun DIR --outputs all` writes a journal",
            )
    logs = {str(path.relative_to(folder)) for folder in (one, other) for path in folder.glob(_LOGS)}
    differences = [_first_difference(_JOURNAL, one, other, bytes.rstrip, _objects_in_entry)]
    differences += [_first_difference(log, one, other, _without_process, _objects_in_log) for log in sorted(logs)]
    return [difference for difference in differences if difference is not None]


def _first_difference(
    name: str,
    one: Path,
    other: Path,
    normalised: Callable[[bytes], bytes],
    objects_in: Callable[[bytes], set[ObjectName]],
) -> Divergence | None:
    paths = one / name, other / name
    if not all(path.is_file() for path in paths):
        left_side, right_side = (["(has one)"] if path.is_file() else None for path in paths)
        return Divergence(name, 0, [], (left_side, right_side), ([], []))
    with paths[0].open("rb") as first, paths[1].open("rb") as second:
        before: deque[bytes] = deque(maxlen=_BEFORE)
        pairs = itertools.zip_longest(map(normalised, first), map(normalised, second))
        for common, (left, right) in enumerate(pairs):
            if left != right:
                sides = (
                    _following_lines(left, map(normalised, first)),
                    _following_lines(right, map(normalised, second)),
                )
                one_history, other_history = (_history(paths[0], common, line, objects_in) for line in (left, right))
                return Divergence(name, common, _texts(before), sides, (one_history, other_history))
            before.append(left)
    return None


def _without_process(line: bytes) -> bytes:
    return _PROCESS.sub(rb"\1 ", line).rstrip()


def _following_lines(line: bytes | None, rest: Iterator[bytes]) -> list[str]:
    return [] if line is None else _texts([line, *itertools.islice(rest, _AFTER - 1)])


def _texts(lines: Iterable[bytes]) -> list[str]:
    return [line.decode("utf-8", "replace") for line in lines]


def _objects_in_entry(line: bytes) -> set[ObjectName]:
    """Return the pods, jobs, nodes and machines named in a line of a journal."""
    try:
        entry = msgspec.json.decode(line, type=dict[str, object])
    except msgspec.MsgspecError:
        return set()
    objects: set[ObjectName] = {(kind, str(entry[kind])) for kind in ("pod", "job", "node") if kind in entry}
    machines = members(parse_intervals(str(entry.get("machines", ""))))
    return objects | {("machine", number) for number in machines}


def _objects_in_log(line: bytes) -> set[ObjectName]:
    """Return the pods, jobs and nodes named in a line of a log."""
    return {(kind.decode(), name.decode("utf-8", "replace")) for kind, name in _NAMED.findall(line)}


def _history(path: Path, common: int, line: bytes | None, objects_in: Callable[[bytes], set[ObjectName]]) -> list[str]:
    """Return the last of the first `common` lines of a file that name an object of `line`."""
    objects = objects_in(line or b"")
    if not objects:
        return []
    with path.open("rb") as lines:
        related = (earlier.rstrip() for earlier in itertools.islice(lines, common) if objects_in(earlier) & objects)
        return _texts(deque(related, maxlen=_HISTORY))
