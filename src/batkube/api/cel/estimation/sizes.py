"""Maximum sizes of values: of a schema's values, and arithmetic that saturates.

Sizes are those of CEL's `size()`, and saturate at the largest uint64, as in cel-go (checker/cost.go, SizeEstimate;
Kubernetes: apiserver/pkg/cel/types.go, DeclType). cel-go also estimates minimum sizes, which almost never change a
maximum cost; they are left out.
"""

from __future__ import annotations

import math

import msgspec

SIZE_MAX = 2**64 - 1
"""The maximum cost and size, at which arithmetic saturates; also the size of a value of unknown size."""


def capped(number: int) -> int:
    """Return the number, saturated at the maximum."""
    return min(number, SIZE_MAX)


def size_or_max(size: int | None) -> int:
    """Return a size, or the maximum if it is unknown."""
    return SIZE_MAX if size is None else size


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

    def size_at(self, path: tuple[str, ...]) -> int | None:
        """Return the maximum size of the value at a path that starts with a variable; None if there is none."""
        if not path:
            return None
        extent = self
        for name in path[1:]:
            inner = extent._child(name)
            if inner is None:
                return None
            extent = inner
        return extent.elements_max

    def _child(self, name: str) -> SizeLimits | None:
        if name in (ITEMS, VALUES):
            return self.item
        return self.key if name == KEYS else self.fields.get(name)


ITEMS, VALUES, KEYS, INDICES = "@items", "@values", "@keys", "@indices"
"""Path elements that stand for all items, values, keys or indices of a list or a map."""
