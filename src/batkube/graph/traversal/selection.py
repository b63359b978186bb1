"""A selection: the vertices that a job gets, the units of each, and which are exclusive.

It is made from what a walk offers at the root: the best candidates of each top-level request, with
everything that was fixed inside them. Vertices on the way down to them that the jobspec does not
mention are shared. Imitates `select`, `resolve_graph` and `enforce` in flux-sched
resource/traversers/dfu_impl.cpp.
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
    """The edges to the selected vertices, with the units of each vertex and whether it is exclusive."""

    root_units: int
    is_root_exclusive: bool
    edges: dict[int, tuple[int, bool]] = dataclasses.field(default_factory=dict)

    def add(self, members: Iterable[Member]) -> None:
        """Add members of candidates with everything that was fixed inside them."""
        for member in members:
            self.edges[member.edge] = (member.units, member.is_exclusive)
            self.add(member.inside)


def select(walk: Walk, level: RequestLevel) -> VertexSelection | None:
    """Walk from the root and return the resources for a job, or None."""
    root = walk.view.root
    request = level.by_type.get(walk.graph.type[root])
    visit = walk.visit(root, level, True, request is not None and request.exclusive is True, 0)
    return None if visit is None else _resolve(walk, level, root, visit)


def _resolve(walk: Walk, level: RequestLevel, root: int, visit: VisitResult) -> VertexSelection | None:
    root_type = walk.graph.type[root]
    root_pool = CandidatePool(visit.available[root_type].entries if root_type in visit.available else ())
    root_pool.add(Candidate(visit.score, visit.units, ()))
    pools = {**visit.available, root_type: root_pool}
    choices = choose(pools, level.requests, walk.policy.order_top)
    if choices is None:
        return None
    selection = VertexSelection(1, visit.is_exclusive)
    for request in level.requests:
        if request.type == root_type:
            selection.root_units = request.count.amount(visit.units)
            if not selection.root_units:
                return None
    chosen = [candidate for candidates in choices.values() for candidate in candidates]
    selection.add(visit.fixed)
    for candidate in chosen:
        selection.add(candidate.members)
    _share_ancestors(walk, level, pools, chosen, selection)
    return selection


def _share_ancestors(
    walk: Walk, level: RequestLevel, pools: Pools, chosen: list[Candidate], selection: VertexSelection
) -> None:
    """Select shared vertices between the root and the chosen ones, of offered but unrequested types."""
    graph, subsystem = walk.graph, walk.view.subsystem
    for candidate in chosen:
        for member in candidate.members:
            vertex = graph.edge_source[member.edge]
            while (edge := graph.parent_edge(vertex, subsystem)) is not None and edge not in selection.edges:
                if graph.type[vertex] in pools and graph.type[vertex] not in level.types:
                    selection.edges[edge] = (graph.size[vertex], False)
                vertex = graph.edge_source[edge]
