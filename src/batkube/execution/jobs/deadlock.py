"""Which half-started gangs can never be whole: the pods of each hold what the others wait for.

A pod that has its node keeps it until its job ends, and a job of many pods begins only when the last of them has one.
So jobs of which each has got a part can wait for one another for good. Whether they do is the question of the banker's
algorithm (E. W. Dijkstra, EWD 623): suppose that everything else has ended, and let the jobs be completed one after the
other. One that fits into what is left is completed, ends, and gives back what it held. That never hurts another, so the
order in which they are tried does not matter, and those that remain are stuck whatever a scheduler does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from batkube.cluster.pods.resources import add_amounts
from batkube.workloads.model import Requests

NodeCapacities = Mapping[str, Mapping[str, int]]
"""What each node has of each resource for jobs, by its name."""


class PartialGang(NamedTuple):
    """A job of which some pods have nodes and others have not."""

    #: What each of its pods takes from its node.
    demand: Requests
    #: The nodes of those that have one, named once per pod.
    nodes: Sequence[str]
    #: How many have none.
    missing: int


def find_deadlocked(halves: Sequence[PartialGang], room: NodeCapacities) -> list[int]:
    """Return which of the halves, by their numbers, can never be completed in the `room` there is for all of them."""
    holdings: dict[str, dict[str, int]] = {}
    for half in halves:
        _add_holdings(holdings, half, 1)
    waiting = dict(enumerate(halves))
    while fitting := [number for number, half in waiting.items() if _fits(half, room, holdings)]:
        for number in fitting:
            _add_holdings(holdings, waiting.pop(number), -1)
    return list(waiting)


def _add_holdings(holdings: dict[str, dict[str, int]], half: PartialGang, sign: int) -> None:
    """Take what a half holds from its nodes, or give it back."""
    for node in half.nodes:
        add_amounts(holdings.setdefault(node, {}), dict(half.demand), sign)


def _fits(half: PartialGang, room: NodeCapacities, holdings: Mapping[str, Mapping[str, int]]) -> bool:
    """Return whether there are places for all pods of a half that have none; all its pods are alike."""
    missing = half.missing
    for node, offer in room.items():
        taken = holdings.get(node, {})
        free = [(offer.get(name, 0) - taken.get(name, 0)) // amount for name, amount in half.demand if amount > 0]
        missing -= max(0, min(free, default=missing))
        if missing <= 0:
            return True
    return False
