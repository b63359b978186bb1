"""Resource graphs and their matcher. The package depends on `batkube.kernel` only.

from batkube.graph import Matcher, MatchOperation, parse_jobspec, read_graph
"""

from __future__ import annotations

from batkube.graph.accounting.planner import MultiPlanner, Planner
from batkube.graph.formats.match_writers import JgfWriter, MatchWriter, SimpleWriter
from batkube.graph.formats.r_writers import MATCH_FORMATS
from batkube.graph.formats.reader import read_graph
from batkube.graph.matching.matcher import Matcher, MatchOperation, MatchOutcome
from batkube.graph.query.session import QuerySession
from batkube.graph.requests.jobspec import CountRange, Jobspec, VertexRequest, parse_jobspec
from batkube.graph.resources import ResourceGraph, Vertex

__all__ = [
    "MATCH_FORMATS",
    "CountRange",
    "JgfWriter",
    "Jobspec",
    "MatchOperation",
    "MatchOutcome",
    "MatchWriter",
    "Matcher",
    "MultiPlanner",
    "Planner",
    "QuerySession",
    "ResourceGraph",
    "SimpleWriter",
    "Vertex",
    "VertexRequest",
    "parse_jobspec",
    "read_graph",
]
