"""Reads R (RFC 20) as a graph: a cluster of nodes with cores and GPUs.

Imitates flux-sched resource/readers/resource_reader_rv1exec.cpp.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from batkube.graph.formats.json_files import decode_json
from batkube.graph.idsets import decode_hostlist, decode_idset, split_host
from batkube.graph.resources import CONTAINMENT, ResourceGraph, Vertex
from batkube.kernel.errors import InputError


class RliteEntry(msgspec.Struct, frozen=True):
    """Ranks with equal children."""

    rank: str
    children: dict[str, str]


class RExecution(msgspec.Struct, frozen=True):
    """The part `execution` of R."""

    R_lite: list[RliteEntry]
    nodelist: list[str] = []
    properties: dict[str, str] | None = None
    starttime: float = 0
    expiration: float = 0


class RFile(msgspec.Struct, frozen=True):
    """A file in the format R."""

    version: int
    execution: RExecution
    scheduling: dict[str, Any] | None = None


def parse_r(path: Path, content: bytes) -> RFile:
    """Parse a file and check its types. Raises InputError with the place."""
    file = decode_json(path, content, RFile, remedy="see RFC 20")
    if file.version != 1:
        raise InputError(path, at="version", problem=f"is {file.version}", remedy="only version 1 is supported")
    return file


def ranks_of(path: Path, file: RFile) -> list[int]:
    """Return the ranks in a file in ascending order."""
    entries = enumerate(file.execution.R_lite)
    return sorted({rank for index, entry in entries for rank in _ids(path, f"R_lite[{index}].rank", entry.rank)})


def vertices_of_r(path: Path, file: RFile) -> Iterator[tuple[Vertex, list[Vertex]]]:
    """Yield the nodes in a file, each with its children. Their paths lack the root's name."""
    try:
        hosts = [host for text in file.execution.nodelist for host in decode_hostlist(text)]
    except ValueError as error:
        raise InputError(path, at="execution.nodelist", problem=str(error), remedy="write it as node[0-3]") from None
    for host in hosts:
        if len(split_host(host)[1].lstrip("0")) > 18:
            problem = f"the host name {host!r} ends in a number of more than 18 digits"
            raise InputError(path, at="execution.nodelist", problem=problem, remedy="number hosts from 0")
    numbers = {rank: number for number, rank in enumerate(ranks_of(path, file))}
    if len(hosts) < len(numbers):
        problem = f"has {len(hosts)} hosts for {len(numbers)} ranks"
        raise InputError(path, at="execution.nodelist", problem=problem, remedy="name a host for each rank")
    properties = _properties(path, file)
    for index, entry in enumerate(file.execution.R_lite):
        children = {type: _ids(path, f"R_lite[{index}].children.{type}", text) for type, text in entry.children.items()}
        for rank in _ids(path, f"R_lite[{index}].rank", entry.rank):
            host = hosts[numbers[rank]]
            yield _node(host, rank, properties.get(rank, {})), list(_children(host, rank, children))


def _node(host: str, rank: int, properties: dict[str, str]) -> Vertex:
    prefix, digits = split_host(host)
    id = int(digits) if digits else -1
    return Vertex("node", prefix or host, host, id, {CONTAINMENT: f"/{host}"}, rank=rank, properties=properties)


def _children(host: str, rank: int, children: dict[str, list[int]]) -> Iterator[Vertex]:
    for type, ids in children.items():
        for id in ids:
            name = f"{type}{id}"
            yield Vertex(type, type, name, id, {CONTAINMENT: f"/{host}/{name}"}, rank=rank)


def _properties(path: Path, file: RFile) -> dict[int, dict[str, str]]:
    properties: dict[int, dict[str, str]] = {}
    for name, ranks in (file.execution.properties or {}).items():
        for rank in _ids(path, f"properties.{name}", ranks):
            properties.setdefault(rank, {})[name] = ""
    return properties


def _ids(path: Path, at: str, text: str) -> list[int]:
    try:
        return decode_idset(text)
    except ValueError as error:
        raise InputError(path, at=f"execution.{at}", problem=str(error), remedy="write ids as 0-3,7") from None


def read_rv1(path: Path, content: bytes) -> ResourceGraph:
    """Return the graph that R describes: a cluster of its nodes."""
    graph = ResourceGraph()
    root = graph.add_vertex(Vertex("cluster", "cluster", "cluster0", 0, {CONTAINMENT: "/cluster0"}))
    for node, children in vertices_of_r(path, parse_r(path, content)):
        number = graph.add_vertex(_under_cluster(node))
        graph.add_edge(root, number)
        for child in children:
            graph.add_edge(number, graph.add_vertex(_under_cluster(child)))
    return graph


def _under_cluster(vertex: Vertex) -> Vertex:
    return dataclasses.replace(vertex, paths={CONTAINMENT: f"/cluster0{vertex.paths[CONTAINMENT]}"})
