"""The walk: searches the graph depth first for what a jobspec requests in a window of time.

The walk compares each vertex with the requests of the current level:

* If it fits none, and nothing has matched above it, the same requests are searched below it: a
  jobspec may begin at any vertex.
* If it fits one, the requests inside that one are searched below it, and the best results are
  *fixed*. Results that are not fixed stay *available* to a vertex further up.

A slot is not a vertex. If a vertex has all types of a slot's bundle as direct children, as many
bundles as possible are packed from whole children, each one a candidate. Imitates flux-sched
resource/traversers/dfu_impl.cpp.

Results are cached per vertex, and subtrees without changes are not walked again (`walk_cache.py`).
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
    """How a vertex fits a level: the request that it may satisfy, and what to search below it."""

    request: CompiledRequest | None
    #: Slots to pack from the children. Without slots, `below` is searched; `unmatched` says that
    #: nothing has matched so far.
    slots: tuple[CompiledRequest, ...] = ()
    below: RequestLevel | None = None
    unmatched: bool = False


class SearchRules(NamedTuple):
    """What to search below a vertex, and how; see `Walk.visit` and `Walk.explore`."""

    level: RequestLevel
    unmatched: bool
    exclusive: bool
    bonus: int
    shares: int


class Walk:
    """One walk for one jobspec and one window."""

    def __init__(
        self,
        view: SubsystemView,
        ledger: Ledger,
        policy: MatchPolicy,
        window: MatchWindow,
        constraint: Constraint | None = None,
        cache: WalkCache | None = None,
    ) -> None:
        self.view = view
        self.graph = view.graph
        self.ledger = ledger
        self.policy = policy
        self.window = window
        self.constraint = constraint
        # Unless the graph is a tree, the result of a vertex depends on the vertices visited before.
        self._cache = cache if cache is not None and view.is_tree else WalkCache(view, ledger)
        #: The visited vertices. Needed unless the graph is a tree, to visit each of them once.
        self._seen: set[int] = set()

    def visit(
        self, vertex: int, level: RequestLevel, unmatched: bool, exclusive: bool, bonus: int
    ) -> VisitResult | None:
        """Return what a vertex offers for a level of requests, or None if it is unusable.

        `unmatched` says that nothing has matched further up, `exclusive` that the job needs the
        vertex exclusively. `bonus` is the part of the score that comes from nodes around it.
        """
        fit = self.fit(vertex, level, unmatched)
        if fit is None:
            return None
        request = fit.request
        exclusive = exclusive or (request is not None and request.exclusive is True)
        if not self.admits(vertex, level, request, exclusive):
            return None
        self._seen.add(vertex)
        inside = bonus + self.policy.bonus_inside(self.graph, vertex)
        if fit.below is None:
            pools = self.pack_slots(vertex, fit.slots, inside)
        else:
            pools = self.explore(vertex, fit.below, fit.unmatched, exclusive, inside)
        return self.finish(vertex, request, pools, exclusive, bonus)

    def finish(
        self, vertex: int, request: CompiledRequest | None, pools: Pools, exclusive: bool, bonus: int
    ) -> VisitResult | None:
        """Fix the best candidates for the requests inside `request`. Without any, all stay available."""
        units = self.ledger.free(vertex, self.window.start, self.window.duration)
        score = self.policy.score(self.graph, vertex, bonus)
        if request is None or not request.inside.requests:
            return VisitResult(score, units, exclusive, (), pools)
        choices = choose(pools, request.inside.requests, self.policy.order_inside)
        if choices is None:
            return None
        fixed = tuple(
            member for candidates in choices.values() for candidate in candidates for member in candidate.members
        )
        return VisitResult(score, units, exclusive, fixed, {})

    def fit(self, vertex: int, level: RequestLevel, unmatched: bool) -> VertexFit | None:
        """Return how a vertex fits a level, or None."""
        type = self.graph.type[vertex]
        if len(level.slots) > 1 or type in level.conflicting:
            # As in Fluxion: "siblings in jobspec request same resource type".
            return None
        request = level.by_type.get(type)
        slots = level.slots if request is None else request.inside.slots
        if slots and self.view.has_types_below(vertex, slots[-1].inside.types):
            return VertexFit(request, slots[-1:])
        if request is not None:
            return VertexFit(request, below=request.inside)
        return VertexFit(None, below=level, unmatched=True) if unmatched else None

    def admits(self, vertex: int, level: RequestLevel, request: CompiledRequest | None, exclusive: bool) -> bool:
        """Return whether a vertex and its subtree may be used."""
        graph, window = self.graph, self.window
        if not (graph.is_up[vertex] or window.ignores_down):
            return False
        is_constrained = self.constraint is not None and graph.type[vertex] in CONSTRAINED_TYPES
        if is_constrained and self.constraint is not None and not self.constraint.allows(graph, vertex):
            return False
        if self.ledger.free(vertex, window.start, window.duration) <= 0:
            return False
        if request is not None and not self.is_free_of_others(vertex, request, exclusive):
            return False
        return self.has_enough_below(vertex, level, request)

    def has_enough_below(self, vertex: int, level: RequestLevel, request: CompiledRequest | None) -> bool:
        """Return whether the filter of a vertex's subtree has enough free units."""
        may_fit, window = self.ledger.filters.may_fit, self.window
        if request is not None and not may_fit(vertex, window.start, window.duration, request.demand):
            return False
        return all(may_fit(vertex, window.start, window.duration, slot.demand) for slot in level.slots)

    def is_free_of_others(self, vertex: int, request: CompiledRequest, exclusive: bool) -> bool:
        """Return whether no other job uses a vertex that is requested exclusively."""
        if not exclusive:
            return True
        if request.exclusive is False:
            # Contradiction in the jobspec: inside a slot or an exclusive vertex nothing can be shared.
            return False
        entry = self.ledger.entries.get(vertex)
        if entry is None:
            return True
        if self.window.is_now and entry.allocations:
            return False
        return entry.jobs.free_during(self.window.start, self.window.duration) >= JOBS_MAX

    def explore(
        self, vertex: int, level: RequestLevel, unmatched: bool, exclusive: bool, bonus: int, shares: int = 1
    ) -> Pools:
        """Collect the candidates below a vertex.

        `shares` is the number of slots after which first-match policies stop.
        """
        rules = SearchRules(level, unmatched, exclusive, bonus, shares)
        if unmatched or level.slots:
            return self._gather(vertex, "", rules)
        # A matched vertex leaves nothing available, so each request can be searched by itself.
        pools: dict[str, Pool] = {}
        for type, request in level.by_type.items():
            if type in level.conflicting:
                continue
            if request.inside.requests:
                pools.update(self._gather(vertex, type, rules))
            else:
                pools.update(self._gather_leaves(vertex, request, rules))
        return pools

    def _gather(self, vertex: int, type: str, rules: SearchRules) -> Pools:
        """Collect the offers of the children of a vertex, of one type unless `type` is empty."""
        gather = self._gather_until_enough if self.policy.stops_early else self._gather_all
        return gather(vertex, type, rules)

    def _gather_leaves(self, vertex: int, request: CompiledRequest, rules: SearchRules) -> Pools:
        """Collect children for a request with nothing inside. Most of them were never used."""
        graph, entries, window = self.graph, self.ledger.entries, self.window
        exclusive = rules.exclusive or request.exclusive is True
        is_plain = self.constraint is None and self.view.is_tree and (not exclusive or request.exclusive is not False)
        counter = ShareCounter(request.effective_most)
        pool = CandidatePool()
        for edge in self._leaf_edges(vertex, request.type):
            child = graph.edge_target[edge]
            if is_plain and child not in entries and (graph.is_up[child] or window.ignores_down):
                units = graph.size[child]
                if not units:
                    continue
            elif not self.admits(child, rules.level, request, exclusive) or not self._may_visit(child):
                continue
            else:
                self._seen.add(child)
                units = self.ledger.free(child, window.start, window.duration)
            score = self.policy.score(graph, child, rules.bonus)
            pool.add(Candidate(score, units, (Member(edge, units, exclusive, ()),)))
            counter.add(units)
            if self.policy.stops_early and counter.satisfies(rules.shares):
                break
        return {request.type: pool} if pool.entries else {}

    def _leaf_edges(self, vertex: int, type: str) -> list[int]:
        edges = self.view.edges_down(vertex, type)
        return sorted(edges, key=self.view.sort_key) if self.policy.stops_early else edges

    def _may_visit(self, vertex: int) -> bool:
        """Return whether a vertex was not visited yet. In a tree each vertex is reached once."""
        return self.view.is_tree or vertex not in self._seen

    def _cache_key(self, rules: SearchRules) -> CacheKey:
        window = self.window
        return (
            rules.level,
            rules.unmatched,
            rules.exclusive,
            window.is_now,
            window.ignores_down,
            self.constraint,
        )

    def _gather_all(self, vertex: int, type: str, rules: SearchRules) -> Pools:
        """Collect the offers of all children, most of them from the cache."""
        cache = self._cache.pool_cache(self._cache_key(rules), (vertex, type), self.policy.order_inside)
        targets, types = self.graph.edge_target, self.graph.type
        for edge in cache.outdated_edges(self.window):
            cache.replace(edge, types[targets[edge]], self._visit_edge(edge, rules))
        return cache.pools()

    def _gather_until_enough(self, vertex: int, type: str, rules: SearchRules) -> Pools:
        """Collect candidates until every request has enough, first where most units are free.

        Imitates `explore_dynamically` (flux-sched resource/traversers/dfu_impl.cpp).
        """
        cache = self._cache.queue_cache(self._cache_key(rules), (vertex, type))
        cache.refresh(self.window)
        pools: dict[str, CandidatePool] = {}
        needs = {
            request.type: ShareCounter(request.effective_most)
            for request in rules.level.requests
            if type in ("", request.type)
        }
        satisfied: set[str] = set()
        unusable: list[int] = []
        for _, _, edge in cache.candidate_edges:
            child_type = self.graph.type[self.graph.edge_target[edge]]
            if child_type in satisfied:
                continue
            cached = cache.visits.get(edge)
            if cached is None:
                cached = self._visit_edge(edge, rules)
                cache.store(edge, cached)
            if cached.visit is None or cached.candidate is None:
                unusable.append(edge)
                continue
            for offered, units in _add_to_pools(cached.visit, cached.candidate, child_type, pools).items():
                if offered in needs:
                    needs[offered].add(units)
            satisfied.update(type for type, counter in needs.items() if counter.satisfies(rules.shares))
            if len(satisfied) == len(needs):
                break
        for edge in unusable:
            cache.exclude(edge)
        return pools

    def _visit_edge(self, edge: int, rules: SearchRules) -> CachedVisit:
        """Visit the vertex at the end of an edge and return what it offers, for the cache."""
        child = self.graph.edge_target[edge]
        visit = None
        if self._may_visit(child):
            visit = self.visit(child, rules.level, rules.unmatched, rules.exclusive, rules.bonus)
        candidate = None
        if visit is not None:
            member = Member(edge, visit.units, visit.is_exclusive, visit.fixed)
            candidate = Candidate(visit.score, visit.units, (member,))
        return self._cache.cached_visit(child, self.window, visit, candidate)

    def pack_slots(self, vertex: int, slots: tuple[CompiledRequest, ...], bonus: int) -> Pools:
        """Pack as many bundles as possible from the children of a vertex."""
        [slot] = slots
        pools = self.explore(vertex, slot.inside, False, True, bonus, slot.effective_most)
        packer = SlotPacker(pools, self.policy.order_slots)
        return packer.pack([slot] * packer.count(slot))


def _add_to_pools(
    visit: VisitResult, candidate: Candidate, type: str, pools: dict[str, CandidatePool]
) -> dict[str, int]:
    """Add what a vertex offers to pools; return the added units by type.

    What is available through the vertex comes first, then the vertex itself.
    """
    units: dict[str, int] = {}
    for available_type, pool in visit.available.items():
        pools.setdefault(available_type, CandidatePool()).merge(pool)
        units[available_type] = pool.units
    pools.setdefault(type, CandidatePool()).add(candidate)
    units[type] = units.get(type, 0) + candidate.units
    return units
