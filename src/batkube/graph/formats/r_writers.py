"""R: what a match is to those who start programs (RFC 20): ranks, hosts, and the ids of cores and GPUs on them.

{"version": 1, "execution": {"R_lite": [{"rank": "0-1", "children": {"core": "0-3"}}], "nodelist": ["node[0-1]"],
 "starttime": 0, "expiration": 3600}, "scheduling": {"graph": …}}
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from batkube.graph.formats.match_writers import (
    JgfShorthandWriter,
    JgfWriter,
    MatchWriteError,
    MatchWriter,
    PrettySimpleWriter,
    SimpleWriter,
)
from batkube.graph.idsets import encode_hostlist, encode_idset
from batkube.graph.resources import ResourceGraph

_COUNTED = ("core", "gpu")
#: Fluxion counts the storage nodes of El Capitan among the hosts, for the time being.
_HOSTS = ("node", "storage_node")


class RliteWriter:
    """The list of ranks alone; ranks whose children are the same stand together."""

    def __init__(self) -> None:
        self._ids: dict[str, list[int]] = {type: [] for type in _COUNTED}
        self._hosts: dict[str, list[tuple[int, str]]] = {}
        self._properties: dict[str, list[int]] = {}

    def vertex(
        self,
        graph: ResourceGraph,
        vertex: int,
        level: int,
        units: int,
        exclusive: bool,
        parent_exclusive: bool,
        extras: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        """Take a core or GPU, or the node they are all in."""
        type = graph.type[vertex]
        if type in self._ids:
            self._ids[type].append(graph.id[vertex])
        elif type in _HOSTS and any(self._ids.values()):
            children = {type: encode_idset(ids) for type, ids in self._ids.items() if ids}
            self._ids = {type: [] for type in _COUNTED}
            self._hosts.setdefault(json.dumps(children), []).append((graph.rank[vertex], graph.name[vertex]))
            for key, value in sorted(graph.properties.get(vertex, {}).items()):
                self._properties.setdefault(f"{key}={value}" if value else key, []).append(graph.rank[vertex])

    def edge(self, graph: ResourceGraph, edge: int, parent_exclusive: bool) -> None:
        """Edges are not in R."""

    def times(self, start: int, end: int) -> None:
        """Times are in R's other parts."""

    def queue(self, name: str) -> None:
        """Queues are in R's other parts."""

    def pop_execution(self) -> dict[str, Any] | None:
        """Return the lists of ranks, hosts and properties, and forget them; None if there are none."""
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
        """Return the list of ranks in one line. Raises MatchWriteError if there are none."""
        execution = self.pop_execution()
        if execution is None:
            raise MatchWriteError("Invalid argument", is_satisfiable=True)
        return json.dumps(execution["R_lite"], ensure_ascii=False) + "\n"


class Rv1Writer:
    """R with or without the graph that a scheduler would need to take it up again."""

    def __init__(self, scheduling: JgfWriter | None) -> None:
        self._rlite = RliteWriter()
        self._scheduling = scheduling
        self._window = (0, 0)
        self._queue = ""

    def vertex(
        self,
        graph: ResourceGraph,
        vertex: int,
        level: int,
        units: int,
        exclusive: bool,
        parent_exclusive: bool,
        extras: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        """Take a vertex for both parts."""
        self._rlite.vertex(graph, vertex, level, units, exclusive, parent_exclusive, extras)
        if self._scheduling is not None:
            self._scheduling.vertex(graph, vertex, level, units, exclusive, parent_exclusive, extras)

    def edge(self, graph: ResourceGraph, edge: int, parent_exclusive: bool) -> None:
        """Take an edge for the graph."""
        if self._scheduling is not None:
            self._scheduling.edge(graph, edge, parent_exclusive)

    def times(self, start: int, end: int) -> None:
        """Take from when to when the match is."""
        self._window = (start, end)

    def queue(self, name: str) -> None:
        """Take the queue of the job."""
        self._queue = name

    def text(self) -> str:
        """Return R in one line, nothing if no host is in it."""
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
