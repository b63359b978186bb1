"""Compiled jobspecs: the requests of each level by type, with their total demand.

The walk looks up the request that a vertex may satisfy by the vertex's type, so a level is a
mapping by type. The *demand* of a request is the minimum it takes of every tracked type. Filters
use it to skip whole subtrees.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from batkube.graph.requests.jobspec import SLOT, XOR_SLOT, CountRange, Jobspec, VertexRequest


class CompiledRequest:
    """A request for vertices of a type."""

    __slots__ = ("count", "demand", "effective_most", "exclusive", "inside", "type")

    def __init__(self, request: VertexRequest, tracked: Collection[str], *, is_flexible: bool) -> None:
        self.type = request.type
        self.count: CountRange = request.count
        self.exclusive = request.exclusive
        self.effective_most = request.count.effective_most
        self.inside = _compile(request.inside, tracked, is_flexible=is_flexible)
        self.demand = self.inside.demand


class RequestLevel:
    """The requests of one level of a jobspec."""

    __slots__ = ("by_type", "conflicting", "demand", "requests", "slots", "types")

    def __init__(self, requests: Iterable[CompiledRequest], demand: dict[str, int]) -> None:
        self.requests = tuple(requests)
        self.slots = tuple(request for request in self.requests if request.type == SLOT)
        #: The request for each type, without slots.
        self.by_type = {request.type: request for request in self.requests if request.type != SLOT}
        self.types = tuple(request.type for request in self.requests)
        #: Types requested twice or beside a slot. Fluxion's simple walk rejects vertices of these types
        #: ("siblings in jobspec request same resource type").
        self.conflicting = frozenset(type for type in self.types if self.types.count(type) + len(self.slots) > 1)
        #: The minimum demand of all requests, by tracked type.
        self.demand = demand


def compile_requests(jobspec: Jobspec, tracked: Collection[str], *, is_flexible: bool = False) -> RequestLevel:
    """Return the compiled top level of a jobspec."""
    return _compile(jobspec.resources, tracked, is_flexible=is_flexible)


def _compile(requests: Iterable[VertexRequest], tracked: Collection[str], *, is_flexible: bool) -> RequestLevel:
    compiled = [CompiledRequest(request, tracked, is_flexible=is_flexible) for request in requests]
    return RequestLevel(compiled, _flexible_demand(compiled, tracked) if is_flexible else _demand(compiled, tracked))


def exclusive_types(requests: Iterable[VertexRequest]) -> set[str]:
    """Return the types that a jobspec requests exclusively at any level."""
    types: set[str] = set()
    for request in requests:
        if request.exclusive:
            types.add(request.type)
        types |= exclusive_types(request.inside)
    return types


def _demand(requests: Iterable[CompiledRequest], tracked: Collection[str]) -> dict[str, int]:
    """Return the minimum demand of requests, by tracked type."""
    demand: dict[str, int] = {}
    for request in requests:
        if request.type in tracked:
            demand[request.type] = demand.get(request.type, 0) + request.count.least
        for type, count in request.demand.items():
            demand[type] = demand.get(type, 0) + count * request.count.least
    return demand


def _flexible_demand(requests: Iterable[CompiledRequest], tracked: Collection[str]) -> dict[str, int]:
    """Return the minimum demand if slots at one level are alternatives: the lowest of the slots counts."""
    demand: dict[str, int] = {}
    for request in requests:
        if request.type in tracked:
            demand[request.type] = demand.get(request.type, 0) + request.count.least
        if request.type in (SLOT, XOR_SLOT):
            for type, count in request.demand.items():
                demand[type] = min(demand.get(type, count * request.count.least), count * request.count.least)
            for type in demand:
                if type not in request.demand:
                    demand[type] = 0
            continue
        for type, count in request.demand.items():
            demand[type] = demand.get(type, 0) + count * request.count.least
    return demand
