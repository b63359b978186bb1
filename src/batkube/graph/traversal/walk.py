"""The walk: depth first down the graph, looking for what a jobspec wants in a window of time.

At every vertex: which wish of the level at hand does it fulfil? If none, and nothing was matched further up, the same
wishes go on below: a jobspec may begin anywhere. If one, what it wants inside is looked for below, and the best of what
is found there is *fixed*. What was found and not fixed goes up *loose*, to a vertex that wants it or to the top.

A slot is no vertex. Where all types of its bundle are right below a vertex, as many bundles as possible are packed
there out of whole vertices, and each goes up as one candidate. Fluxion: resource/traversers/dfu_impl.cpp.

What the walk learns of a vertex is remembered; subtrees that nobody touched since are not walked again: `memory.py`.
"""

from __future__ import annotations

from typing import NamedTuple

from batkube.graph.accounting.ledger import JOBS_MAX, Ledger
from batkube.graph.requests.compiled import CompiledRequest, RequestLevel
from batkube.graph.requests.constraints import CONSTRAINED_TYPES, Constraint
from batkube.graph.traversal.candidates import (
    CandidatePool,
    MatchWindow,
    Pool,
    Pools,
    ShareCounter,
    SlotPacker,
    VisitResult,
    choose,
)
from batkube.graph.traversal.edge_caches import CachedVisit
from batkube.graph.traversal.match_policy import Candidate, MatchPolicy, Member
from batkube.graph.traversal.subsystem_view import SubsystemView
from batkube.graph.traversal.walk_cache import CacheKey, WalkCache


class VertexFit(NamedTuple):
    """What a vertex is to some wishes: the one it may fulfil, and what is looked for below it."""

    request: CompiledRequest | None
    #: The slots to pack below it; in their place `below` is what is looked for, still `pristine` or not.
    slots: tuple[CompiledRequest, ...] = ()
    below: RequestLevel | None = None
    unmatched: bool = False


class SearchRules(NamedTuple):
    """What is looked for below a vertex, and how; see `Walk.visit` and `Walk.explore`."""

    requests: RequestLevel
    unmatched: bool
    exclusive: bool
    bonus: int
    shares: int


class Walk:
    """One walk, for one jobspec and one window."""

    def __init__(
        self,
        outline: SubsystemView,
        ledger: Ledger,
        policy: MatchPolicy,
        window: MatchWindow,
        constraint: Constraint | None = None,
        memory: WalkCache | None = None,
    ) -> None:
        self.view = outline
        self.graph = outline.graph
        self.ledger = ledger
        self.policy = policy
        self.window = window
        self.constraint = constraint
        # Where there are several ways to a vertex, what it offers depends on where the walk was before.
        self._cache = memory if memory is not None and outline.is_tree else WalkCache(outline, ledger)
        #: Where the walk was, in a graph with several ways to a vertex.
        self._seen: set[int] = set()

    def visit(
        self, vertex: int, wishes: RequestLevel, pristine: bool, exclusive: bool, bonus: int
    ) -> VisitResult | None:
        """Return what a vertex offers for some wishes, None if it does not do.

        `pristine` says that nothing was matched further up, `exclusive` that the job must have it for itself, and
        `bonus` what the nodes around add to its score.
        """
        fit = self.fit(vertex, wishes, pristine)
        if fit is None:
            return None
        wish = fit.request
        exclusive = exclusive or (wish is not None and wish.exclusive is True)
        if not self.admits(vertex, wishes, wish, exclusive):
            return None
        self._seen.add(vertex)
        inside = bonus + self.policy.bonus_inside(self.graph, vertex)
        if fit.below is None:
            pools = self.pack_slots(vertex, fit.slots, inside)
        else:
            pools = self.explore(vertex, fit.below, fit.unmatched, exclusive, inside)
        return self.finish(vertex, wish, pools, exclusive, bonus)

    def finish(
        self, vertex: int, wish: CompiledRequest | None, pools: Pools, exclusive: bool, bonus: int
    ) -> VisitResult | None:
        """Fix the best of what a wish wants inside; without a wish all that came up goes on."""
        units = self.ledger.free(vertex, self.window.start, self.window.duration)
        score = self.policy.score(self.graph, vertex, bonus)
        if wish is None or not wish.inside.requests:
            return VisitResult(score, units, exclusive, (), pools)
        choices = choose(pools, wish.inside.requests, self.policy.order_inside)
        if choices is None:
            return None
        fixed = tuple(
            member for candidates in choices.values() for candidate in candidates for member in candidate.members
        )
        return VisitResult(score, units, exclusive, fixed, {})

    def fit(self, vertex: int, wishes: RequestLevel, pristine: bool) -> VertexFit | None:
        """Return what a vertex is to some wishes, None if it is nothing."""
        type = self.graph.type[vertex]
        if len(wishes.slots) > 1 or type in wishes.conflicting:
            # A type wanted twice at one level, or beside a slot, is refused: "siblings in jobspec request same type".
            return None
        wish = wishes.by_type.get(type)
        slots = wishes.slots if wish is None else wish.inside.slots
        if slots and self.view.has_types_below(vertex, slots[-1].inside.types):
            return VertexFit(wish, slots[-1:])
        if wish is not None:
            return VertexFit(wish, below=wish.inside)
        return VertexFit(None, below=wishes, unmatched=True) if pristine else None

    def admits(self, vertex: int, wishes: RequestLevel, wish: CompiledRequest | None, exclusive: bool) -> bool:
        """Tell whether a vertex may be used, and whether looking below it can be of any use."""
        graph, window = self.graph, self.window
        if not (graph.is_up[vertex] or window.ignores_down):
            return False
        is_constrained = self.constraint is not None and graph.type[vertex] in CONSTRAINED_TYPES
        if is_constrained and self.constraint is not None and not self.constraint.allows(graph, vertex):
            return False
        if self.ledger.free(vertex, window.start, window.duration) <= 0:
            return False
        if wish is not None and not self.is_free_of_others(vertex, wish, exclusive):
            return False
        return self.has_enough_below(vertex, wishes, wish)

    def has_enough_below(self, vertex: int, wishes: RequestLevel, wish: CompiledRequest | None) -> bool:
        """Ask the filter of a vertex's subtree."""
        allow, window = self.ledger.filters.may_fit, self.window
        if wish is not None and not allow(vertex, window.start, window.duration, wish.demand):
            return False
        return all(allow(vertex, window.start, window.duration, slot.demand) for slot in wishes.slots)

    def is_free_of_others(self, vertex: int, wish: CompiledRequest, exclusive: bool) -> bool:
        """Tell whether a vertex that a job must have for itself is touched by nobody else."""
        if not exclusive:
            return True
        if wish.exclusive is False:
            # What is inside of a slot, or of something exclusive, cannot be shared: the jobspec contradicts itself.
            return False
        page = self.ledger.entries.get(vertex)
        if page is None:
            return True
        if self.window.is_now and page.allocations:
            return False
        return page.jobs.free_during(self.window.start, self.window.duration) >= JOBS_MAX

    def explore(
        self, vertex: int, wishes: RequestLevel, pristine: bool, exclusive: bool, bonus: int, shares: int = 1
    ) -> Pools:
        """Gather the candidates below a vertex. `shares` is for how many slots a first match looks."""
        rules = SearchRules(wishes, pristine, exclusive, bonus, shares)
        if pristine or wishes.slots:
            return self._gather(vertex, "", rules)
        # What is matched below brings nothing loose up, so the wishes can be looked for one after the other.
        pools: dict[str, Pool] = {}
        for type, wish in wishes.by_type.items():
            if type in wishes.conflicting:
                continue
            if wish.inside.requests:
                pools.update(self._gather(vertex, type, rules))
            else:
                pools.update(self._gather_leaves(vertex, wish, rules))
        return pools

    def _gather(self, vertex: int, type: str, rules: SearchRules) -> Pools:
        """Gather what the vertices right below another one offer, those of one type if it is said."""
        gather = self._gather_until_enough if self.policy.stops_early else self._gather_all
        return gather(vertex, type, rules)

    def _gather_leaves(self, vertex: int, wish: CompiledRequest, rules: SearchRules) -> Pools:
        """Gather vertices of which nothing inside is wanted, most of which nobody ever touched."""
        graph, pages, window = self.graph, self.ledger.entries, self.window
        exclusive = rules.exclusive or wish.exclusive is True
        is_plain = self.constraint is None and self.view.is_tree and (not exclusive or wish.exclusive is not False)
        tally = ShareCounter(wish.effective_most)
        pool = CandidatePool()
        for edge in self._leaf_edges(vertex, wish.type):
            child = graph.edge_target[edge]
            if is_plain and child not in pages and (graph.is_up[child] or window.ignores_down):
                units = graph.size[child]
                if not units:
                    continue
            elif not self.admits(child, rules.requests, wish, exclusive) or not self._may_visit(child):
                continue
            else:
                self._seen.add(child)
                units = self.ledger.free(child, window.start, window.duration)
            score = self.policy.score(graph, child, rules.bonus)
            pool.add(Candidate(score, units, (Member(edge, units, exclusive, ()),)))
            tally.add(units)
            if self.policy.stops_early and tally.satisfies(rules.shares):
                break
        return {wish.type: pool} if pool.entries else {}

    def _leaf_edges(self, vertex: int, type: str) -> list[int]:
        edges = self.view.edges_down(vertex, type)
        return sorted(edges, key=self.view.sort_key) if self.policy.stops_early else edges

    def _may_visit(self, vertex: int) -> bool:
        """Tell whether a vertex is still to be visited; only where there are several ways to it may it be not."""
        return self.view.is_tree or vertex not in self._seen

    def _cache_key(self, rules: SearchRules) -> CacheKey:
        window = self.window
        return (
            rules.requests,
            rules.unmatched,
            rules.exclusive,
            window.is_now,
            window.ignores_down,
            self.constraint,
        )

    def _gather_all(self, vertex: int, type: str, rules: SearchRules) -> Pools:
        """Gather what all vertices offer; mostly they did so for a job before."""
        board = self._cache.pool_cache(self._cache_key(rules), (vertex, type), self.policy.order_inside)
        targets, types = self.graph.edge_target, self.graph.type
        for edge in board.outdated_edges(self.window):
            board.replace(edge, types[targets[edge]], self._visit_edge(edge, rules))
        return board.pools()

    def _gather_until_enough(self, vertex: int, type: str, rules: SearchRules) -> Pools:
        """Gather candidates until every wish has enough, where most is free first (Fluxion: explore_dynamically)."""
        board = self._cache.queue_cache(self._cache_key(rules), (vertex, type))
        board.refresh(self.window)
        pools: dict[str, CandidatePool] = {}
        needs = {
            wish.type: ShareCounter(wish.effective_most) for wish in rules.requests.requests if type in ("", wish.type)
        }
        satisfied: set[str] = set()
        hopeless: list[int] = []
        for _, _, edge in board.candidate_edges:
            child_type = self.graph.type[self.graph.edge_target[edge]]
            if child_type in satisfied:
                continue
            known = board.visits.get(edge)
            if known is None:
                known = self._visit_edge(edge, rules)
                board.store(edge, known)
            if known.visit is None or known.candidate is None:
                hopeless.append(edge)
                continue
            for offered, units in _add_to_pools(known.visit, known.candidate, child_type, pools).items():
                if offered in needs:
                    needs[offered].add(units)
            satisfied.update(type for type, tally in needs.items() if tally.satisfies(rules.shares))
            if len(satisfied) == len(needs):
                break
        for edge in hopeless:
            board.exclude(edge)
        return pools

    def _visit_edge(self, edge: int, rules: SearchRules) -> CachedVisit:
        """Visit the vertex at the end of an edge and return what it offers, to be remembered."""
        child = self.graph.edge_target[edge]
        visit = None
        if self._may_visit(child):
            visit = self.visit(child, rules.requests, rules.unmatched, rules.exclusive, rules.bonus)
        candidate = None
        if visit is not None:
            member = Member(edge, visit.units, visit.is_exclusive, visit.chosen)
            candidate = Candidate(visit.score, visit.units, (member,))
        return self._cache.cached_visit(child, self.window, visit, candidate)

    def pack_slots(self, vertex: int, slots: tuple[CompiledRequest, ...], bonus: int) -> Pools:
        """Pack as many bundles as possible of what is right below a vertex."""
        [slot] = slots
        pools = self.explore(vertex, slot.inside, False, True, bonus, slot.effective_most)
        supplies = SlotPacker(pools, self.policy.order_slots)
        return supplies.pack([slot] * supplies.count(slot))


def _add_to_pools(
    visit: VisitResult, candidate: Candidate, type: str, pools: dict[str, CandidatePool]
) -> dict[str, int]:
    """Put what a vertex offers into pools, what came up loose through it, then itself; return how much, by type."""
    units: dict[str, int] = {}
    for loose, pool in visit.available.items():
        pools.setdefault(loose, CandidatePool()).merge(pool)
        units[loose] = pool.units
    pools.setdefault(type, CandidatePool()).add(candidate)
    units[type] = units.get(type, 0) + candidate.units
    return units
