"""Sorted keys that change often, so that a page of a long list does not require sorting all of them.

The keys are in blocks of bounded size. A change moves the keys of one block only, and the block is found by bisection.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

#: A block of twice this length is split; neighbours are joined if both together are not longer.
_BLOCK = 512


KeyT = TypeVar("KeyT", bound=str)


class SortedKeys(Generic[KeyT]):
    """A set of keys in ascending order."""

    def __init__(self, keys: Iterable[KeyT]) -> None:
        ordered = sorted(keys)
        #: No block is empty.
        self._blocks = [ordered[begin : begin + _BLOCK] for begin in range(0, len(ordered), _BLOCK)]
        #: The first key of each block.
        self._first_keys = [block[0] for block in self._blocks]

    def add(self, key: KeyT) -> None:
        """Add a key that is not in the set."""
        if not self._blocks:
            self._blocks, self._first_keys = [[key]], [key]
            return
        position = self._block_of(key)
        block = self._blocks[position]
        insort(block, key)
        self._first_keys[position] = block[0]
        if len(block) >= 2 * _BLOCK:
            self._blocks[position : position + 1] = [block[:_BLOCK], block[_BLOCK:]]
            self._first_keys.insert(position + 1, block[_BLOCK])

    def remove(self, key: KeyT) -> None:
        """Remove a key of the set."""
        position = self._block_of(key)
        block = self._blocks[position]
        del block[bisect_left(block, key)]
        if not block:
            del self._blocks[position], self._first_keys[position]
            return
        self._first_keys[position] = block[0]
        self._join(position)
        self._join(position - 1)

    def _join(self, position: int) -> None:
        """Join the block at this position with the next one if both exist and together are short enough."""
        if 0 <= position < len(self._blocks) - 1:
            block, following = self._blocks[position : position + 2]
            if len(block) + len(following) <= _BLOCK:
                block += following
                del self._blocks[position + 1], self._first_keys[position + 1]

    def blocks(self, start: str, end: str | None) -> Iterator[list[KeyT]]:
        """Yield the keys from `start` on and before `end`, in lists of bounded length."""
        for position in range(self._block_of(start), len(self._blocks)):
            block = self._blocks[position]
            first = bisect_left(block, start) if block[0] < start else 0
            if end is not None and block[-1] >= end:
                yield block[first : bisect_left(block, end)]
                return
            yield block[first:] if first else block

    def count(self, start: str, end: str | None) -> int:
        """Return the number of keys from `start` on and before `end`."""
        return sum(map(len, self.blocks(start, end)))

    def _block_of(self, key: str) -> int:
        """Return the position of the block to which a key belongs; 0 if there is none."""
        return max(bisect_right(self._first_keys, key) - 1, 0)
