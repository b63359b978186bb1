"""Idsets and hostlists in Flux's notation: `0-3,7` (RFC 22) and `node[0-3,7]` (RFC 29)."""

from __future__ import annotations

import re
from collections.abc import Iterable

#: The maximum size of a set. A typo such as `0-4000000000` would otherwise exhaust the memory.
_IDS_MAX = 10_000_000
_RANGE = re.compile(r"(\d{1,10})(?:-(\d{1,10}))?")
_BRACKETS = re.compile(r"([^\[\],\s]*)(?:\[([^\[\]]*)\]([^\[\],\s]*))?")


def decode_idset(text: str) -> list[int]:
    """Return the ids of an idset in ascending order. Raises ValueError if `text` is not an idset."""
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    ids: set[int] = set()
    for part in filter(None, (piece.strip() for piece in inner.split(","))):
        low, high, _ = _bounds(part)
        if high - low + len(ids) > _IDS_MAX:
            raise ValueError(f"the idset {text!r} has more than {_IDS_MAX:,} ids")
        ids.update(range(low, high + 1))
    return sorted(ids)


def encode_idset(ids: Iterable[int]) -> str:
    """Return ids as an idset, with ranges for consecutive ids."""
    return ",".join(_run_text(run, 0) for run in _runs(sorted(ids), strictly=False))


def decode_hostlist(text: str) -> list[str]:
    """Return the hosts of a hostlist, in its order. Raises ValueError if `text` is not a hostlist."""
    hosts: list[str] = []
    for part in _split_hostlist(text):
        match = _BRACKETS.fullmatch(part)
        if match is None:
            raise ValueError(f"{text!r} is not a hostlist")
        prefix, ranges, suffix = match.groups()
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
    """Return hosts as a hostlist. Neighbours that differ only in consecutive numbers share brackets."""
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
    """Split a host name into its prefix and the digits at its end."""
    prefix = host.rstrip("0123456789")
    return prefix, host[len(prefix) :]


def _group_text(prefix: str, width: int, numbers: list[int]) -> str:
    if not numbers:
        return prefix
    runs = ",".join(_run_text(run, width) for run in _runs(numbers, strictly=True))
    return f"{prefix}{numbers[0]:0{width}d}" if len(numbers) == 1 else f"{prefix}[{runs}]"


def _runs(numbers: list[int], *, strictly: bool) -> list[tuple[int, int]]:
    """Split numbers into runs of consecutive ones; `strictly` splits at repeated numbers too."""
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
    """Return the first and last id of a range, and the width to which ids are padded with zeros."""
    match = _RANGE.fullmatch(text.strip())
    if match is None or int(match[2] or match[1]) < int(match[1]):
        raise ValueError(f"{text!r} is not a range of ids")
    return int(match[1]), int(match[2] or match[1]), len(match[1]) if match[1].startswith("0") else 0


def _split_hostlist(text: str) -> list[str]:
    """Split a hostlist at the commas outside brackets."""
    parts, depth, start = [], 0, 0
    for index, character in enumerate(text):
        depth += (character == "[") - (character == "]")
        if character == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]
