"""GRUG: a recipe from which a resource graph is generated.

A node of the recipe stands for vertices of one type. The method of an edge says how it generates
vertices or edges of the graph:

* MULTIPLY creates a number of vertices below every vertex of the edge's source.
* ASSOCIATE_IN adds edges of another subsystem from every vertex of the source to all existing
  vertices of the target's type.
* ASSOCIATE_BY_PATH_IN does the same for vertices whose paths in a subsystem start alike.

The recipe is walked depth first. All vertices for an edge are created before the walk continues
below them. A vertex's id is unique below its parent (`id_scope` 0), its grandparent (1) and so on.

Imitates flux-sched resource/readers/resource_reader_grug.cpp.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from pathlib import Path

from batkube.graph.formats.grug_xml import RecipePart, parse_recipe
from batkube.graph.resources import CONTAINMENT, ResourceGraph, Vertex
from batkube.kernel.errors import InputError

#: A limit, because a recipe of twenty lines can stand for more vertices than memory holds.
VERTICES_MAX = 5_000_000
_METHODS = ("MULTIPLY", "ASSOCIATE_IN", "ASSOCIATE_BY_PATH_IN")
_SIZE_MAX = 2**31 - 1


@dataclasses.dataclass(frozen=True, slots=True)
class _VertexTemplate:
    """A node of the recipe."""

    line: int
    is_root: bool
    type: str
    basename: str
    size: int
    unit: str
    subsystem: str


@dataclasses.dataclass(frozen=True, slots=True)
class _EdgeTemplate:
    """An edge of the recipe."""

    line: int
    source: str
    target: str
    subsystem: str
    method: str
    scale: int
    id_scope: int
    id_start: int
    id_stride: int
    path_subsystem: str
    target_levels: int
    source_levels: int


def read_grug(path: Path, content: bytes) -> ResourceGraph:
    """Return the graph that a recipe generates."""
    parts = parse_recipe(str(path), content)
    templates: dict[str, _VertexTemplate] = {}
    for part in parts.nodes:
        name = part.attributes.get("id", "")
        if name in templates:
            raise _recipe_error(path, part, f"the node {name!r} appears twice", "use different ids")
        templates[name] = _vertex_template(path, part)
    edges: dict[str, list[_EdgeTemplate]] = {name: [] for name in templates}
    for part in parts.edges:
        edge = _edge_template(path, part)
        for end in (edge.source, edge.target):
            if end not in templates:
                raise _recipe_error(path, part, f"the edge's node {end!r} does not exist", "add the node")
        edges[edge.source].append(edge)
    generator = _Generator(path, templates, edges)
    generator.run()
    return generator.graph


class _Generator:
    """Walks a recipe and creates the graph."""

    def __init__(
        self, path: Path, templates: dict[str, _VertexTemplate], edges: dict[str, list[_EdgeTemplate]]
    ) -> None:
        self.graph = ResourceGraph()
        self._path = path
        self._templates = templates
        self._edges = edges
        #: The vertices created for each node of the recipe.
        self._created: dict[str, list[int]] = {}
        #: The nodes on the walk's path from the first one.
        self._open: list[str] = []
        self._visited: set[str] = set()
        #: The `multi_scale` of the edges above the current one, the nearest first.
        self._scales: deque[int] = deque()
        self._node_rank = -1

    def run(self) -> None:
        """Walk the whole recipe, starting at its first node."""
        for name in self._templates:
            if name not in self._visited:
                self._visit(name)
        if CONTAINMENT not in self.graph.roots:
            problem = "the containment subsystem has no root: no node with edges has the datum root=1"
            raise InputError(self._path, problem=problem, remedy='add <data key="root">1</data> to the outermost node')

    def _visit(self, name: str) -> None:
        self._visited.add(name)
        self._open.append(name)
        for edge in self._edges[name]:
            if edge.target in self._open:
                cycle = [*self._open[self._open.index(edge.target) :], edge.target]
                problem = f"has a cycle: {' → '.join(cycle)}"
                raise InputError(self._path, at=f"line {edge.line}", problem=problem, remedy="remove one of the edges")
            if edge.target not in self._visited:
                self._generate(edge)
                self._visit(edge.target)
        self._open.pop()
        if self._scales:
            self._scales.popleft()

    def _generate(self, edge: _EdgeTemplate) -> None:
        template = self._templates[edge.source]
        if template.is_root and not self._created.get(edge.source):
            self._created[edge.source] = [self._root(template)]
        self._created[edge.target] = []
        if edge.method == "MULTIPLY":
            self._multiply(edge)
        else:
            self._associate(edge)

    def _root(self, template: _VertexTemplate) -> int:
        if template.subsystem in self.graph.roots:
            return self.graph.roots[template.subsystem]
        return self._add(template, 0, "")

    def _multiply(self, edge: _EdgeTemplate) -> None:
        template, sources = self._templates[edge.target], self._created.get(edge.source, [])
        if len(self.graph.type) + len(sources) * edge.scale > VERTICES_MAX:
            problem = f"the recipe generates more than {VERTICES_MAX:,} vertices"
            raise InputError(self._path, at=f"line {edge.line}", problem=problem, remedy="reduce multi_scale")
        for number, source in enumerate(sources):
            prefix = self.graph.paths.get(template.subsystem, {}).get(source, "")
            for copy in range(edge.scale):
                vertex = self._add(template, self._id(edge, copy, number), prefix)
                self.graph.add_edge(source, vertex, edge.subsystem)
                self._created[edge.target].append(vertex)
        self._scales.appendleft(edge.scale)

    def _id(self, edge: _EdgeTemplate, copy: int, number: int) -> int:
        if edge.id_scope < 0:
            return -1
        if edge.id_scope == 0:
            return edge.id_start + copy
        wrap = 1
        for scale in list(self._scales)[: edge.id_scope]:
            wrap *= scale
        return edge.id_start + (number % wrap * edge.scale + copy) * edge.id_stride

    def _associate(self, edge: _EdgeTemplate) -> None:
        graph, subsystem = self.graph, edge.subsystem
        for source in self._created.get(edge.source, []):
            for target in list(graph.by_type.get(self._templates[edge.target].type, [])):
                if edge.method == "ASSOCIATE_BY_PATH_IN" and not self._share_path(edge, source, target):
                    continue
                prefix = graph.paths.get(subsystem, {}).get(source, "")
                graph.add_path(target, subsystem, f"{prefix}/{graph.name[target]}")
                self._connect(source, target, subsystem)
                self._created[edge.target].append(target)

    def _connect(self, source: int, target: int, subsystem: str) -> None:
        """Add an edge. As in Fluxion, an existing one changes its subsystem instead."""
        existing = self.graph.edge_between(source, target)
        if existing is None:
            self.graph.add_edge(source, target, subsystem)
        else:
            self.graph.edge_subsystem[existing] = subsystem

    def _share_path(self, edge: _EdgeTemplate, source: int, target: int) -> bool:
        paths = self.graph.paths.get(edge.path_subsystem, {})
        return _prefix(paths.get(target, ""), edge.target_levels) == _prefix(paths.get(source, ""), edge.source_levels)

    def _add(self, template: _VertexTemplate, id: int, prefix: str) -> int:
        rank = -1
        if template.type == "node":
            rank = self._node_rank = self._node_rank + 1
        name = f"{template.basename}{id if id != -1 else ''}"
        paths = {template.subsystem: f"{prefix}/{name}"}
        return self.graph.add_vertex(
            Vertex(template.type, template.basename, name, id, paths, size=template.size, unit=template.unit, rank=rank)
        )


def _prefix(path: str, levels: int) -> str:
    """Return a path without its last `levels` names; empty if it has no more names than that."""
    if levels >= path.count("/"):
        return ""
    return path.rsplit("/", levels)[0] + "/"


def _vertex_template(path: Path, part: RecipePart) -> _VertexTemplate:
    data = part.data
    if not data.get("type"):
        raise _recipe_error(path, part, "the node has no type", 'add <data key="type">…</data>')
    size = _number(path, part, "size", 1)
    if not 0 <= size <= _SIZE_MAX:
        raise _recipe_error(path, part, f"the size is {size}", f"use a size from 0 to {_SIZE_MAX}")
    return _VertexTemplate(
        part.line,
        _number(path, part, "root", 0) != 0,
        data["type"],
        data.get("basename") or data["type"],
        size,
        data.get("unit", ""),
        data.get("subsystem") or CONTAINMENT,
    )


def _edge_template(path: Path, part: RecipePart) -> _EdgeTemplate:
    data = part.data
    method = data.get("gen_method") or "MULTIPLY"
    if method not in _METHODS:
        raise _recipe_error(path, part, f"the gen_method {method!r} is unknown", f"use one of {', '.join(_METHODS)}")
    scale = _number(path, part, "multi_scale", 1)
    if scale < 0:
        raise _recipe_error(path, part, f"multi_scale is {scale}", "use the number of vertices below each source")
    return _EdgeTemplate(
        part.line,
        part.attributes.get("source", ""),
        part.attributes.get("target", ""),
        data.get("e_subsystem") or CONTAINMENT,
        method,
        scale,
        _number(path, part, "id_scope", 0),
        _number(path, part, "id_start", 0),
        _number(path, part, "id_stride", 1),
        data.get("as_tgt_subsystem") or CONTAINMENT,
        _number(path, part, "as_tgt_uplvl", 1),
        _number(path, part, "as_src_uplvl", 1),
    )


def _number(path: Path, part: RecipePart, key: str, default: int) -> int:
    text = part.data.get(key, "")
    try:
        return int(text) if text else default
    except ValueError:
        raise _recipe_error(path, part, f"{key} is {text!r}", "use a whole number") from None


def _recipe_error(path: Path, part: RecipePart, problem: str, remedy: str) -> InputError:
    return InputError(path, at=f"line {part.line}", problem=problem, remedy=remedy)
