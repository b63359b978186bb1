"""Caches of earlier walks change no result: a matcher that clears its caches finds the same."""

from __future__ import annotations

import random

import pytest

from batkube.graph import CountRange, Jobspec, Matcher, MatchOperation, ResourceGraph, Vertex, VertexRequest
from batkube.graph.traversal.match_policy import POLICY_NAMES

CLASSES = 3
NODES = 20
#: Mostly allocations and reservations, so that the cluster is usually full.
OPERATIONS = (*[MatchOperation.ALLOCATE, MatchOperation.ALLOCATE_ORELSE_RESERVE] * 4, *MatchOperation)


def cluster(racks: int, *, numbered_by_rack: bool) -> ResourceGraph:
    """Return a cluster of nodes with two sockets of three cores. Node ids are unique in the cluster, or in a rack."""
    graph = ResourceGraph()
    root = graph.add_vertex(Vertex("cluster", "cluster", "cluster0", 0, {"containment": "/cluster0"}))

    def add(parent: int, type: str, number: int, id: int, rank: int = -1) -> int:
        path = f"{graph.paths['containment'][parent]}/{type}{number}"
        properties = {"perf_class": str(number % CLASSES)} if type == "node" else {}
        vertex = Vertex(type, type, f"{type}{number}", id, {"containment": path}, rank=rank, properties=properties)
        graph.add_edge(parent, child := graph.add_vertex(vertex))
        return child

    rack_vertices = [add(root, "rack", rack, rack) for rack in range(racks)]
    for number in range(NODES):
        node = add(
            rack_vertices[number % racks], "node", number, number // racks if numbered_by_rack else number, number
        )
        for socket in range(2):
            vertex = add(node, "socket", socket, socket, number)
            for core in range(3):
                add(vertex, "core", core, core, number)
    return graph


def exactly(count: int, type: str, *inside: VertexRequest, exclusive: bool | None = None) -> VertexRequest:
    """Return a request for `count` vertices of a type."""
    return VertexRequest(type, CountRange(count, count), inside, exclusive=exclusive, label="s")


SHAPES = (
    (exactly(1, "node", exactly(1, "slot", exactly(2, "socket", exactly(1, "core")))),),
    (exactly(3, "node", exactly(1, "slot", exactly(1, "socket")), exclusive=True),),
    (exactly(4, "slot", exactly(2, "core")),),
    (exactly(2, "slot", exactly(1, "node")),),
    (exactly(7, "core"),),
    (exactly(1, "rack", exactly(2, "node", exclusive=True)),),
    (exactly(3, "socket", exactly(1, "slot", exactly(1, "core"))),),
)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_a_matcher_that_clears_its_caches_before_each_match_gives_the_same_results(policy: str, seed: int) -> None:
    draw = random.Random(f"{policy} {seed}")
    racks, numbered_by_rack = draw.randint(1, 3), draw.random() < 0.5
    caching, clearing = (Matcher(cluster(racks, numbered_by_rack=numbered_by_rack), policy) for _ in range(2))
    booked: list[int] = []
    matches = 0

    for number in range(100):
        clearing.on_graph_changed()
        step = draw.random()
        if step < 0.25 and booked:
            job = booked.pop(draw.randrange(len(booked)))
            caching.cancel(job)
            clearing.cancel(job)
        elif step < 0.3:
            path, is_up = draw.choice(_nodes(caching.graph)), draw.random() < 0.7
            assert caching.set_status(path, is_up=is_up)
            assert clearing.set_status(path, is_up=is_up)
        else:
            jobspec = Jobspec(draw.choice(SHAPES), duration=draw.choice((1, 7, 40, 300)))
            operation, now = draw.choice(OPERATIONS), draw.randint(0, 60)
            outcome = caching.match(jobspec, operation, job=number, now=now)
            expected = clearing.match(jobspec, operation, job=number, now=now)
            assert (outcome, caching.writer.text()) == (expected, clearing.writer.text())
            matches += outcome.is_match
            booked += [number] * (outcome.is_match and operation.allocates)

    assert matches > 10


def _nodes(graph: ResourceGraph) -> list[str]:
    return [graph.paths["containment"][vertex] for vertex in graph.by_type["node"]]
