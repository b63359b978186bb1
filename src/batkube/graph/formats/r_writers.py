"""R (RFC 20): a match as ranks, hosts, and the ids of the cores and GPUs on them.

{"version": 1, "execution": {"R_lite": [{"rank": "0-1", "children": {"core": "0-3"}}], "nodelist": ["node[0-1]"],
 "starttime": 0, "expiration": 3600}, "scheduling": {"graph": …}}

Imitates flux-sched resource/writers/match_writers.cpp.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from batkube.graph.formats.match_writers import (
    JgfShorthandWriter,
    JgfWriter,
    MatchedVertex,
    MatchWriteError,
    MatchWriter,
    PrettySimpleWriter,
    SimpleWriter,
)
from batkube.graph.idsets import encode_hostlist, encode_idset
from batkube.graph.resources import ResourceGraph

_CHILD_TYPES = ("core", "gpu")
#: Fluxion counts the storage nodes of El Capitan among the hosts.
_HOST_TYPES = ("node", "storage_node")


class RliteWriter(MatchWriter):
    """`R_lite`, the list of ranks. Ranks with equal children share an entry."""

    def __init__(self) -> None:
        #: The ids of cores and GPUs added since the last host, which contains them.
        self._ids: dict[str, list[int]] = {type: [] for type in _CHILD_TYPES}
        #: By the children as JSON, the ranks and names of the hosts with these children.
        self._hosts: dict[str, list[tuple[int, str]]] = {}
        self._properties: dict[str, list[int]] = {}

    def add_vertex(self, matched: MatchedVertex) -> None:
        """Add a core or GPU, or the host that contains those added before."""
        graph, vertex = matched.graph, matched.vertex
        type = graph.type[vertex]
        if type in self._ids:
            self._ids[type].append(graph.id[vertex])
        elif type in _HOST_TYPES and any(self._ids.values()):
            children = {type: encode_idset(ids) for type, ids in self._ids.items() if ids}
            self._ids = {type: [] for type in _CHILD_TYPES}
            self._hosts.setdefault(json.dumps(children), []).append((graph.rank[vertex], graph.name[vertex]))
            for key, value in sorted(graph.properties.get(vertex, {}).items()):
                self._properties.setdefault(f"{key}={value}" if value else key, []).append(graph.rank[vertex])

    def pop_execution(self) -> dict[str, Any] | None:
        """Return the ranks, hosts and properties added since the last call; None without hosts."""
        if not self._hosts:
            return None
        hosts = [host for group in sorted(self._hosts) for host in sorted(self._hosts[group])]
        execution: dict[str, Any] = {
            "R_lite": [
                {"rank": encode_idset(rank for rank, _ in self._hosts[group]), "children": json.loads(group)}
                for group in sorted(self._hosts)
            ],
            "nodelist": [encode_hostlist(name for _, name in sorted(hosts, key=lambda host: host[0]))],
        }
        if self._properties:
            execution["properties"] = {name: encode_idset(ranks) for name, ranks in sorted(self._properties.items())}
        self._hosts, self._properties = {}, {}
        return execution

    def text(self) -> str:
        """Return the list of ranks in one line. Raises MatchWriteError without hosts."""
        execution = self.pop_execution()
        if execution is None:
            raise MatchWriteError("Invalid argument", is_satisfiable=True)
        return json.dumps(execution["R_lite"], ensure_ascii=False) + "\n"


class Rv1Writer(MatchWriter):
    """R version 1. With `scheduling`, it contains the matched graph, which a scheduler can reload."""

    def __init__(self, scheduling: JgfWriter | None) -> None:
        self._rlite = RliteWriter()
        self._scheduling = scheduling
        self._window = (0, 0)
        self._queue = ""

    def add_vertex(self, matched: MatchedVertex) -> None:
        """Add a vertex to the list of ranks and to the graph."""
        self._rlite.add_vertex(matched)
        if self._scheduling is not None:
            self._scheduling.add_vertex(matched)

    def add_edge(self, graph: ResourceGraph, edge: int, parent_exclusive: bool) -> None:
        """Add an edge to the graph."""
        if self._scheduling is not None:
            self._scheduling.add_edge(graph, edge, parent_exclusive)

    def set_times(self, start: int, end: int) -> None:
        """Set `starttime` and `expiration`."""
        self._window = (start, end)

    def set_queue(self, name: str) -> None:
        """Set the job's queue."""
        self._queue = name

    def text(self) -> str:
        """Return R in one line; empty without hosts."""
        execution = self._rlite.pop_execution()
        if execution is None:
            return ""
        execution["starttime"], execution["expiration"] = self._window
        document: dict[str, Any] = {"version": 1, "execution": execution}
        if self._scheduling is not None:
            document["scheduling"] = self._scheduling.document()
            if self._queue:
                document["attributes"] = {"system": {"scheduler": {"queue": self._queue}}}
        return json.dumps(document, ensure_ascii=False) + "\n"


#: The formats of resource-query's option -F.
MATCH_FORMATS: dict[str, Callable[[], MatchWriter]] = {
    "simple": SimpleWriter,
    "pretty_simple": PrettySimpleWriter,
    "jgf": JgfWriter,
    "jgf_shorthand": JgfShorthandWriter,
    "rlite": RliteWriter,
    "rv1": lambda: Rv1Writer(JgfWriter()),
    "rv1_nosched": lambda: Rv1Writer(None),
    "rv1_shorthand": lambda: Rv1Writer(JgfShorthandWriter()),
}
