"""Candidates on their way up: gathered in pools, the best of them chosen, and packed into slots.

A pool is a list (`CandidatePool`) or, where walks come by again and again, kept in order (`rankings.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from batkube.graph.requests.compiled import CompiledRequest
from batkube.graph.requests.jobspec import SLOT
from batkube.graph.traversal.match_policy import MET, Candidate, Member, Ordering


class MatchWindow(NamedTuple):
    """When, and under which rules."""

    start: int
    duration: int
    #: Whether a vertex that somebody holds is taken however long ago they should have left: a match for now.
    is_now: bool = False
    #: Whether vertices that are down count as well: would it fit on the machine as it was bought?
    ignores_down: bool = False


class Pool(Protocol):
    """Candidates of one type. One that is handed on does not change any more."""

    @property
    def entries(self) -> Sequence[Candidate]:
        """The candidates, in the order in which they came up."""
        ...

    @property
    def units(self) -> int:
        """How many units they have together."""
        ...

    def least_key(self, sign: int) -> int:
        """Return the least score, or with -1 for `sign` the greatest one, which is made negative."""
        ...

    def ascending(self, sign: int) -> Iterator[tuple[int, Candidate]]:
        """Yield the candidates by their scores times `sign`, equal ones in any order."""
        ...

    def best(self, units: int, order: Ordering) -> Sequence[Candidate]:
        """Return the best candidates that have so many units together."""
        ...


Pools = Mapping[str, Pool]


class CandidatePool:
    """Candidates in the order in which they came up."""

    __slots__ = ("entries", "units")

    def __init__(self, entries: Iterable[Candidate] = ()) -> None:
        self.entries = list(entries)
        self.units = sum(candidate.units for candidate in self.entries)

    def add(self, candidate: Candidate) -> None:
        """Put a candidate in."""
        self.entries.append(candidate)
        self.units += candidate.units

    def merge(self, other: Pool) -> None:
        """Put all candidates of another pool in."""
        self.entries.extend(other.entries)
        self.units += other.units

    def least_key(self, sign: int) -> int:
        """Return the least score times `sign`."""
        return min(sign * candidate.score for candidate in self.entries)

    def ascending(self, sign: int) -> Iterator[tuple[int, Candidate]]:
        """Yield the candidates by their scores times `sign`."""
        return iter(sorted(((sign * entry.score, entry) for entry in self.entries), key=lambda pair: pair[0]))

    def best(self, units: int, order: Ordering) -> Sequence[Candidate]:
        """Return the best candidates that have so many units together."""
        return first_with_units(order(self.entries), units)


def first_with_units(candidates: Sequence[Candidate], units: int) -> Sequence[Candidate]:
    """Return the first candidates that have so many units together."""
    for index, candidate in enumerate(candidates):
        units -= candidate.units
        if units <= 0:
            return candidates[: index + 1]
    return candidates


def choose(pools: Pools, wishes: Iterable[CompiledRequest], order: Ordering) -> dict[str, Sequence[Candidate]] | None:
    """Return the best candidates for each of some wishes, by type; None if there are too few for any.

    Where a type is wanted twice, the last wish for it decides.
    """
    rest = dict(pools)
    choices: dict[str, Sequence[Candidate]] = {}
    for wish in wishes:
        pool = rest.get(wish.type)
        amount = wish.count.amount(pool.units) if pool is not None else 0
        if pool is None or not amount:
            return None
        if wish.type in choices:
            # Fluxion orders one list again and again, and of equal ones others come to be the first.
            pool = rest[wish.type] = CandidatePool(order(pool.entries))
        choices[wish.type] = pool.best(amount, order)
    return choices


class VisitResult(NamedTuple):
    """What a vertex that does has to offer: itself, and what came up from below without having been fixed."""

    score: int
    units: int
    is_exclusive: bool
    chosen: tuple[Member, ...]
    available: Pools


class ShareCounter:
    """Counts shares: whole candidates until there is enough for one; what is left over is not carried on."""

    __slots__ = ("_carried", "_share", "shares")

    def __init__(self, share: int) -> None:
        self._share = share
        self._carried = 0
        self.shares = 0

    def add(self, units: int) -> None:
        """Count the units of a candidate, or of several that came up together."""
        self._carried += units
        if 0 < self._share <= self._carried:
            self.shares += 1
            self._carried = 0

    def satisfies(self, shares: int) -> bool:
        """Tell whether there are so many shares."""
        return self._share == 0 or self.shares >= shares


class SlotPacker:
    """What slots are packed from: the candidates of each type, the best first."""

    def __init__(self, pools: Pools, order: Ordering) -> None:
        self.units = {type: pool.units for type, pool in pools.items()}
        self._rankings = {type: order(pool.entries) for type, pool in pools.items()}

    def amount(self, wish: CompiledRequest) -> int:
        """Return how many units a slot takes of a type."""
        return wish.count.amount(self.units.get(wish.type, 0))

    def count(self, slot: CompiledRequest) -> int:
        """Return how many slots can be packed, each taking whole candidates until it has enough."""
        return min((self._share_count(wish) for wish in slot.inside.requests), default=0)

    def _share_count(self, wish: CompiledRequest) -> int:
        tally = ShareCounter(self.amount(wish))
        for candidate in self._rankings.get(wish.type, ()):
            tally.add(candidate.members[0].units)
        return tally.shares

    def pack(self, slots: list[CompiledRequest]) -> Pools:
        """Return slots as candidates, the best of what there is in the first one; none if it does not last."""
        pool = CandidatePool()
        rest = {type: iter(ranking) for type, ranking in self._rankings.items()}
        for slot in slots:
            members: list[Member] = []
            score = MET
            for wish in slot.inside.requests:
                missing = self.amount(wish)
                while missing > 0:
                    candidate = next(rest[wish.type], None)
                    if candidate is None:
                        return {}
                    member = candidate.members[0]
                    score += candidate.score
                    missing -= member.units
                    members.append(member._replace(is_exclusive=True))
            pool.add(Candidate(score, 1, tuple(members)))
        return {SLOT: pool} if slots else {}
