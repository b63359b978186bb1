"""On small graphs, matches are compared with an exhaustive search: valid, exclusive and the earliest."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batkube.graph import CountRange, Jobspec, Matcher, MatchOperation, ResourceGraph, Vertex, VertexRequest

POLICIES = ("high", "low", "hinode", "lonode", "first", "locality")
HORIZON = 200


def small_graph(shape: list[list[int]]) -> ResourceGraph:
    """Return a cluster with the given number of cores per node, by rack."""
    graph = ResourceGraph()
    root = graph.add_vertex(Vertex("cluster", "cluster", "cluster0", 0, {"containment": "/cluster0"}))
    numbers = {"node": 0}
    for rack_id, nodes in enumerate(shape):
        path = f"/cluster0/rack{rack_id}"
        rack = graph.add_vertex(Vertex("rack", "rack", f"rack{rack_id}", rack_id, {"containment": path}))
        graph.add_edge(root, rack)
        for cores in nodes:
            node_id = numbers["node"]
            numbers["node"] += 1
            node_path = f"{path}/node{node_id}"
            node = graph.add_vertex(
                Vertex("node", "node", f"node{node_id}", node_id, {"containment": node_path}, rank=node_id)
            )
            graph.add_edge(rack, node)
            for core in range(cores):
                name = f"core{core}"
                vertex = Vertex("core", "core", name, core, {"containment": f"{node_path}/{name}"}, rank=node_id)
                graph.add_edge(node, graph.add_vertex(vertex))
    return graph


@dataclasses.dataclass(frozen=True)
class Request:
    """A request for nodes with some cores each, shared or exclusive, or for bundles of cores on any nodes."""

    kind: str
    count: int
    cores: int
    duration: int

    def jobspec(self) -> Jobspec:
        core = VertexRequest("core", CountRange(self.cores, self.cores))
        if self.kind == "bundles":
            slot = VertexRequest("slot", CountRange(self.count, self.count), (core,), label="s")
            return Jobspec((slot,), self.duration)
        slot = VertexRequest("slot", CountRange(1, 1), (core,), label="s")
        exclusive = True if self.kind == "exclusive" else None
        node = VertexRequest("node", CountRange(self.count, self.count), (slot,), exclusive=exclusive)
        return Jobspec((node,), self.duration)


requests = st.builds(
    Request,
    st.sampled_from(["nodes", "exclusive", "bundles"]),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 20),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("allocate"), requests),
        st.tuples(st.just("allocate_orelse_reserve"), requests),
        st.tuples(st.just("cancel"), st.integers(0, 10)),
    ),
    min_size=1,
    max_size=10,
)
shapes = st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=3), min_size=1, max_size=2)


@dataclasses.dataclass
class Holding:
    """The resources of a job, and when it holds them."""

    start: int
    end: int
    cores: set[int]
    nodes: set[int]
    exclusive_nodes: set[int]

    def overlaps(self, start: int, end: int) -> bool:
        return self.start < end and start < self.end


class Oracle:
    """Finds free cores by an exhaustive search."""

    def __init__(self, graph: ResourceGraph) -> None:
        self.graph = graph
        self.holdings: dict[int, Holding] = {}

    def fits(self, request: Request, start: int) -> bool:
        others = [holding for holding in self.holdings.values() if holding.overlaps(start, start + request.duration)]
        counts = []
        for node in self.graph.by_type["node"]:
            if any(node in other.exclusive_nodes for other in others):
                continue
            if request.kind == "exclusive" and any(node in other.nodes for other in others):
                continue
            free = [v for v in self.graph.children(node) if all(v not in other.cores for other in others)]
            counts.append(len(free) // request.cores)
        available = sum(counts) if request.kind == "bundles" else sum(count > 0 for count in counts)
        return available >= request.count

    def earliest(self, request: Request) -> int | None:
        times = sorted({0, *(holding.end for holding in self.holdings.values())})
        return next((time for time in times if self.fits(request, time)), None)


def _holding(matcher: Matcher, job: int, start: int, duration: int) -> Holding:
    graph, entries = matcher.graph, matcher.ledger.entries
    used = matcher.ledger.vertices_of_job[job]
    exclusive = {v for v in used if job in entries[v].allocations or job in entries[v].reservations}
    return Holding(
        start,
        start + duration,
        {v for v in exclusive if graph.type[v] == "core"},
        {v for v in used if graph.type[v] == "node"},
        {v for v in exclusive if graph.type[v] == "node"},
    )


def _check_valid(graph: ResourceGraph, request: Request, holding: Holding, others: list[Holding]) -> None:
    per_node = [len(holding.cores & set(graph.children(node))) for node in holding.nodes]
    if request.kind == "bundles":
        assert sum(per_node) == request.count * request.cores
        assert all(count % request.cores == 0 for count in per_node)
    else:
        assert len(holding.nodes) == request.count
        assert all(count >= request.cores for count in per_node)
    assert bool(holding.exclusive_nodes) == (request.kind == "exclusive")
    for other in others:
        if other.overlaps(holding.start, holding.end):
            assert not holding.cores & other.cores
            assert not holding.exclusive_nodes & other.nodes
            assert not holding.nodes & other.exclusive_nodes


@pytest.mark.parametrize("policy", POLICIES)
@settings(deadline=None, max_examples=60)
@given(shape=shapes, history=steps)
def test_matches_are_valid_and_as_early_as_an_exhaustive_search_finds(
    policy: str, shape: list[list[int]], history: list[tuple[str, object]]
) -> None:
    matcher = Matcher(small_graph(shape), policy, filters="ALL:core,ALL:node")
    oracle = Oracle(matcher.graph)

    for job, (step, argument) in enumerate(history, 1):
        if isinstance(argument, int):
            if oracle.holdings:
                number = sorted(oracle.holdings)[argument % len(oracle.holdings)]
                matcher.cancel(number)
                del oracle.holdings[number]
            continue
        assert isinstance(argument, Request)
        outcome = matcher.match(argument.jobspec(), MatchOperation(step), job=job)
        is_now = step == "allocate"
        expected = (0 if oracle.fits(argument, 0) else None) if is_now else oracle.earliest(argument)
        assert outcome.start == expected
        if outcome.start is not None:
            holding = _holding(matcher, job, outcome.start, argument.duration)
            _check_valid(matcher.graph, argument, holding, list(oracle.holdings.values()))
            oracle.holdings[job] = holding
