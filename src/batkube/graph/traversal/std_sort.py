"""The order of candidates with equal scores.

Fluxion sorts with C++'s `std::sort`, which leaves open what becomes of equal elements: in practice it is what GNU's
library does, an introsort. Up to sixteen elements that is an insertion sort, which keeps equal ones in order. More are
first partitioned around the median of three until no part has more than sixteen, and that is repeated here step by
step, because equal scores are common (every node has a core 0) and decide which node a job gets.
"""

from __future__ import annotations

from collections.abc import Sequence

#: Parts up to this size are left to the insertion sort.
_THRESHOLD = 16


def sorted_as_std_sort(keys: Sequence[int]) -> list[int]:
    """Return the indices of keys in the order in which `std::sort` leaves elements with these keys, the least first."""
    indices = list(range(len(keys)))
    if len(keys) > _THRESHOLD and len(set(keys)) < len(keys):
        _partition_all(keys, indices)
    # What is left is an insertion sort of it all, which keeps equal elements in order, as Python's sort does.
    indices.sort(key=keys.__getitem__)
    return indices


def _partition_all(keys: Sequence[int], indices: list[int]) -> None:
    depth = 2 * (len(keys).bit_length() - 1)
    parts = [(0, len(keys), depth)]
    while parts:
        first, last, depth = parts.pop()
        if last - first <= _THRESHOLD:
            continue
        if depth == 0:
            # Here GNU's library turns to a heap sort, against inputs made to be slow; the order is not repeated.
            indices[first:last] = sorted(indices[first:last], key=keys.__getitem__)
            continue
        _median_to_front(keys, indices, first, last)
        cut = _partition(keys, indices, first, last)
        parts.append((first, cut, depth - 1))
        parts.append((cut, last, depth - 1))


def _median_to_front(keys: Sequence[int], indices: list[int], first: int, last: int) -> None:
    """Put the median of the second, the middle and the last element first; of equal ones the choice is GNU's."""
    second, middle, end = first + 1, first + (last - first) // 2, last - 1
    a, b, c = keys[indices[second]], keys[indices[middle]], keys[indices[end]]
    rising = middle if b < c else end if a < c else second
    falling = second if a < c else end if b < c else middle
    chosen = rising if a < b else falling
    indices[first], indices[chosen] = indices[chosen], indices[first]


def _partition(keys: Sequence[int], indices: list[int], first: int, last: int) -> int:
    """Part what follows the first element into what is not greater and what is not less; return where."""
    pivot = keys[indices[first]]
    low, high = first + 1, last
    while True:
        while keys[indices[low]] < pivot:
            low += 1
        high -= 1
        while pivot < keys[indices[high]]:
            high -= 1
        if low >= high:
            return low
        indices[low], indices[high] = indices[high], indices[low]
        low += 1
