"""How large values can become: ranges of sizes, and what a schema says of the values it describes.

Sizes are those of CEL's `size()`, and stop at the largest number that Go's uint64 holds, as they do upstream (cel-go:
checker/cost.go, SizeEstimate; Kubernetes: apiserver/pkg/cel/types.go, DeclType).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import msgspec

MOST = 2**64 - 1
"""The largest cost and the largest size there is; whatever is beyond is this."""


class Size(NamedTuple):
    """How large a value is, at least and at most."""

    least: int
    most: int

    def plus(self, other: Size) -> Size:
        """Return the size of both together."""
        return Size(capped(self.least + other.least), capped(self.most + other.most))

    def times(self, other: Size) -> Size:
        """Return the size of so many values of another size."""
        return Size(capped(self.least * other.least), capped(self.most * other.most))

    def or_size(self, other: Size) -> Size:
        """Return the size of a value that is one or the other."""
        return Size(min(self.least, other.least), max(self.most, other.most))


UNKNOWN = Size(0, MOST)
ONE = Size(1, 1)


def capped(number: int) -> int:
    """Return a number, or the largest there is."""
    return min(number, MOST)


def scaled(number: int, factor: float) -> int:
    """Return a share of a number, rounded up; in Go's floats, so that large ones are rounded as there."""
    if float(number) > float(MOST) / factor:
        return MOST
    return capped(math.ceil(float(number) * factor))


class Extent(msgspec.Struct, frozen=True):
    """How large the values of a schema can become."""

    #: How many elements, entries or characters they have at most; 0 for what has none.
    most: int
    #: How many bytes of JSON they take at least.
    bytes_least: int
    #: Of the items of a list and the values of a map.
    item: Extent | None = None
    #: Of the keys of a map.
    key: Extent | None = None
    fields: dict[str, Extent] = {}

    def at(self, path: tuple[str, ...]) -> Size | None:
        """Return the size of what is found along a path, the first word of which is a variable; None if nothing is."""
        if not path:
            return None
        extent = self
        for name in path[1:]:
            inner = extent._below(name)
            if inner is None:
                return None
            extent = inner
        return Size(0, extent.most)

    def _below(self, name: str) -> Extent | None:
        if name in (ITEMS, VALUES):
            return self.item
        return self.key if name == KEYS else self.fields.get(name)


ITEMS, VALUES, KEYS, INDICES = "@items", "@values", "@keys", "@indices"
"""What stands in a path for all elements of a list or a map."""
