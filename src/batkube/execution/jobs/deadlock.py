"""Finds deadlocks between partially placed gangs, whose pods hold the resources that the others need.

A bound pod keeps its node until its job ends, and a gang begins only when all its pods are bound. So partially placed
gangs can wait for each other forever. The banker's algorithm decides it (E. W. Dijkstra, EWD 623): suppose that all
other work has ended, and complete the gangs one after the other. A gang whose missing pods fit into the free resources
completes, ends and releases what it held. That never hurts another gang, so the order does not matter. The gangs that
remain are deadlocked, whatever a scheduler does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from batkube.cluster.pods.resources import add_amounts
from batkube.workloads.model import Requests

NodeCapacities = Mapping[str, Mapping[str, int]]
"""The resources that each node offers to jobs, by node name."""


class PartialGang(NamedTuple):
    """A job of which some pods are bound and others are not."""

    #: The resources of each pod.
    demand: Requests
    #: The nodes of the bound pods, one entry per pod.
    nodes: Sequence[str]
    #: The number of pods that are not bound.
    missing: int


def find_deadlocked(gangs: Sequence[PartialGang], capacities: NodeCapacities) -> list[int]:
    """Return the indices of the gangs that can never be completed with these `capacities`."""
    holdings: dict[str, dict[str, int]] = {}
    for gang in gangs:
        _add_holdings(holdings, gang, 1)
    waiting = dict(enumerate(gangs))
    while fitting := [number for number, gang in waiting.items() if _fits(gang, capacities, holdings)]:
        for number in fitting:
            _add_holdings(holdings, waiting.pop(number), -1)
    return list(waiting)


def _add_holdings(holdings: dict[str, dict[str, int]], gang: PartialGang, sign: int) -> None:
    """Add the resources that a gang holds to the holdings of its nodes, or subtract them with a `sign` of -1."""
    for node in gang.nodes:
        add_amounts(holdings.setdefault(node, {}), dict(gang.demand), sign)


def _fits(gang: PartialGang, capacities: NodeCapacities, holdings: Mapping[str, Mapping[str, int]]) -> bool:
    """Return whether all missing pods of a gang fit; its pods have equal demands."""
    missing = gang.missing
    for node, offer in capacities.items():
        taken = holdings.get(node, {})
        free = [(offer.get(name, 0) - taken.get(name, 0)) // amount for name, amount in gang.demand if amount > 0]
        missing -= max(0, min(free, default=missing))
        if missing <= 0:
            return True
    return False
