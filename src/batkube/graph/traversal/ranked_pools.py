"""Pools that are kept in order while what they are made of changes, little by little.

Below a cluster there are thousands of nodes, and from one match to the next a few of them change. So what each of them
offers is a *share* of the pool, and the shares stand in the order of the best that is in each. The best candidates are
then at the beginning: nobody looks at the others.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from batkube.graph.traversal.candidates import Pool, first_with_units
from batkube.graph.traversal.match_policy import Candidate, Ordering, ScoreOrder


class EdgeOffer(NamedTuple):
    """What comes up through an edge: the vertex behind it, or what came up loose from below that vertex."""

    key: int
    edge: int
    is_vertex: bool
    offer: Candidate | Pool


class RankedPool:
    """Candidates of one type from below one vertex, ordered by their scores."""

    __slots__ = ("_offers", "_order", "units")

    def __init__(self, order: ScoreOrder, shares: Sequence[EdgeOffer] = (), units: int = 0) -> None:
        self._order = order
        self._offers = list(shares)
        self.units = units

    def copy(self) -> RankedPool:
        """Return a pool with the same candidates."""
        return RankedPool(self._order, self._offers, self.units)

    def add(self, edge: int, offer: Candidate | Pool) -> None:
        """Put in what comes up through an edge."""
        insort(self._offers, self._edge_offer(edge, offer))
        self.units += offer.units

    def remove(self, edge: int, offer: Candidate | Pool) -> None:
        """Take out what came up through an edge."""
        del self._offers[bisect_left(self._offers, self._edge_offer(edge, offer))]
        self.units -= offer.units

    def _edge_offer(self, edge: int, offer: Candidate | Pool) -> EdgeOffer:
        if isinstance(offer, Candidate):
            return EdgeOffer(self._order.sign * offer.score, edge, True, offer)
        return EdgeOffer(offer.least_key(self._order.sign), edge, False, offer)

    def __bool__(self) -> bool:
        return bool(self._offers)

    @property
    def entries(self) -> Sequence[Candidate]:
        """The candidates in the order in which they came up: edge by edge, what is below a vertex before itself."""
        entries: list[Candidate] = []
        for share in sorted(self._offers, key=lambda share: (share.edge, share.is_vertex)):
            if isinstance(share.offer, Candidate):
                entries.append(share.offer)
            else:
                entries.extend(share.offer.entries)
        return entries

    def least_key(self, sign: int) -> int:
        """Return the least score times the sign that the pool is ordered by."""
        assert sign == self._order.sign
        return self._offers[0].key

    def ascending(self, sign: int) -> Iterator[tuple[int, Candidate]]:
        """Yield the candidates in order; a share is opened when its best one may be the next."""
        assert sign == self._order.sign
        opened: list[tuple[int, int, Candidate, Iterator[tuple[int, Candidate]]]] = []
        for number, share in enumerate(self._offers):
            while opened and opened[0][0] < share.key:
                yield _pop_best(opened)
            if isinstance(share.offer, Candidate):
                yield share.key, share.offer
            else:
                rest = share.offer.ascending(sign)
                key, candidate = next(rest)
                heapq.heappush(opened, (key, number, candidate, rest))
        while opened:
            yield _pop_best(opened)

    def best(self, units: int, order: Ordering) -> Sequence[Candidate]:
        """Return the best candidates that have so many units together.

        Where the last of them has an equal one behind it, which of the two comes first is what `std::sort` makes of
        it, and that depends on all candidates: all are put in order.
        """
        if order != self._order:
            return first_with_units(order(self.entries), units)
        taken: list[Candidate] = []
        missing, last = units, None
        for key, candidate in self.ascending(self._order.sign):
            if missing <= 0:
                return taken if key != last else first_with_units(order(self.entries), units)
            taken.append(candidate)
            missing -= candidate.units
            last = key
        return taken


def _pop_best(opened: list[tuple[int, int, Candidate, Iterator[tuple[int, Candidate]]]]) -> tuple[int, Candidate]:
    """Take the best candidate of some opened shares, in whose place its share's next one comes."""
    key, number, candidate, rest = opened[0]
    following = next(rest, None)
    if following is None:
        heapq.heappop(opened)
    else:
        heapq.heapreplace(opened, (following[0], number, following[1], rest))
    return key, candidate
