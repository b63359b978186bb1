"""How large values can become: ranges of sizes, and what a schema says of the values it describes.

Sizes are those of CEL's `size()`, and stop at the largest number that Go's uint64 holds, as they do upstream (cel-go:
checker/cost.go, SizeEstimate; Kubernetes: apiserver/pkg/cel/types.go, DeclType).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import msgspec

SIZE_MAX = 2**64 - 1
"""The largest cost and the largest size there is; whatever is beyond is this."""


class SizeEstimate(NamedTuple):
    """How large a value is, at least and at most."""

    minimum: int
    maximum: int

    def add(self, other: SizeEstimate) -> SizeEstimate:
        """Return the size of both together."""
        return SizeEstimate(capped(self.minimum + other.minimum), capped(self.maximum + other.maximum))

    def multiply(self, other: SizeEstimate) -> SizeEstimate:
        """Return the size of so many values of another size."""
        return SizeEstimate(capped(self.minimum * other.minimum), capped(self.maximum * other.maximum))

    def union(self, other: SizeEstimate) -> SizeEstimate:
        """Return the size of a value that is one or the other."""
        return SizeEstimate(min(self.minimum, other.minimum), max(self.maximum, other.maximum))


UNKNOWN_SIZE = SizeEstimate(0, SIZE_MAX)
SCALAR_SIZE = SizeEstimate(1, 1)


def capped(number: int) -> int:
    """Return a number, or the largest there is."""
    return min(number, SIZE_MAX)


def scaled(number: int, factor: float) -> int:
    """Return a share of a number, rounded up; in Go's floats, so that large ones are rounded as there."""
    if float(number) > float(SIZE_MAX) / factor:
        return SIZE_MAX
    return capped(math.ceil(float(number) * factor))


class SizeLimits(msgspec.Struct, frozen=True):
    """How large the values of a schema can become."""

    #: How many elements, entries or characters they have at most; 0 for what has none.
    elements_max: int
    #: How many bytes of JSON they take at least.
    bytes_min: int
    #: Of the items of a list and the values of a map.
    item: SizeLimits | None = None
    #: Of the keys of a map.
    key: SizeLimits | None = None
    fields: dict[str, SizeLimits] = {}

    def size_at(self, path: tuple[str, ...]) -> SizeEstimate | None:
        """Return the size of what is found along a path, the first word of which is a variable; None if nothing is."""
        if not path:
            return None
        extent = self
        for name in path[1:]:
            inner = extent._child(name)
            if inner is None:
                return None
            extent = inner
        return SizeEstimate(0, extent.elements_max)

    def _child(self, name: str) -> SizeLimits | None:
        if name in (ITEMS, VALUES):
            return self.item
        return self.key if name == KEYS else self.fields.get(name)


ITEMS, VALUES, KEYS, INDICES = "@items", "@values", "@keys", "@indices"
"""What stands in a path for all elements of a list or a map."""
