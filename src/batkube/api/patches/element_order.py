"""In which order the elements of a merged list come.

A strategic merge patch may mention some elements of a list and not others. Those it mentions keep the order of the
patch, the others that of the live object, and the two runs are interleaved as in the live object where it knows both
(Kubernetes: apimachinery/pkg/util/strategicpatch, normalizeElementOrder and mergeSortedSlice).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable

from batkube.api.patches.json_patches import Json

Identity = Callable[[Json], Hashable]
"""What tells one element of a list from another: the value of its merge key, or the element itself."""


def json_identity(value: Json) -> Hashable:
    """Return `value` as something to compare by; `1`, `1.0` and `true` differ, as in Go."""
    if isinstance(value, str):
        return value
    return (type(value), value if isinstance(value, Hashable) else repr(value))


def merge_in_order(elements: list[Json], patch: list[Json], live: list[Json], name: Identity) -> list[Json]:
    """Return `elements` in order: those of `patch` as there, the others as in `live`, merged into one run."""
    patch_places = _indexes(patch, name)
    live_places = _indexes(live, name)
    first = [element for element in elements if name(element) in patch_places]
    others = [element for element in elements if name(element) not in patch_places]
    first.sort(key=lambda element: patch_places[name(element)])
    others = _sort_by_index(others, [live_places.get(name(element)) for element in others])
    if not others or not first:
        return first or others
    ordered: list[Json] = []
    rest = iter(others)
    other = next(rest, None)
    for element in first:
        place = live_places.get(name(element))
        while other is not None and place is not None and live_places.get(name(other), place) < place:
            ordered.append(other)
            other = next(rest, None)
        ordered.append(element)
    return [*ordered, *([] if other is None else [other]), *rest]


def _sort_by_index(elements: list[Json], places: list[int | None]) -> list[Json]:
    """Sort by place, stably. One without a place goes before all sorted so far, as Go's sort happens to do.

    So it ends up just before what was the first of them then, whatever comes to be before that later.
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
    """Return the first place of each element."""
    places: dict[Hashable, int] = {}
    for place, element in enumerate(elements):
        places.setdefault(name(element), place)
    return places
