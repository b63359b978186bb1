"""The order of candidates with equal scores.

Fluxion sorts candidates with C++'s `std::sort`, which leaves the order of equal elements undefined.
In practice it is the order of the introsort in GNU's libstdc++ (bits/stl_algo.h): an insertion sort
up to sixteen elements, which keeps equal ones in order; with more elements, first a partition
around the median of three, repeated until no part has more than sixteen. These steps are repeated
here exactly, because equal scores are common (every node has a core 0) and decide which node a job
gets.
"""

from __future__ import annotations

from collections.abc import Sequence

#: Parts up to this size are not partitioned any further.
_THRESHOLD = 16


def sorted_as_std_sort(keys: Sequence[int]) -> list[int]:
    """Return the indices of keys in the order in which `std::sort` leaves elements with these keys."""
    indices = list(range(len(keys)))
    if len(keys) > _THRESHOLD and len(set(keys)) < len(keys):
        _partition_all(keys, indices)
    # The last step is an insertion sort, which is stable like Python's sort.
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
            # libstdc++ changes to a heap sort here, against adversarial input. That order is not imitated.
            indices[first:last] = sorted(indices[first:last], key=keys.__getitem__)
            continue
        _median_to_front(keys, indices, first, last)
        cut = _partition(keys, indices, first, last)
        parts.append((first, cut, depth - 1))
        parts.append((cut, last, depth - 1))


def _median_to_front(keys: Sequence[int], indices: list[int], first: int, last: int) -> None:
    """Swap the median of the second, the middle and the last element to the front.

    Of equal elements, the choice is that of libstdc++.
    """
    second, middle, end = first + 1, first + (last - first) // 2, last - 1
    a, b, c = keys[indices[second]], keys[indices[middle]], keys[indices[end]]
    rising = middle if b < c else end if a < c else second
    falling = second if a < c else end if b < c else middle
    chosen = rising if a < b else falling
    indices[first], indices[chosen] = indices[chosen], indices[first]


def _partition(keys: Sequence[int], indices: list[int], first: int, last: int) -> int:
    """Partition the elements after the first one around it, and return the position of the cut."""
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
