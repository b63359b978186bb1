"""On small graphs the matcher is right by exhaustion: valid, exclusive, earliest, and nothing only where nothing is."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batkube.graph import CountRange, Jobspec, Matcher, MatchOperation, ResourceGraph, Vertex, VertexRequest

POLICIES = ("high", "low", "hinode", "lonode", "first", "locality")
HORIZON = 200


def small_graph(shape: list[list[int]]) -> ResourceGraph:
    """Return a cluster of racks of nodes of so many cores."""
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
    """So many nodes with so many cores each, shared or alone; or, without nodes, so many bundles of cores."""

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
        alone = True if self.kind == "alone" else None
        node = VertexRequest("node", CountRange(self.count, self.count), (slot,), exclusive=alone)
        return Jobspec((node,), self.duration)


requests = st.builds(
    Request,
    st.sampled_from(["nodes", "alone", "bundles"]),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 20),
)
moves = st.lists(
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
    """What a job has, and when."""

    start: int
    end: int
    cores: set[int]
    nodes: set[int]
    alone: set[int]

    def overlaps(self, start: int, end: int) -> bool:
        return self.start < end and start < self.end


class Oracle:
    """Every core of every node, by exhaustion."""

    def __init__(self, graph: ResourceGraph) -> None:
        self.graph = graph
        self.holdings: dict[int, Holding] = {}

    def fits(self, request: Request, start: int) -> bool:
        others = [held for held in self.holdings.values() if held.overlaps(start, start + request.duration)]
        counts = []
        for node in self.graph.by_type["node"]:
            if any(node in held.alone for held in others):
                continue
            if request.kind == "alone" and any(node in held.nodes for held in others):
                continue
            free = [v for v in self.graph.children(node) if all(v not in held.cores for held in others)]
            counts.append(len(free) // request.cores)
        places = sum(counts) if request.kind == "bundles" else sum(count > 0 for count in counts)
        return places >= request.count

    def earliest(self, request: Request) -> int | None:
        times = sorted({0, *(held.end for held in self.holdings.values())})
        return next((time for time in times if self.fits(request, time)), None)


def _holding(matcher: Matcher, job: int, start: int, duration: int) -> Holding:
    graph, pages = matcher.graph, matcher.ledger.entries
    touched = matcher.ledger.vertices_of_job[job]
    own = {v for v in touched if job in pages[v].allocations or job in pages[v].reservations}
    return Holding(
        start,
        start + duration,
        {v for v in own if graph.type[v] == "core"},
        {v for v in touched if graph.type[v] == "node"},
        {v for v in own if graph.type[v] == "node"},
    )


def _check_valid(graph: ResourceGraph, request: Request, holding: Holding, others: list[Holding]) -> None:
    per_node = [len(holding.cores & set(graph.children(node))) for node in holding.nodes]
    if request.kind == "bundles":
        assert sum(per_node) == request.count * request.cores
        assert all(count % request.cores == 0 for count in per_node)
    else:
        assert len(holding.nodes) == request.count
        assert all(count >= request.cores for count in per_node)
    assert bool(holding.alone) == (request.kind == "alone")
    for other in others:
        if other.overlaps(holding.start, holding.end):
            assert not holding.cores & other.cores
            assert not holding.alone & other.nodes
            assert not holding.nodes & other.alone


@pytest.mark.parametrize("policy", POLICIES)
@settings(deadline=None, max_examples=60)
@given(shape=shapes, history=moves)
def test_matches_are_valid_earliest_and_missing_only_where_nothing_is(
    policy: str, shape: list[list[int]], history: list[tuple[str, object]]
) -> None:
    matcher = Matcher(small_graph(shape), policy, filters="ALL:core,ALL:node")
    oracle = Oracle(matcher.graph)

    for job, (move, what) in enumerate(history, 1):
        if isinstance(what, int):
            if oracle.holdings:
                number = sorted(oracle.holdings)[what % len(oracle.holdings)]
                matcher.cancel(number)
                del oracle.holdings[number]
            continue
        assert isinstance(what, Request)
        outcome = matcher.match(what.jobspec(), MatchOperation(move), job=job)
        is_now = move == "allocate"
        expected = (0 if oracle.fits(what, 0) else None) if is_now else oracle.earliest(what)
        assert outcome.start == expected
        if outcome.start is not None:
            holding = _holding(matcher, job, outcome.start, what.duration)
            _check_valid(matcher.graph, what, holding, list(oracle.holdings.values()))
            oracle.holdings[job] = holding
