"""Resource graphs and their matcher, usable without the rest of Batkube.

from batkube.graph import Matcher, MatchOperation, parse_jobspec, read_graph
"""

from __future__ import annotations

from batkube.graph.jobspec import CountRange, Jobspec, VertexRequest, parse_jobspec
from batkube.graph.match_writers import JgfWriter, MatchWriter, SimpleWriter
from batkube.graph.matcher import Matcher, MatchOperation, MatchOutcome
from batkube.graph.planner import MultiPlanner, Planner
from batkube.graph.r_writers import MATCH_FORMATS
from batkube.graph.reading import read_graph
from batkube.graph.resources import ResourceGraph, Vertex
from batkube.graph.session import QuerySession

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
