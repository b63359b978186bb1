"""Candidates: vertices that a request could take, collected in pools, chosen, and packed into slots.

A pool is a list (`CandidatePool`), or kept sorted for walks that visit it again
(`ranked_pools.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from batkube.graph.requests.compiled import CompiledRequest
from batkube.graph.requests.jobspec import SLOT
from batkube.graph.traversal.match_policy import MET, Candidate, Member, Ordering


class MatchWindow(NamedTuple):
    """The window of time of a match, and its rules."""

    start: int
    duration: int
    #: Whether the match is for now. Vertices of an allocation that is overdue then count as used.
    is_now: bool = False
    #: Whether vertices that are down may be used, as in a test for satisfiability.
    ignores_down: bool = False


class Pool(Protocol):
    """Candidates of one type. A pool does not change after it was passed on."""

    @property
    def entries(self) -> Sequence[Candidate]:
        """The candidates in the order in which they were found."""
        ...

    @property
    def units(self) -> int:
        """The sum of the candidates' units."""
        ...

    def least_key(self, sign: int) -> int:
        """Return the lowest score times `sign`."""
        ...

    def ascending(self, sign: int) -> Iterator[tuple[int, Candidate]]:
        """Yield the candidates by their scores times `sign`; the order of equal ones is undefined."""
        ...

    def best(self, units: int, order: Ordering) -> Sequence[Candidate]:
        """Return the best candidates with this many units in total."""
        ...


Pools = Mapping[str, Pool]


class CandidatePool:
    """Candidates in the order in which they were found."""

    __slots__ = ("entries", "units")

    def __init__(self, entries: Iterable[Candidate] = ()) -> None:
        self.entries = list(entries)
        self.units = sum(candidate.units for candidate in self.entries)

    def add(self, candidate: Candidate) -> None:
        """Add a candidate."""
        self.entries.append(candidate)
        self.units += candidate.units

    def merge(self, other: Pool) -> None:
        """Add all candidates of another pool."""
        self.entries.extend(other.entries)
        self.units += other.units

    def least_key(self, sign: int) -> int:
        """Return the lowest score times `sign`."""
        return min(sign * candidate.score for candidate in self.entries)

    def ascending(self, sign: int) -> Iterator[tuple[int, Candidate]]:
        """Yield the candidates by their scores times `sign`."""
        return iter(sorted(((sign * entry.score, entry) for entry in self.entries), key=lambda pair: pair[0]))

    def best(self, units: int, order: Ordering) -> Sequence[Candidate]:
        """Return the best candidates with this many units in total."""
        return first_with_units(order(self.entries), units)


def first_with_units(candidates: Sequence[Candidate], units: int) -> Sequence[Candidate]:
    """Return the first candidates with this many units in total."""
    for index, candidate in enumerate(candidates):
        units -= candidate.units
        if units <= 0:
            return candidates[: index + 1]
    return candidates


def choose(pools: Pools, requests: Iterable[CompiledRequest], order: Ordering) -> dict[str, Sequence[Candidate]] | None:
    """Return the best candidates for each request, by type; None if there are too few for one of them.

    If two requests have the same type, the last one decides.
    """
    rest = dict(pools)
    choices: dict[str, Sequence[Candidate]] = {}
    for request in requests:
        pool = rest.get(request.type)
        amount = request.count.amount(pool.units) if pool is not None else 0
        if pool is None or not amount:
            return None
        if request.type in choices:
            # Fluxion sorts the same list again, which changes the order of equal candidates.
            pool = rest[request.type] = CandidatePool(order(pool.entries))
        choices[request.type] = pool.best(amount, order)
    return choices


class VisitResult(NamedTuple):
    """What a usable vertex offers: itself, and candidates below it that are not fixed yet."""

    score: int
    units: int
    is_exclusive: bool
    fixed: tuple[Member, ...]
    available: Pools


class ShareCounter:
    """Counts shares of whole candidates. Units beyond a share are not carried over to the next one."""

    __slots__ = ("_carried", "_share", "shares")

    def __init__(self, share: int) -> None:
        self._share = share
        self._carried = 0
        self.shares = 0

    def add(self, units: int) -> None:
        """Add the units of one candidate, or of several that were found together."""
        self._carried += units
        if 0 < self._share <= self._carried:
            self.shares += 1
            self._carried = 0

    def satisfies(self, shares: int) -> bool:
        """Return whether this many shares are complete."""
        return self._share == 0 or self.shares >= shares


class SlotPacker:
    """Packs slots from the candidates of each type, the best first."""

    def __init__(self, pools: Pools, order: Ordering) -> None:
        self.units = {type: pool.units for type, pool in pools.items()}
        self._rankings = {type: order(pool.entries) for type, pool in pools.items()}

    def amount(self, request: CompiledRequest) -> int:
        """Return the number of units of a type in a slot."""
        return request.count.amount(self.units.get(request.type, 0))

    def count(self, slot: CompiledRequest) -> int:
        """Return the number of slots that can be packed. Each takes whole candidates until it has enough."""
        return min((self._share_count(request) for request in slot.inside.requests), default=0)

    def _share_count(self, request: CompiledRequest) -> int:
        counter = ShareCounter(self.amount(request))
        for candidate in self._rankings.get(request.type, ()):
            counter.add(candidate.members[0].units)
        return counter.shares

    def pack(self, slots: list[CompiledRequest]) -> Pools:
        """Return packed slots as candidates, the best first; empty if the candidates do not suffice."""
        pool = CandidatePool()
        rest = {type: iter(ranking) for type, ranking in self._rankings.items()}
        for slot in slots:
            members: list[Member] = []
            score = MET
            for request in slot.inside.requests:
                missing = self.amount(request)
                while missing > 0:
                    candidate = next(rest[request.type], None)
                    if candidate is None:
                        return {}
                    member = candidate.members[0]
                    score += candidate.score
                    missing -= member.units
                    members.append(member._replace(is_exclusive=True))
            pool.add(Candidate(score, 1, tuple(members)))
        return {SLOT: pool} if slots else {}
