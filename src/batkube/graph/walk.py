"""The walk: depth first down the graph, looking for what a jobspec wants in a window of time.

At every vertex: which wish of the level at hand does it fulfil? If none, and nothing was matched further up, the same
wishes go on below: a jobspec may begin anywhere. If one, what it wants inside is looked for below, and the best of what
is found there is *fixed*. What was found and not fixed goes up *loose*, to a vertex that wants it or to the top.

A slot is no vertex. Where all types of its bundle are right below a vertex, as many bundles as possible are packed
there out of whole vertices, and each goes up as one candidate. Fluxion: resource/traversers/dfu_impl.cpp.

What the walk learned of a subtree is remembered with the subtree's stamp, and whole subtrees that nobody touched since
are not walked again: see `remembering.py` in the same package for when that is right.
"""

from __future__ import annotations

from typing import NamedTuple

from batkube.graph.constraints import CONSTRAINED_TYPES, Constraint
from batkube.graph.jobspec import SLOT
from batkube.graph.ledger import JOBS_MAX, Ledger
from batkube.graph.match_policy import MET, Candidate, MatchPolicy, Member, Ordering
from batkube.graph.outline import Outline
from batkube.graph.wishes import Wish, WishList


class MatchWindow(NamedTuple):
    """When, and under which rules."""

    start: int
    duration: int
    #: Whether a vertex that somebody holds is taken however long ago they should have left: a match for now.
    is_now: bool = False
    #: Whether vertices that are down count as well: would it fit on the machine as it was bought?
    ignores_status: bool = False


class CandidatePool:
    """Candidates of one type, in the order in which they came up."""

    __slots__ = ("entries", "units")

    def __init__(self) -> None:
        self.entries: list[Candidate] = []
        self.units = 0

    def add(self, candidate: Candidate) -> None:
        """Put a candidate in."""
        self.entries.append(candidate)
        self.units += candidate.units

    def merge(self, other: CandidatePool) -> None:
        """Put all candidates of another pool in."""
        self.entries.extend(other.entries)
        self.units += other.units

    def best(self, units: int, order: Ordering) -> list[Candidate]:
        """Return the best candidates that have so many units together. The pool stays in the order of it."""
        self.entries = order(self.entries)
        for index, candidate in enumerate(self.entries):
            units -= candidate.units
            if units <= 0:
                return self.entries[: index + 1]
        return self.entries


Pools = dict[str, CandidatePool]


class Visit(NamedTuple):
    """What a vertex that does has to offer: itself, and what came up from below without having been fixed."""

    score: int
    units: int
    is_exclusive: bool
    fixed: tuple[Member, ...]
    loose: Pools


class VertexFit(NamedTuple):
    """What a vertex is to some wishes: the one it may fulfil, and what is looked for below it."""

    wish: Wish | None
    #: The slots to pack below it; in their place `below` is what is looked for, still `pristine` or not.
    slots: tuple[Wish, ...] = ()
    below: WishList | None = None
    pristine: bool = False


class ShareTally:
    """Counts shares: whole candidates until there is enough for one; what is left over is not carried on."""

    __slots__ = ("_rest", "_share", "shares")

    def __init__(self, share: int) -> None:
        self._share = share
        self._rest = 0
        self.shares = 0

    def add(self, units: int) -> None:
        """Count the units of a candidate, or of several that came up together."""
        self._rest += units
        if 0 < self._share <= self._rest:
            self.shares += 1
            self._rest = 0

    def satisfies(self, shares: int) -> bool:
        """Tell whether there are so many shares."""
        return self._share == 0 or self.shares >= shares


class Walk:
    """One walk, for one jobspec and one window."""

    def __init__(
        self,
        outline: Outline,
        ledger: Ledger,
        policy: MatchPolicy,
        window: MatchWindow,
        constraint: Constraint | None = None,
    ) -> None:
        self.outline = outline
        self.graph = outline.graph
        self.ledger = ledger
        self.policy = policy
        self.window = window
        self.constraint = constraint
        #: Where the walk was, in a graph with several ways to a vertex.
        self._seen: set[int] = set()

    def visit(self, vertex: int, wishes: WishList, pristine: bool, exclusive: bool, bonus: int) -> Visit | None:
        """Return what a vertex offers for some wishes, None if it does not do.

        `pristine` says that nothing was matched further up, `exclusive` that the job must have it for itself, and
        `bonus` what the nodes around add to its score.
        """
        fit = self.fit(vertex, wishes, pristine)
        if fit is None:
            return None
        wish = fit.wish
        exclusive = exclusive or (wish is not None and wish.exclusive is True)
        if not self.admits(vertex, wishes, wish, exclusive):
            return None
        self._seen.add(vertex)
        inside = bonus + self.policy.bonus_inside(self.graph, vertex)
        if fit.below is None:
            pools = self.bundles(vertex, fit.slots, inside)
        else:
            pools = self.explore(vertex, fit.below, fit.pristine, exclusive, inside)
        return self.finish(vertex, wish, pools, exclusive, bonus)

    def finish(self, vertex: int, wish: Wish | None, pools: Pools, exclusive: bool, bonus: int) -> Visit | None:
        """Fix the best of what a wish wants inside; without a wish all that came up goes on."""
        units = self.ledger.free(vertex, self.window.start, self.window.duration)
        score = self.policy.score(self.graph, vertex, bonus)
        if wish is None or not wish.inside.wishes:
            return Visit(score, units, exclusive, (), pools)
        choices: dict[str, list[Candidate]] = {}
        for inner in wish.inside.wishes:
            pool = pools.get(inner.type)
            amount = inner.count.amount(pool.units) if pool is not None else 0
            if pool is None or not amount:
                return None
            choices[inner.type] = pool.best(amount, self.policy.order_inside)
        fixed = tuple(
            member for candidates in choices.values() for candidate in candidates for member in candidate.members
        )
        return Visit(score, units, exclusive, fixed, {})

    def fit(self, vertex: int, wishes: WishList, pristine: bool) -> VertexFit | None:
        """Return what a vertex is to some wishes, None if it is nothing."""
        type = self.graph.type[vertex]
        if len(wishes.slots) > 1 or type in wishes.clashing:
            # A type wanted twice at one level, or beside a slot, is refused: "siblings in jobspec request same type".
            return None
        wish = wishes.by_type.get(type)
        slots = wishes.slots if wish is None else wish.inside.slots
        if slots and self.outline.has_types(vertex, slots[-1].inside.types):
            return VertexFit(wish, slots[-1:])
        if wish is not None:
            return VertexFit(wish, below=wish.inside)
        return VertexFit(None, below=wishes, pristine=True) if pristine else None

    def admits(self, vertex: int, wishes: WishList, wish: Wish | None, exclusive: bool) -> bool:
        """Tell whether a vertex may be used, and whether looking below it can be of any use."""
        graph, window = self.graph, self.window
        if not (graph.is_up[vertex] or window.ignores_status):
            return False
        is_constrained = self.constraint is not None and graph.type[vertex] in CONSTRAINED_TYPES
        if is_constrained and self.constraint is not None and not self.constraint.allows(graph, vertex):
            return False
        if self.ledger.free(vertex, window.start, window.duration) <= 0:
            return False
        if wish is not None and not self.is_free_of_others(vertex, wish, exclusive):
            return False
        return self.has_enough_below(vertex, wishes, wish)

    def has_enough_below(self, vertex: int, wishes: WishList, wish: Wish | None) -> bool:
        """Ask the filter of a vertex's subtree."""
        allow, window = self.ledger.filters.allow, self.window
        if wish is not None and not allow(vertex, window.start, window.duration, wish.demand):
            return False
        return all(allow(vertex, window.start, window.duration, slot.demand) for slot in wishes.slots)

    def is_free_of_others(self, vertex: int, wish: Wish, exclusive: bool) -> bool:
        """Tell whether a vertex that a job must have for itself is touched by nobody else."""
        if not exclusive:
            return True
        if wish.exclusive is False:
            # What is inside of a slot, or of something exclusive, cannot be shared: the jobspec contradicts itself.
            return False
        page = self.ledger.pages.get(vertex)
        if page is None:
            return True
        if self.window.is_now and page.allocations:
            return False
        return page.jobs.free_during(self.window.start, self.window.duration) >= JOBS_MAX

    def explore(
        self, vertex: int, wishes: WishList, pristine: bool, exclusive: bool, bonus: int, shares: int = 1
    ) -> Pools:
        """Gather the candidates below a vertex. `shares` is for how many slots a first match looks."""
        if self.policy.stops_early:
            return self.explore_until_enough(vertex, wishes, pristine, exclusive, bonus, shares)
        pools: Pools = {}
        for edge in self.outline.down(vertex):
            self.gather(edge, wishes, pristine, exclusive, bonus, pools)
        return pools

    def gather(self, edge: int, wishes: WishList, pristine: bool, exclusive: bool, bonus: int, pools: Pools) -> bool:
        """Visit the vertex at the end of an edge and put what it offers into pools; False if it does not do."""
        child = self.graph.edge_target[edge]
        if not self.outline.is_tree and child in self._seen:
            return False
        visit = self.visit(child, wishes, pristine, exclusive, bonus)
        if visit is None:
            return False
        for type, pool in visit.loose.items():
            pools.setdefault(type, CandidatePool()).merge(pool)
        member = Member(edge, visit.units, visit.is_exclusive, visit.fixed)
        candidate = Candidate(visit.score, visit.units, (member,))
        pools.setdefault(self.graph.type[child], CandidatePool()).add(candidate)
        return True

    def explore_until_enough(
        self, vertex: int, wishes: WishList, pristine: bool, exclusive: bool, bonus: int, shares: int
    ) -> Pools:
        """Gather candidates until every wish has enough, where most is free first (Fluxion: explore_dynamically)."""
        pools: Pools = {}
        tallies = {wish.type: ShareTally(wish.effective_most) for wish in wishes.wishes}
        counts = dict.fromkeys(tallies, 0)
        satisfied: set[str] = set()
        for edge in self.outline.down_by_weight(vertex):
            if self.graph.type[self.graph.edge_target[edge]] in satisfied:
                continue
            if not self.gather(edge, wishes, pristine, exclusive, bonus, pools):
                continue
            for type, tally in tallies.items():
                units = pools[type].units if type in pools else 0
                if units > counts[type]:
                    tally.add(units - counts[type])
                    counts[type] = units
                if tally.satisfies(shares):
                    satisfied.add(type)
            if len(satisfied) == len(tallies):
                break
        return pools

    def bundles(self, vertex: int, slots: tuple[Wish, ...], bonus: int) -> Pools:
        """Pack as many bundles as possible of what is right below a vertex."""
        [slot] = slots
        pools = self.explore(vertex, slot.inside, False, True, bonus, slot.effective_most)
        supplies = Supplies(pools, self.policy.order_slots)
        return supplies.pack([slot] * supplies.count(slot))


class Supplies:
    """What slots are packed from: the candidates of each type, the best first."""

    def __init__(self, pools: Pools, order: Ordering) -> None:
        self.units = {type: pool.units for type, pool in pools.items()}
        self._rankings = {type: order(pool.entries) for type, pool in pools.items()}

    def amount(self, wish: Wish) -> int:
        """Return how many units a slot takes of a type."""
        return wish.count.amount(self.units.get(wish.type, 0))

    def count(self, slot: Wish) -> int:
        """Return how many slots can be packed, each taking whole candidates until it has enough."""
        return min((self._shares(wish) for wish in slot.inside.wishes), default=0)

    def _shares(self, wish: Wish) -> int:
        tally = ShareTally(self.amount(wish))
        for candidate in self._rankings.get(wish.type, ()):
            tally.add(candidate.members[0].units)
        return tally.shares

    def pack(self, slots: list[Wish]) -> Pools:
        """Return slots as candidates, the best of what there is in the first one; none if it does not last."""
        pool = CandidatePool()
        rest = {type: iter(ranking) for type, ranking in self._rankings.items()}
        for slot in slots:
            members: list[Member] = []
            score = MET
            for wish in slot.inside.wishes:
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
