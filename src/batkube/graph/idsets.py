"""Sets of numbers and lists of hosts, as Flux writes them: `0-3,7` and `node[0-3,7]` (RFC 22 and 29)."""

from __future__ import annotations

import re
from collections.abc import Iterable

#: More ids than any set may have: `0-4000000000` is a slip, not a cluster.
_IDS_MAX = 10_000_000
_RANGE = re.compile(r"(\d{1,10})(?:-(\d{1,10}))?")
_BRACKETS = re.compile(r"([^\[\],\s]*)(?:\[([^\[\]]*)\]([^\[\],\s]*))?")


def decode_idset(text: str) -> list[int]:
    """Return the numbers of an idset, in order. Raises ValueError for what is none."""
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    ids: set[int] = set()
    for part in filter(None, (piece.strip() for piece in inner.split(","))):
        low, high, _ = _bounds(part)
        if high - low + len(ids) > _IDS_MAX:
            raise ValueError(f"the idset {text!r} has more than {_IDS_MAX:,} ids")
        ids.update(range(low, high + 1))
    return sorted(ids)


def encode_idset(ids: Iterable[int]) -> str:
    """Write numbers as an idset: runs of three and more, and of two, become ranges."""
    return ",".join(_run_text(run, 0) for run in _runs(sorted(ids), strictly=False))


def decode_hostlist(text: str) -> list[str]:
    """Return the hosts of a hostlist, in the order in which they are named. Raises ValueError for what is none."""
    hosts: list[str] = []
    for part in _split_hostlist(text):
        shape = _BRACKETS.fullmatch(part)
        if shape is None:
            raise ValueError(f"{text!r} is not a hostlist")
        prefix, ranges, suffix = shape.groups()
        if ranges is None:
            hosts.append(prefix)
            continue
        for piece in ranges.split(","):
            low, high, width = _bounds(piece)
            if high - low + len(hosts) > _IDS_MAX:
                raise ValueError(f"the hostlist {text!r} has more than {_IDS_MAX:,} hosts")
            hosts.extend(f"{prefix}{number:0{width}d}{suffix}" for number in range(low, high + 1))
    return hosts


def encode_hostlist(hosts: Iterable[str]) -> str:
    """Write hosts as a hostlist; those that follow each other and differ in their last number share brackets."""
    groups: list[tuple[str, int, list[int]]] = []
    for host in hosts:
        prefix, digits = split_host(host)
        width = len(digits) if digits.startswith("0") and len(digits) > 1 else 0
        if digits and groups and groups[-1][0] == prefix and groups[-1][1] == width and groups[-1][2]:
            groups[-1][2].append(int(digits))
        else:
            groups.append((prefix, width, [int(digits)] if digits else []))
    return ",".join(_group_text(*group) for group in groups)


def split_host(host: str) -> tuple[str, str]:
    """Part a host's name from the digits at its end."""
    prefix = host.rstrip("0123456789")
    return prefix, host[len(prefix) :]


def _group_text(prefix: str, width: int, numbers: list[int]) -> str:
    if not numbers:
        return prefix
    runs = ",".join(_run_text(run, width) for run in _runs(numbers, strictly=True))
    return f"{prefix}{numbers[0]:0{width}d}" if len(numbers) == 1 else f"{prefix}[{runs}]"


def _runs(numbers: list[int], *, strictly: bool) -> list[tuple[int, int]]:
    """Part numbers into runs of consecutive ones; `strictly` keeps repeated numbers apart."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and (number == runs[-1][1] + 1 or (number == runs[-1][1] and not strictly)):
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def _run_text(run: tuple[int, int], width: int) -> str:
    low, high = run
    return f"{low:0{width}d}" if low == high else f"{low:0{width}d}-{high:0{width}d}"


def _bounds(text: str) -> tuple[int, int, int]:
    """Return the ends of a range, and how wide its numbers are padded with zeros."""
    shape = _RANGE.fullmatch(text.strip())
    if shape is None or int(shape[2] or shape[1]) < int(shape[1]):
        raise ValueError(f"{text!r} is not a range of ids")
    return int(shape[1]), int(shape[2] or shape[1]), len(shape[1]) if shape[1].startswith("0") else 0


def _split_hostlist(text: str) -> list[str]:
    """Part a hostlist at the commas outside brackets."""
    parts, depth, start = [], 0, 0
    for index, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]
