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

from batkube.graph.boards import Recollection
from batkube.graph.candidates import CandidatePool, MatchWindow, Pool, Pools, ShareTally, Supplies, Visit, choose
from batkube.graph.constraints import CONSTRAINED_TYPES, Constraint
from batkube.graph.ledger import JOBS_MAX, Ledger
from batkube.graph.match_policy import Candidate, MatchPolicy, Member
from batkube.graph.memory import Question, WalkMemory
from batkube.graph.outline import Outline
from batkube.graph.wishes import Wish, WishList


class VertexFit(NamedTuple):
    """What a vertex is to some wishes: the one it may fulfil, and what is looked for below it."""

    wish: Wish | None
    #: The slots to pack below it; in their place `below` is what is looked for, still `pristine` or not.
    slots: tuple[Wish, ...] = ()
    below: WishList | None = None
    pristine: bool = False


class GatheringRules(NamedTuple):
    """What is looked for below a vertex, and how; see `Walk.visit` and `Walk.explore`."""

    wishes: WishList
    pristine: bool
    exclusive: bool
    bonus: int
    shares: int


class Walk:
    """One walk, for one jobspec and one window."""

    def __init__(
        self,
        outline: Outline,
        ledger: Ledger,
        policy: MatchPolicy,
        window: MatchWindow,
        constraint: Constraint | None = None,
        memory: WalkMemory | None = None,
    ) -> None:
        self.outline = outline
        self.graph = outline.graph
        self.ledger = ledger
        self.policy = policy
        self.window = window
        self.constraint = constraint
        # Where there are several ways to a vertex, what it offers depends on where the walk was before.
        self._memory = memory if memory is not None and outline.is_tree else WalkMemory(outline, ledger)
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
        choices = choose(pools, wish.inside.wishes, self.policy.order_inside)
        if choices is None:
            return None
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
        rules = GatheringRules(wishes, pristine, exclusive, bonus, shares)
        if pristine or wishes.slots:
            return self._gather(vertex, "", rules)
        # What is matched below brings nothing loose up, so the wishes can be looked for one after the other.
        pools: dict[str, Pool] = {}
        for type, wish in wishes.by_type.items():
            if type in wishes.clashing:
                continue
            if wish.inside.wishes:
                pools.update(self._gather(vertex, type, rules))
            else:
                pools.update(self._gather_plain(vertex, wish, rules))
        return pools

    def _gather(self, vertex: int, type: str, rules: GatheringRules) -> Pools:
        """Gather what the vertices right below another one offer, those of one type if it is said."""
        gather = self._gather_until_enough if self.policy.stops_early else self._gather_all
        return gather(vertex, type, rules)

    def _gather_plain(self, vertex: int, wish: Wish, rules: GatheringRules) -> Pools:
        """Gather vertices of which nothing inside is wanted, most of which nobody ever touched."""
        graph, pages, window = self.graph, self.ledger.pages, self.window
        exclusive = rules.exclusive or wish.exclusive is True
        is_plain = self.constraint is None and self.outline.is_tree and (not exclusive or wish.exclusive is not False)
        tally = ShareTally(wish.effective_most)
        pool = CandidatePool()
        for edge in self._plain_edges(vertex, wish.type):
            child = graph.edge_target[edge]
            if is_plain and child not in pages and (graph.is_up[child] or window.ignores_status):
                units = graph.size[child]
                if not units:
                    continue
            elif not self.admits(child, rules.wishes, wish, exclusive) or not self._is_open(child):
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

    def _plain_edges(self, vertex: int, type: str) -> list[int]:
        edges = self.outline.down(vertex, type)
        return sorted(edges, key=self.outline.place) if self.policy.stops_early else edges

    def _is_open(self, vertex: int) -> bool:
        """Tell whether a vertex is still to be visited; only where there are several ways to it may it be not."""
        return self.outline.is_tree or vertex not in self._seen

    def _question(self, rules: GatheringRules) -> Question:
        window = self.window
        return (
            rules.wishes,
            rules.pristine,
            rules.exclusive,
            window.is_now,
            window.ignores_status,
            self.constraint,
        )

    def _gather_all(self, vertex: int, type: str, rules: GatheringRules) -> Pools:
        """Gather what all vertices offer; mostly they did so for a job before."""
        board = self._memory.pool_board(self._question(rules), (vertex, type), self.policy.order_inside)
        targets, types = self.graph.edge_target, self.graph.type
        for edge in board.outdated(self.window):
            board.put(edge, types[targets[edge]], self._ask(edge, rules))
        return board.pools()

    def _gather_until_enough(self, vertex: int, type: str, rules: GatheringRules) -> Pools:
        """Gather candidates until every wish has enough, where most is free first (Fluxion: explore_dynamically)."""
        board = self._memory.queue_board(self._question(rules), (vertex, type))
        board.renew(self.window)
        pools: dict[str, CandidatePool] = {}
        needs = {wish.type: ShareTally(wish.effective_most) for wish in rules.wishes.wishes if type in ("", wish.type)}
        satisfied: set[str] = set()
        hopeless: list[int] = []
        for _, _, edge in board.hopes:
            child_type = self.graph.type[self.graph.edge_target[edge]]
            if child_type in satisfied:
                continue
            known = board.known.get(edge)
            if known is None:
                known = self._ask(edge, rules)
                board.note(edge, known)
            if known.visit is None or known.candidate is None:
                hopeless.append(edge)
                continue
            for offered, units in _offer(known.visit, known.candidate, child_type, pools).items():
                if offered in needs:
                    needs[offered].add(units)
            satisfied.update(type for type, tally in needs.items() if tally.satisfies(rules.shares))
            if len(satisfied) == len(needs):
                break
        for edge in hopeless:
            board.dismiss(edge)
        return pools

    def _ask(self, edge: int, rules: GatheringRules) -> Recollection:
        """Visit the vertex at the end of an edge and return what it offers, to be remembered."""
        child = self.graph.edge_target[edge]
        visit = None
        if self._is_open(child):
            visit = self.visit(child, rules.wishes, rules.pristine, rules.exclusive, rules.bonus)
        candidate = None
        if visit is not None:
            member = Member(edge, visit.units, visit.is_exclusive, visit.fixed)
            candidate = Candidate(visit.score, visit.units, (member,))
        return self._memory.recollection(child, self.window, visit, candidate)

    def bundles(self, vertex: int, slots: tuple[Wish, ...], bonus: int) -> Pools:
        """Pack as many bundles as possible of what is right below a vertex."""
        [slot] = slots
        pools = self.explore(vertex, slot.inside, False, True, bonus, slot.effective_most)
        supplies = Supplies(pools, self.policy.order_slots)
        return supplies.pack([slot] * supplies.count(slot))


def _offer(visit: Visit, candidate: Candidate, type: str, pools: dict[str, CandidatePool]) -> dict[str, int]:
    """Put what a vertex offers into pools, what came up loose through it, then itself; return how much, by type."""
    units: dict[str, int] = {}
    for loose, pool in visit.loose.items():
        pools.setdefault(loose, CandidatePool()).merge(pool)
        units[loose] = pool.units
    pools.setdefault(type, CandidatePool()).add(candidate)
    units[type] = units.get(type, 0) + candidate.units
    return units
