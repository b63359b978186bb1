"""A jobspec, made ready for the walk: what is wanted at a level, by type, and how much that is in all.

The walk asks of every vertex which wish of the level at hand it may fulfil, so lists of wishes know the answer by type.
Each wish also knows its *demand*, the least it takes of every type that filters track, with which whole subtrees can
be passed over.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from batkube.graph.requests.jobspec import SLOT, XOR_SLOT, CountRange, Jobspec, VertexRequest


class CompiledRequest:
    """A request for vertices of a type."""

    __slots__ = ("count", "demand", "effective_most", "exclusive", "inside", "label", "place", "type")

    def __init__(self, request: VertexRequest, tracked: Collection[str], *, is_flexible: bool) -> None:
        self.type = request.type
        self.count: CountRange = request.count
        self.exclusive = request.exclusive
        self.label = request.label
        self.place = request.place
        self.effective_most = request.count.effective_most
        self.inside = _compile(request.inside, tracked, is_flexible=is_flexible)
        self.demand = self.inside.demand


class RequestLevel:
    """What is wanted side by side."""

    __slots__ = ("by_type", "conflicting", "demand", "requests", "slots", "types")

    def __init__(self, wishes: Iterable[CompiledRequest], demand: dict[str, int]) -> None:
        self.requests = tuple(wishes)
        self.slots = tuple(wish for wish in self.requests if wish.type == SLOT)
        #: The wish for each type; slots stand apart.
        self.by_type = {wish.type: wish for wish in self.requests if wish.type != SLOT}
        self.types = tuple(wish.type for wish in self.requests)
        #: Types wanted twice, or beside a slot: Fluxion's simple walk refuses such vertices ("siblings in jobspec").
        self.conflicting = frozenset(type for type in self.types if self.types.count(type) + len(self.slots) > 1)
        #: The least that is taken in all, by type that is tracked.
        self.demand = demand


def compile_requests(jobspec: Jobspec, tracked: Collection[str], *, is_flexible: bool = False) -> RequestLevel:
    """Return what a jobspec wants at the top."""
    return _compile(jobspec.resources, tracked, is_flexible=is_flexible)


def _compile(requests: Iterable[VertexRequest], tracked: Collection[str], *, is_flexible: bool) -> RequestLevel:
    wishes = [CompiledRequest(request, tracked, is_flexible=is_flexible) for request in requests]
    return RequestLevel(wishes, _flexible_demand(wishes, tracked) if is_flexible else _demand(wishes, tracked))


def exclusive_types(requests: Iterable[VertexRequest]) -> set[str]:
    """Return the types that a jobspec wants for itself anywhere: whole subtrees of them are given."""
    types: set[str] = set()
    for request in requests:
        if request.exclusive:
            types.add(request.type)
        types |= exclusive_types(request.inside)
    return types


def _demand(wishes: Iterable[CompiledRequest], tracked: Collection[str]) -> dict[str, int]:
    """Add up the least that is taken of each type that is tracked."""
    demand: dict[str, int] = {}
    for wish in wishes:
        if wish.type in tracked:
            demand[wish.type] = demand.get(wish.type, 0) + wish.count.least
        for type, count in wish.demand.items():
            demand[type] = demand.get(type, 0) + count * wish.count.least
    return demand


def _flexible_demand(wishes: Iterable[CompiledRequest], tracked: Collection[str]) -> dict[str, int]:
    """The same where slots side by side are alternatives: of them only the least counts."""
    demand: dict[str, int] = {}
    for wish in wishes:
        if wish.type in tracked:
            demand[wish.type] = demand.get(wish.type, 0) + wish.count.least
        if wish.type in (SLOT, XOR_SLOT):
            for type, count in wish.demand.items():
                demand[type] = min(demand.get(type, count * wish.count.least), count * wish.count.least)
            for type in demand:
                if type not in wish.demand:
                    demand[type] = 0
            continue
        for type, count in wish.demand.items():
            demand[type] = demand.get(type, 0) + count * wish.count.least
    return demand
