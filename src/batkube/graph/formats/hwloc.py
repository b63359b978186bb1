"""A machine as hwloc's `lstopo` describes it in XML, as a graph: a cluster of one node.

hwloc numbers the objects of a type in the order of its own walk: what computes, then memory, then devices. Before its
version 2 a NUMA node stood around its cores; since then it stands beside them, and older files are read that way too.
Sockets, cores, processing units, GPUs and storage are as hwloc has them. Caches and groups, which it keeps only where
they part a machine further, are left out, and a NUMA node of an old file may stand a level lower than where hwloc puts
it. Fluxion: resource_reader_hwloc.cpp.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from xml.parsers import expat

from batkube.graph.idsets import split_host
from batkube.graph.resources import CONTAINMENT, ResourceGraph, Vertex
from batkube.kernel.errors import InputError

_DEPTH_MAX = 100
_MEMORY = ("NUMANode",)
_DEVICES = ("Bridge", "PCIDev", "OSDev")
_TYPES = {"Package": "socket", "Socket": "socket", "Core": "core", "PU": "pu", "NUMANode": "numanode"}
#: What hwloc writes for the kinds of devices that matter here (hwloc_obj_osdev_type_e).
_BLOCK, _GPU, _DMA, _COPROCESSOR = "0", "1", "4", "5"


@dataclasses.dataclass(slots=True)
class HwlocObject:
    """An <object> of the file: its attributes, its <info> entries and what is in it."""

    line: int
    attributes: dict[str, str]
    infos: dict[str, str] = dataclasses.field(default_factory=dict)
    inside: list[HwlocObject] = dataclasses.field(default_factory=list)

    @property
    def type(self) -> str:
        """What hwloc calls it."""
        return self.attributes.get("type", "")


def read_hwloc(path: Path, content: bytes, allowed: tuple[str, ...] = ()) -> ResourceGraph:
    """Return the graph of a machine, of the `allowed` types if any are said. Raises InputError with the line."""
    graph = ResourceGraph()
    root = graph.add_vertex(Vertex("cluster", "cluster", "cluster0", 0, {CONTAINMENT: "/cluster0"}))
    _Builder(str(path), graph, allowed).add(_parse(str(path), content), root)
    return graph


class _Builder:
    """Adds objects to a graph, in hwloc's order."""

    def __init__(self, source: str, graph: ResourceGraph, allowed: tuple[str, ...]) -> None:
        self._source = source
        self._graph = graph
        self._allowed = allowed
        self._counts: dict[str, int] = {}

    def add(self, thing: HwlocObject, parent: int) -> None:
        """Add an object and what is in it; what is in one that is left out belongs to the vertex around."""
        above = self._graph.paths[CONTAINMENT][parent]
        vertex = self._vertex(thing, above)
        if vertex is not None and (not self._allowed or vertex.type in self._allowed):
            number = self._graph.add_vertex(vertex)
            self._graph.add_edge(parent, number)
            parent = number
        for inner in _ordered_children(thing):
            self.add(inner, parent)

    def _vertex(self, thing: HwlocObject, above: str) -> Vertex | None:
        """Return what an object is in the graph, None if it is nothing there."""
        kind = thing.type
        if kind == "OSDev" and thing.attributes.get("osdev_type") == _DMA:
            return None
        number = self._counts[kind] = self._counts.get(kind, -1) + 1
        if kind == "Machine":
            return self._node(thing, above)
        if kind == "OSDev":
            return self._device(thing, above, number)
        return _numbered_vertex(_TYPES[kind], number, above) if kind in _TYPES else None

    def _node(self, thing: HwlocObject, above: str) -> Vertex | None:
        host = thing.infos.get("HostName")
        if not host:
            return None
        prefix, digits = split_host(host)
        number = int(digits) if digits else -1
        return Vertex("node", prefix or host, host, number, {CONTAINMENT: f"{above}/{host}"}, rank=0)

    def _device(self, thing: HwlocObject, above: str, number: int) -> Vertex | None:
        kind, name = thing.attributes.get("osdev_type", ""), thing.attributes.get("name", "")
        if kind == _COPROCESSOR or (kind == _GPU and name.startswith("rsmi")):
            return _numbered_vertex("gpu", _gpu_number(name, number), above)
        if kind != _BLOCK or (self._allowed and "storage" not in self._allowed):
            return None
        size = thing.infos.get("Size", "")
        if not (size.isascii() and size.isdigit()) or not int(size):
            problem = f"the block device {name!r} has no size"
            remedy = "leave out storage by -W, or give it an info Size in kB"
            raise InputError(self._source, at=f"line {thing.line}", problem=problem, remedy=remedy)
        properties = {"LinuxDeviceID": thing.infos.get("LinuxDeviceID", "-1")}
        return dataclasses.replace(
            _numbered_vertex("storage", number, above), size=int(size) // 1_000_000, properties=properties
        )


def _numbered_vertex(type: str, number: int, above: str) -> Vertex:
    name = f"{type}{number}"
    return Vertex(type, type, name, number, {CONTAINMENT: f"{above}/{name}"})


def _gpu_number(name: str, number: int) -> int:
    """Return the number in a GPU's name: cuda3, rsmi0, and opencl0d1, which is the device 1 of platform 0."""
    for prefix in ("cuda", "rsmi"):
        if name.startswith(prefix):
            number = _leading_number(name.removeprefix(prefix))
    return _leading_number(name.partition("d")[2]) if name.startswith("opencl") else number


def _leading_number(text: str) -> int:
    digits = text[: len(text) - len(text.lstrip("0123456789"))]
    return int(digits or 0)


def _ordered_children(thing: HwlocObject) -> list[HwlocObject]:
    """Return what is in an object in hwloc's order: what computes, memory, devices."""
    inside = [_as_hwloc_2(inner) for inner in thing.inside]
    return sorted(inside, key=lambda inner: (inner.type in _DEVICES, inner.type in _MEMORY))


def _as_hwloc_2(thing: HwlocObject) -> HwlocObject:
    """Return an object as hwloc keeps it since version 2.

    An old NUMA node goes beside what it stands around; a group around one thing is that thing, devices included.
    """
    computing = [inner for inner in thing.inside if inner.type not in (*_MEMORY, *_DEVICES)]
    if thing.type not in (*_MEMORY, "Group") or not computing:
        return thing
    others = [inner for inner in thing.inside if inner not in computing]
    if thing.type in _MEMORY:
        others.insert(0, dataclasses.replace(thing, inside=[]))
    if len(computing) > 1:
        return HwlocObject(thing.line, {"type": "Group"}, inside=[*computing, *others])
    only = _as_hwloc_2(computing[0])
    return dataclasses.replace(only, inside=[*only.inside, *others])


def _parse(source: str, content: bytes) -> HwlocObject:
    """Return the outermost object. Entities, which lstopo never writes and an attacker does, are refused."""
    parser = expat.ParserCreate()
    outside = HwlocObject(0, {})
    open_objects = [outside]

    def wrong(problem: str, remedy: str) -> InputError:
        return InputError(source, at=f"line {parser.CurrentLineNumber}", problem=problem, remedy=remedy)

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag == "object":
            if len(open_objects) > _DEPTH_MAX:
                raise wrong(f"objects nested more than {_DEPTH_MAX} deep", "leave out levels")
            thing = HwlocObject(parser.CurrentLineNumber, attributes)
            open_objects[-1].inside.append(thing)
            open_objects.append(thing)
        elif tag == "info":
            open_objects[-1].infos[attributes.get("name", "")] = attributes.get("value", "")

    def end(tag: str) -> None:
        if tag == "object":
            open_objects.pop()

    def entity(name: str, *_declaration: object) -> None:
        raise wrong(f"declares the entity {name!r}; entities are refused for safety", "leave it out")

    parser.StartElementHandler, parser.EndElementHandler, parser.EntityDeclHandler = start, end, entity
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        problem = f"broken XML: {expat.ErrorString(error.code)}"
        raise wrong(problem, "it is what `lstopo FILE.xml` writes; for another format use -f") from None
    if len(outside.inside) != 1:
        raise wrong("is not one machine", "it is what `lstopo FILE.xml` writes, with one outermost <object>")
    return outside.inside[0]
