"""Interval sets of machine ids, as Batsim prints them: `0-3 5 7-9`.

A set is a Python integer with one bit per id: union, intersection and difference are `|`, `&` and `& ~`, counting is
`int.bit_count`, and a set of a thousand machines takes 128 bytes.
Batsim: documentation, "Interval sets". The canonical form is disjoint, maximal and ascending; a singleton is `a`.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Iterable, Iterator

_ONE = 1


def mask_of(ids: Iterable[int]) -> int:
    """Return the set of `ids`."""
    return functools.reduce(operator.or_, map(_ONE.__lshift__, ids), 0)


def members(mask: int) -> Iterator[int]:
    """Return the ids of the set in ascending order."""
    return itertools.chain.from_iterable(range(first, last + 1) for first, last in runs(mask))


def runs(mask: int) -> Iterator[tuple[int, int]]:
    """Yield the maximal intervals (first, last) in ascending order."""
    offset = 0
    while mask:
        gap = (mask & -mask).bit_length() - 1
        mask >>= gap
        length = (~mask & (mask + 1)).bit_length() - 1
        yield offset + gap, offset + gap + length - 1
        mask >>= length
        offset += gap + length


def lowest(mask: int, count: int) -> int:
    """Return the `count` smallest ids of the set, which must have at least as many.

    Bisects on the population count of a prefix: a large set costs a few big-integer operations instead of one per id.
    """
    if count == 1:
        return mask & -mask
    low, high = count, mask.bit_length()
    while low < high:
        middle = (low + high) // 2
        if (mask & ((1 << middle) - 1)).bit_count() < count:
            low = middle + 1
        else:
            high = middle
    return mask & ((1 << low) - 1)


def format_intervals(mask: int) -> str:
    """Format the set in canonical form."""
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs(mask))


def parse_intervals(text: str) -> int:
    """Parse an interval set, canonical or not (`1-2 1-3 5`). Raises ValueError."""
    mask = 0
    for part in text.replace(",", " ").split():
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or (dash and int(last) < int(first)):
            raise ValueError(f"{part!r} is not an interval of ids; write 3 or 0-7")
        low, high = int(first), int(last) if dash else int(first)
        mask |= ((1 << (high - low + 1)) - 1) << low
    return mask
