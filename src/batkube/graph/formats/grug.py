"""GRUG: a recipe from which a resource graph is generated (Fluxion: resource/readers/README.md).

A node of the recipe stands for vertices of a kind, an edge for how they come to be: MULTIPLY makes so many below every
vertex of the edge's source; ASSOCIATE_IN puts the vertices there are of the target's type below each of the source's,
in another subsystem; ASSOCIATE_BY_PATH_IN only those that share the beginning of their path in a subsystem.
The recipe is walked depth first, and all copies for an edge are made before the walk goes on below them.

A vertex's id is unique below its parent (`id_scope` 0), its grandparent (1) and so on.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from pathlib import Path

from batkube.graph.formats.grug_xml import RecipePart, parse_recipe
from batkube.graph.resources import CONTAINMENT, ResourceGraph, Vertex
from batkube.kernel.errors import InputError

#: A recipe of twenty lines can stand for more than a machine holds.
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
    """Return the graph that a recipe stands for."""
    parts = parse_recipe(str(path), content)
    kinds: dict[str, _VertexTemplate] = {}
    for part in parts.nodes:
        name = part.attributes.get("id", "")
        if name in kinds:
            raise _recipe_error(path, part, f"the node {name!r} is there twice", "give each its own id")
        kinds[name] = _vertex_template(path, part)
    relations: dict[str, list[_EdgeTemplate]] = {name: [] for name in kinds}
    for part in parts.edges:
        relation = _edge_template(path, part)
        for end in (relation.source, relation.target):
            if end not in kinds:
                raise _recipe_error(path, part, f"an edge of the node {end!r}, which is not there", "add the node")
        relations[relation.source].append(relation)
    generator = _Generator(path, kinds, relations)
    generator.run()
    return generator.graph


class _Generator:
    """Walks over a recipe and makes the graph."""

    def __init__(
        self, path: Path, kinds: dict[str, _VertexTemplate], relations: dict[str, list[_EdgeTemplate]]
    ) -> None:
        self.graph = ResourceGraph()
        self._path = path
        self._kinds = kinds
        self._relations = relations
        #: The vertices made for each node of the recipe; those on the walk's way are open.
        self._created: dict[str, list[int]] = {}
        self._path_names: list[str] = []
        self._visited: set[str] = set()
        #: How many copies the edges around the one at hand made, the nearest first.
        self._scales: deque[int] = deque()
        self._node_rank = -1

    def run(self) -> None:
        """Walk over all of the recipe, from its first node on."""
        for name in self._kinds:
            if name not in self._visited:
                self._visit(name)
        if CONTAINMENT not in self.graph.roots:
            problem = "no root: none of its nodes with edges has the datum root=1 in the containment subsystem"
            raise InputError(
                self._path, problem=problem, remedy='mark the outermost node with <data key="root">1</data>'
            )

    def _visit(self, name: str) -> None:
        self._visited.add(name)
        self._path_names.append(name)
        for relation in self._relations[name]:
            if relation.target in self._path_names:
                cycle = [*self._path_names[self._path_names.index(relation.target) :], relation.target]
                problem = f"a cycle: {' → '.join(cycle)}"
                raise InputError(
                    self._path, at=f"line {relation.line}", problem=problem, remedy="remove one of the edges"
                )
            if relation.target not in self._visited:
                self._generate(relation)
                self._visit(relation.target)
        self._path_names.pop()
        if self._scales:
            self._scales.popleft()

    def _generate(self, relation: _EdgeTemplate) -> None:
        kind = self._kinds[relation.source]
        if kind.is_root and not self._created.get(relation.source):
            self._created[relation.source] = [self._root(kind)]
        self._created[relation.target] = []
        if relation.method == "MULTIPLY":
            self._multiply(relation)
        else:
            self._associate(relation)

    def _root(self, kind: _VertexTemplate) -> int:
        if kind.subsystem in self.graph.roots:
            return self.graph.roots[kind.subsystem]
        return self._add(kind, 0, "")

    def _multiply(self, relation: _EdgeTemplate) -> None:
        kind, sources = self._kinds[relation.target], self._created.get(relation.source, [])
        if len(self.graph.type) + len(sources) * relation.scale > VERTICES_MAX:
            problem = f"stands for more than {VERTICES_MAX:,} vertices"
            raise InputError(self._path, at=f"line {relation.line}", problem=problem, remedy="scale it down")
        for number, source in enumerate(sources):
            for copy in range(relation.scale):
                prefix = self.graph.paths.get(kind.subsystem, {}).get(source, "")
                vertex = self._add(kind, self._id(relation, copy, number), prefix)
                self.graph.add_edge(source, vertex, relation.subsystem)
                self._created[relation.target].append(vertex)
        self._scales.appendleft(relation.scale)

    def _id(self, relation: _EdgeTemplate, copy: int, number: int) -> int:
        if relation.id_scope < 0:
            return -1
        if relation.id_scope == 0:
            return relation.id_start + copy
        wrap = 1
        for scale in list(self._scales)[: relation.id_scope]:
            wrap *= scale
        return relation.id_start + (number % wrap * relation.scale + copy) * relation.id_stride

    def _associate(self, relation: _EdgeTemplate) -> None:
        graph, subsystem = self.graph, relation.subsystem
        for source in self._created.get(relation.source, []):
            for target in list(graph.by_type.get(self._kinds[relation.target].type, [])):
                if relation.method == "ASSOCIATE_BY_PATH_IN" and not self._share_path(relation, source, target):
                    continue
                prefix = graph.paths.get(subsystem, {}).get(source, "")
                graph.add_path(target, subsystem, f"{prefix}/{graph.name[target]}")
                self._connect(source, target, subsystem)
                self._created[relation.target].append(target)

    def _connect(self, source: int, target: int, subsystem: str) -> None:
        """Add an edge, or let the one there is change its subsystem, as Fluxion does."""
        edge = self.graph.edge_between(source, target)
        if edge is None:
            self.graph.add_edge(source, target, subsystem)
        else:
            self.graph.edge_subsystem[edge] = subsystem

    def _share_path(self, relation: _EdgeTemplate, source: int, target: int) -> bool:
        places = self.graph.paths.get(relation.path_subsystem, {})
        return _prefix(places.get(target, ""), relation.target_levels) == _prefix(
            places.get(source, ""), relation.source_levels
        )

    def _add(self, kind: _VertexTemplate, id: int, prefix: str) -> int:
        rank = -1
        if kind.type == "node":
            rank = self._node_rank = self._node_rank + 1
        name = f"{kind.basename}{id if id != -1 else ''}"
        paths = {kind.subsystem: f"{prefix}/{name}"}
        return self.graph.add_vertex(
            Vertex(kind.type, kind.basename, name, id, paths, size=kind.size, unit=kind.unit, rank=rank)
        )


def _prefix(path: str, levels: int) -> str:
    """Return a path without its last names; nothing if there are not so many."""
    if levels >= path.count("/"):
        return ""
    return path.rsplit("/", levels)[0] + "/"


def _vertex_template(path: Path, part: RecipePart) -> _VertexTemplate:
    data = part.data
    if not data.get("type"):
        raise _recipe_error(path, part, "a node without a type", 'add <data key="type">…</data>')
    size = _number(path, part, "size", 1)
    if not 0 <= size <= _SIZE_MAX:
        raise _recipe_error(path, part, f"the size {size}", "sizes are from 0 to 2147483647")
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
        raise _recipe_error(path, part, f"the unknown gen_method {method!r}", f"it is one of {', '.join(_METHODS)}")
    scale = _number(path, part, "multi_scale", 1)
    if scale < 0:
        raise _recipe_error(path, part, f"the negative multi_scale {scale}", "give how many there are below each")
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
        raise _recipe_error(path, part, f"{key} is {text!r}", "give a whole number") from None


def _recipe_error(path: Path, part: RecipePart, problem: str, remedy: str) -> InputError:
    return InputError(path, at=f"line {part.line}", problem=problem, remedy=remedy)
