"""The order of the elements in a merged list.

A strategic merge patch may contain only some elements of a list. These keep the order of the patch, the others that of
the live object, and the two sequences are merged by the order of the live object.

Kubernetes: apimachinery/pkg/util/strategicpatch, normalizeElementOrder and mergeSortedSlice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable

from batkube.api.patches.json_patches import Json

Identity = Callable[[Json], Hashable]
"""Identifies an element of a list: by the value of its merge key, or by the element itself."""


def json_identity(value: Json) -> Hashable:
    """Return `value` as a hashable key; `1`, `1.0` and `true` differ, as in Go."""
    if isinstance(value, str):
        return value
    return (type(value), value if isinstance(value, Hashable) else repr(value))


def merge_in_order(elements: list[Json], patch: list[Json], live: list[Json], name: Identity) -> list[Json]:
    """Return `elements` sorted: those of `patch` in its order, the others as in `live`, merged into one sequence."""
    patch_places = _indexes(patch, name)
    live_places = _indexes(live, name)
    first = [element for element in elements if name(element) in patch_places]
    others = [element for element in elements if name(element) not in patch_places]
    first.sort(key=lambda element: patch_places[name(element)])
    others = _sort_by_index(others, [live_places.get(name(element)) for element in others])
    if not others or not first:
        return first or others
    ordered: list[Json] = []
    remaining = iter(others)
    other = next(remaining, None)
    for element in first:
        place = live_places.get(name(element))
        while other is not None and place is not None and live_places.get(name(other), place) < place:
            ordered.append(other)
            other = next(remaining, None)
        ordered.append(element)
    return [*ordered, *([] if other is None else [other]), *remaining]


def _sort_by_index(elements: list[Json], places: list[int | None]) -> list[Json]:
    """Sort by index, stably. As in Go's sort, an element without an index goes before all elements sorted so far.

    It stays just before the element that was first at that moment, even if others are inserted before that later.
    """
    keys: list[tuple[float, bool, int]] = []
    first = math.inf
    for number, place in enumerate(places):
        if place is None:
            keys.append((first, False, -number))
        else:
            first = min(first, place)
            keys.append((place, True, number))
    return [elements[number] for number in sorted(range(len(elements)), key=keys.__getitem__)]


def _indexes(elements: list[Json], name: Identity) -> dict[Hashable, int]:
    """Return the index of the first occurrence of each element."""
    places: dict[Hashable, int] = {}
    for place, element in enumerate(elements):
        places.setdefault(name(element), place)
    return places
