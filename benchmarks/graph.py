"""Measure the matches per second of the resource graph matcher; see README.md."""

from __future__ import annotations

import argparse
import gc
import time
from dataclasses import dataclass
from pathlib import Path

from batkube.graph import Jobspec, Matcher, MatchOperation, ResourceGraph, Vertex
from batkube.graph.requests.jobspec import CountRange, VertexRequest
from recording import measured_commit, record

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "graph.md"
CORES = 64
POLICIES = ("first", "hinode")
#: Pruning filters: cores counted at every inner vertex, or at the root only.
FILTERS = {"with": "ALL:core,ALL:node", "without": "cluster:core"}
COLUMNS = ("nodes", "policy", "full", "filters", "first round ms", "matches / s", "ms each")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    nodes: int
    policy: str
    is_full: bool
    filters: str
    #: Mean CPU seconds of the first match of each shape, with empty caches.
    first_s: float
    matches: int
    cpu_s: float

    def markdown(self) -> str:
        """Return the line as Markdown."""
        each_s = self.cpu_s / self.matches
        cells = [f"{self.nodes:,}", self.policy, "nine tenths" if self.is_full else "empty", self.filters]
        cells += [f"{1000 * self.first_s:.0f}", f"{1 / each_s:,.0f}", f"{1000 * each_s:.2f}"]
        return f"| {' | '.join(cells)} |"


def cluster(nodes: int) -> ResourceGraph:
    """Return the graph of a cluster."""
    graph = ResourceGraph()
    root = graph.add_vertex(Vertex("cluster", "cluster", "cluster0", 0, {"containment": "/cluster0"}))
    for number in range(nodes):
        path = f"/cluster0/node{number}"
        node = graph.add_vertex(Vertex("node", "node", f"node{number}", number, {"containment": path}, rank=number))
        graph.add_edge(root, node)
        for core in range(CORES):
            name = f"core{core}"
            vertex = Vertex("core", "core", name, core, {"containment": f"{path}/{name}"}, rank=number)
            graph.add_edge(node, graph.add_vertex(vertex))
    return graph


def job(cores: int, duration: int) -> Jobspec:
    """Return a request for some cores of one node."""
    core = VertexRequest("core", CountRange(cores, cores))
    slot = VertexRequest("slot", CountRange(1, 1), (core,), label="default")
    return Jobspec((VertexRequest("node", CountRange(1, 1), (slot,)),), duration=duration)


def measured(nodes: int, policy: str, is_full: bool, filters: str, seconds: float) -> Row:
    """Match and cancel jobs of 1 to 8 cores and many durations for some CPU seconds."""
    matcher = Matcher(cluster(nodes), policy, filters=FILTERS[filters])
    for number in range(nodes * 9 // 10 if is_full else 0):
        assert matcher.match(job(CORES, 1_000_000), MatchOperation.ALLOCATE, job=10_000_000 + number).is_match
    gc.collect()
    gc.freeze()
    shapes = [job(cores, 600 * cores) for cores in range(1, 9)]
    began_s = time.process_time()
    for number, shape in enumerate(shapes):
        _match(matcher, shape, number)
    first_s = (time.process_time() - began_s) / len(shapes)
    began_s = time.process_time()
    matches = 0
    while time.process_time() - began_s < seconds:
        shape = job(1 + matches % 8, 60 + matches % 997)
        _match(matcher, shape, 100 + matches)
        matches += 1
    cpu_s = time.process_time() - began_s
    gc.unfreeze()
    return Row(nodes, policy, is_full, filters, first_s, matches, cpu_s)


def _match(matcher: Matcher, shape: Jobspec, number: int) -> None:
    """Allocate resources for a job, write the match, and cancel it."""
    assert matcher.match(shape, MatchOperation.ALLOCATE, job=number).is_match
    assert matcher.writer.text()
    matcher.cancel(number)


def main() -> None:
    """Measure, print the table, and append it to the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[100, 1_000, 10_000], help="sizes of the cluster")
    parser.add_argument("--seconds", type=float, default=3.0, help="CPU seconds for each line (default 3)")
    parser.add_argument("--no-record", action="store_true", help=f"do not append to {RESULTS.relative_to(HERE.parent)}")
    options = parser.parse_args()
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    print("\n".join(lines), flush=True)
    for nodes in options.nodes:
        for policy in POLICIES:
            for is_full in (False, True):
                for filters in FILTERS:
                    lines.append(measured(nodes, policy, is_full, filters, options.seconds).markdown())
                    print(lines[-1], flush=True)
    if not options.no_record:
        record(RESULTS, measured_commit(), lines)


if __name__ == "__main__":
    main()
