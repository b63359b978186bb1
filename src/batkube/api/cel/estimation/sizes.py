"""Size estimates of values: ranges of sizes, and size limits by schema.

Sizes are those of CEL's `size()`, and saturate at the largest uint64, as in cel-go (checker/cost.go, SizeEstimate;
Kubernetes: apiserver/pkg/cel/types.go, DeclType).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import msgspec

SIZE_MAX = 2**64 - 1
"""The maximum cost and size, at which arithmetic saturates."""


class SizeEstimate(NamedTuple):
    """The minimum and the maximum size of a value."""

    minimum: int
    maximum: int

    def add(self, other: SizeEstimate) -> SizeEstimate:
        """Return the sum of two sizes."""
        return SizeEstimate(capped(self.minimum + other.minimum), capped(self.maximum + other.maximum))

    def multiply(self, other: SizeEstimate) -> SizeEstimate:
        """Return the product of two sizes."""
        return SizeEstimate(capped(self.minimum * other.minimum), capped(self.maximum * other.maximum))

    def union(self, other: SizeEstimate) -> SizeEstimate:
        """Return an estimate that covers both sizes."""
        return SizeEstimate(min(self.minimum, other.minimum), max(self.maximum, other.maximum))


UNKNOWN_SIZE = SizeEstimate(0, SIZE_MAX)
SCALAR_SIZE = SizeEstimate(1, 1)


def capped(number: int) -> int:
    """Return the number, saturated at the maximum."""
    return min(number, SIZE_MAX)


def scaled(number: int, factor: float) -> int:
    """Return the number times a factor, rounded up; computed in floats, to round large numbers as Go does."""
    if float(number) > float(SIZE_MAX) / factor:
        return SIZE_MAX
    return capped(math.ceil(float(number) * factor))


class SizeLimits(msgspec.Struct, frozen=True):
    """The maximum sizes of a schema's values."""

    #: The maximum number of elements, entries or characters; 0 for scalars.
    elements_max: int
    #: The minimum number of bytes as JSON.
    bytes_min: int
    #: Of the items of a list and the values of a map.
    item: SizeLimits | None = None
    #: Of the keys of a map.
    key: SizeLimits | None = None
    fields: dict[str, SizeLimits] = {}

    def size_at(self, path: tuple[str, ...]) -> SizeEstimate | None:
        """Return the size of the value at a path that starts with a variable; None if the path does not exist."""
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
"""Path elements that stand for all items, values, keys or indices of a list or a map."""
