"""Pools that stay sorted while their content changes little by little.

A cluster has thousands of nodes, and few of them change between two matches. What each of them
offers is one entry of the pool, and the entries are sorted by their best candidate. The best
candidates are read from the front; the other entries are not visited.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from batkube.graph.traversal.candidates import Pool, first_with_units
from batkube.graph.traversal.match_policy import Candidate, Ordering, ScoreOrder


class EdgeOffer(NamedTuple):
    """What is found through an edge: the vertex at its end, or a pool of candidates below that vertex."""

    key: int
    edge: int
    is_vertex: bool
    content: Candidate | Pool


class RankedPool:
    """Candidates of one type below one vertex, sorted by their scores."""

    __slots__ = ("_offers", "_order", "units")

    def __init__(self, order: ScoreOrder, offers: Sequence[EdgeOffer] = (), units: int = 0) -> None:
        self._order = order
        self._offers = list(offers)
        self.units = units

    def copy(self) -> RankedPool:
        """Return a pool with the same candidates."""
        return RankedPool(self._order, self._offers, self.units)

    def add(self, edge: int, content: Candidate | Pool) -> None:
        """Add what is found through an edge."""
        insort(self._offers, self._edge_offer(edge, content))
        self.units += content.units

    def remove(self, edge: int, content: Candidate | Pool) -> None:
        """Remove what was found through an edge."""
        del self._offers[bisect_left(self._offers, self._edge_offer(edge, content))]
        self.units -= content.units

    def _edge_offer(self, edge: int, content: Candidate | Pool) -> EdgeOffer:
        if isinstance(content, Candidate):
            return EdgeOffer(self._order.sign * content.score, edge, True, content)
        return EdgeOffer(content.least_key(self._order.sign), edge, False, content)

    def __bool__(self) -> bool:
        return bool(self._offers)

    @property
    def entries(self) -> Sequence[Candidate]:
        """The candidates in the order in which they were found: by edge, a vertex after what is below it."""
        entries: list[Candidate] = []
        for offer in sorted(self._offers, key=lambda offer: (offer.edge, offer.is_vertex)):
            if isinstance(offer.content, Candidate):
                entries.append(offer.content)
            else:
                entries.extend(offer.content.entries)
        return entries

    def least_key(self, sign: int) -> int:
        """Return the lowest score times the pool's sign."""
        assert sign == self._order.sign
        return self._offers[0].key

    def ascending(self, sign: int) -> Iterator[tuple[int, Candidate]]:
        """Yield the candidates in order. A nested pool is opened when its best candidate may be next."""
        assert sign == self._order.sign
        open_pools: list[tuple[int, int, Candidate, Iterator[tuple[int, Candidate]]]] = []
        for number, offer in enumerate(self._offers):
            while open_pools and open_pools[0][0] < offer.key:
                yield _pop_best(open_pools)
            if isinstance(offer.content, Candidate):
                yield offer.key, offer.content
            else:
                rest = offer.content.ascending(sign)
                key, candidate = next(rest)
                heapq.heappush(open_pools, (key, number, candidate, rest))
        while open_pools:
            yield _pop_best(open_pools)

    def best(self, units: int, order: Ordering) -> Sequence[Candidate]:
        """Return the best candidates with this many units in total.

        If the last of them has the same score as the next one, the order of `std::sort` decides,
        which depends on all candidates. Only then are all of them sorted.
        """
        if order != self._order:
            return first_with_units(order(self.entries), units)
        chosen: list[Candidate] = []
        missing, last = units, None
        for key, candidate in self.ascending(self._order.sign):
            if missing <= 0:
                return chosen if key != last else first_with_units(order(self.entries), units)
            chosen.append(candidate)
            missing -= candidate.units
            last = key
        return chosen


def _pop_best(open_pools: list[tuple[int, int, Candidate, Iterator[tuple[int, Candidate]]]]) -> tuple[int, Candidate]:
    """Pop the best candidate of the open pools, and push the next one of its pool."""
    key, number, candidate, rest = open_pools[0]
    following = next(rest, None)
    if following is None:
        heapq.heappop(open_pools)
    else:
        heapq.heapreplace(open_pools, (following[0], number, following[1], rest))
    return key, candidate
