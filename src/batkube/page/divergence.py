"""The first decision that differs between two runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby, zip_longest
from typing import Any

from batkube.kernel.instants import Instant
from batkube.outputs.playback.deltas import DeltaKind
from batkube.outputs.playback.playback import Playback

#: How many bindings are listed by name; the others are counted.
_MAX_NAMES = 4

InstantBindings = tuple[Instant, Counter[tuple[str, str]]]
"""An instant, and its bindings: pairs of the names of a pod and its node."""


def first_divergence(one: Playback, other: Playback) -> dict[str, Any] | None:
    """Return the first instant at which two runs bind different pods, or to other nodes; None if there is none.

    The order of bindings at one instant does not count, because it has no effect on either run.
    """
    for left, right in zip_longest(_decisions(one), _decisions(other)):
        if left == right:
            continue
        at = min(side[0] for side in (left, right) if side is not None)
        mine, theirs = (side[1] if side is not None and side[0] == at else Counter() for side in (left, right))
        return {"time": at // 1000, "decisions": [_text(mine - theirs), _text(theirs - mine)]}
    return None


def _decisions(playback: Playback) -> Iterator[InstantBindings]:
    """Yield the instants at which pods are bound, with their bindings."""
    bindings = (delta for delta in playback.deltas if delta.kind is DeltaKind.POD_BOUND)
    for at, deltas in groupby(bindings, key=lambda delta: delta.at):
        yield at, Counter((playback.pods[delta.number].name, delta.node) for delta in deltas)


def _text(decisions: Counter[tuple[str, str]]) -> str:
    names = [f"{pod} to {node}" for pod, node in sorted(decisions.elements())]
    if not names:
        return "binds nothing else at this instant"
    more = f" and {len(names) - _MAX_NAMES:,} more" if len(names) > _MAX_NAMES else ""
    return f"binds {', '.join(names[:_MAX_NAMES])}{more}"
