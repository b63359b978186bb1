"""A mapping in the order of its keys, with some entries replaced by earlier ones.

The pages of a long list are read from it: a few objects have values of an earlier version, all others are current.
"""

from __future__ import annotations

import heapq
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from batkube.cluster.sorted_keys import KeyT, SortedKeys

ValueT = TypeVar("ValueT")
_KEY: Callable[[tuple[str, Any]], str] = operator.itemgetter(0)


class SortedView(Generic[KeyT, ValueT]):
    """The entries of a mapping, in their current or in an earlier version."""

    def __init__(
        self, live: Mapping[KeyT, ValueT], keys: SortedKeys[KeyT], former: Mapping[KeyT, ValueT | None]
    ) -> None:
        """`keys` are those of `live`. `former` has the earlier values of some keys; None for keys added since."""
        self._live = live
        self._keys = keys
        self._former = former

    def get(self, key: KeyT) -> ValueT | None:
        """Return the value of `key`, or None."""
        return self._former[key] if key in self._former else self._live.get(key)

    def between(self, start: str, end: str | None) -> Iterator[tuple[KeyT, ValueT]]:
        """Yield the entries from `start` on and before `end`; None for no end."""
        live, former = self._live, self._former
        present = ((key, live[key]) for block in self._keys.blocks(start, end) for key in block)
        if not former:
            return present
        unchanged = (item for item in present if item[0] not in former)
        return heapq.merge(unchanged, self._former_between(start, end), key=_KEY)

    def count(self, start: str, end: str | None) -> int:
        """Return the number of entries from `start` on and before `end`."""
        replaced = sum(key in self._live for key in self._former if key >= start and (end is None or key < end))
        return self._keys.count(start, end) - replaced + len(self._former_between(start, end))

    def _former_between(self, start: str, end: str | None) -> list[tuple[KeyT, ValueT]]:
        entries = (
            (key, value)
            for key, value in self._former.items()
            if value is not None and key >= start and (end is None or key < end)
        )
        return sorted(entries, key=_KEY)
