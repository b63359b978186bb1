"""A selection: which vertices a job gets, how much of each, and which for itself.

It is made from what a walk offers at the root: the best candidates of each top-level wish are taken, with all that was
fixed inside of them; vertices on the way down to them, which the jobspec did not mention, are shared.
Fluxion: dfu_impl_t::select, resolve_graph, enforce.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from batkube.graph.requests.compiled import RequestLevel
from batkube.graph.traversal.candidates import CandidatePool, Pools, VisitResult, choose
from batkube.graph.traversal.match_policy import Candidate, Member
from batkube.graph.traversal.walk import Walk


@dataclasses.dataclass(slots=True)
class VertexSelection:
    """The edges that lead to what was taken, each with how many units of its target, and whether for the job alone."""

    root_units: int
    is_root_exclusive: bool
    edges: dict[int, tuple[int, bool]] = dataclasses.field(default_factory=dict)

    def add(self, members: Iterable[Member]) -> None:
        """Add members of candidates, and what was fixed inside of them."""
        for member in members:
            self.edges[member.edge] = (member.units, member.is_exclusive)
            self.add(member.inside)


def select(walk: Walk, wishes: RequestLevel) -> VertexSelection | None:
    """Walk from the root and return what a job would get, None if there is not enough."""
    root = walk.view.root
    wish = wishes.by_type.get(walk.graph.type[root])
    visit = walk.visit(root, wishes, True, wish is not None and wish.exclusive is True, 0)
    return None if visit is None else _resolve(walk, wishes, root, visit)


def _resolve(walk: Walk, wishes: RequestLevel, root: int, visit: VisitResult) -> VertexSelection | None:
    root_type = walk.graph.type[root]
    root_pool = CandidatePool(visit.available[root_type].entries if root_type in visit.available else ())
    root_pool.add(Candidate(visit.score, visit.units, ()))
    pools = {**visit.available, root_type: root_pool}
    choices = choose(pools, wishes.requests, walk.policy.order_top)
    if choices is None:
        return None
    selection = VertexSelection(1, visit.is_exclusive)
    for wish in wishes.requests:
        if wish.type == root_type:
            selection.root_units = wish.count.amount(visit.units)
            if not selection.root_units:
                return None
    chosen = [candidate for candidates in choices.values() for candidate in candidates]
    selection.add(visit.chosen)
    for candidate in chosen:
        selection.add(candidate.members)
    _share_ancestors(walk, wishes, pools, chosen, selection)
    return selection


def _share_ancestors(
    walk: Walk, wishes: RequestLevel, pools: Pools, chosen: list[Candidate], selection: VertexSelection
) -> None:
    """Mark the vertices between the root and what was taken, of types that came up and were not asked for."""
    graph, outline = walk.graph, walk.view
    for candidate in chosen:
        for member in candidate.members:
            vertex = graph.edge_source[member.edge]
            while (edge := graph.parent_edge(vertex, outline.subsystem)) is not None and edge not in selection.edges:
                if graph.type[vertex] in pools and graph.type[vertex] not in wishes.types:
                    selection.edges[edge] = (graph.size[vertex], False)
                vertex = graph.edge_source[edge]
