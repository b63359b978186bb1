"""Reads the XML that hwloc's `lstopo` writes for a machine, as the graph of a cluster of one node.

hwloc numbers the objects of a type in the order of its own walk: first objects with processing
units, then memory, then devices. Until version 2, a NUMA node contained its cores; since then it is
their sibling, and older files are converted to that form. Sockets, cores, processing units, GPUs
and storage are numbered as in hwloc. Caches and groups are left out: hwloc drops those that add no
structure, by rules of its own. A NUMA node of an old file may be one level lower than in hwloc.

Imitates flux-sched resource/readers/resource_reader_hwloc.cpp.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from batkube.files.xml_reader import XmlReader
from batkube.graph.idsets import split_host
from batkube.graph.resources import CONTAINMENT, ResourceGraph, Vertex
from batkube.kernel.errors import InputError

_MEMORY = ("NUMANode",)
_DEVICES = ("Bridge", "PCIDev", "OSDev")
_TYPES = {"Package": "socket", "Socket": "socket", "Core": "core", "PU": "pu", "NUMANode": "numanode"}
#: Types of devices in hwloc (hwloc_obj_osdev_type_e).
_BLOCK, _GPU, _DMA, _COPROCESSOR = "0", "1", "4", "5"


@dataclasses.dataclass(slots=True)
class HwlocObject:
    """An <object> of the file with its attributes, <info> entries and child objects."""

    line: int
    attributes: dict[str, str]
    infos: dict[str, str] = dataclasses.field(default_factory=dict)
    children: list[HwlocObject] = dataclasses.field(default_factory=list)

    @property
    def type(self) -> str:
        """The type in hwloc's terms."""
        return self.attributes.get("type", "")


def read_hwloc(path: Path, content: bytes, allowed: tuple[str, ...] = ()) -> ResourceGraph:
    """Return the graph of a machine with vertices of the `allowed` types, or all.

    Raises InputError with the line.
    """
    graph = ResourceGraph()
    root = graph.add_vertex(Vertex("cluster", "cluster", "cluster0", 0, {CONTAINMENT: "/cluster0"}))
    _Builder(str(path), graph, allowed).add(_HwlocReader(str(path)).machine(content), root)
    return graph


class _Builder:
    """Adds objects to a graph in hwloc's order."""

    def __init__(self, source: str, graph: ResourceGraph, allowed: tuple[str, ...]) -> None:
        self._source = source
        self._graph = graph
        self._allowed = allowed
        self._counts: dict[str, int] = {}

    def add(self, entry: HwlocObject, parent: int) -> None:
        """Add an object and its children. Children of an object that is left out get its parent."""
        parent_path = self._graph.paths[CONTAINMENT][parent]
        vertex = self._vertex(entry, parent_path)
        if vertex is not None and (not self._allowed or vertex.type in self._allowed):
            number = self._graph.add_vertex(vertex)
            self._graph.add_edge(parent, number)
            parent = number
        for child in _ordered_children(entry):
            self.add(child, parent)

    def _vertex(self, entry: HwlocObject, parent_path: str) -> Vertex | None:
        """Return the vertex of an object, or None if it has none."""
        type = entry.type
        if type == "OSDev" and entry.attributes.get("osdev_type") == _DMA:
            return None
        number = self._counts[type] = self._counts.get(type, -1) + 1
        if type == "Machine":
            return self._node(entry, parent_path)
        if type == "OSDev":
            return self._device(entry, parent_path, number)
        return _numbered_vertex(_TYPES[type], number, parent_path) if type in _TYPES else None

    def _node(self, entry: HwlocObject, parent_path: str) -> Vertex | None:
        host = entry.infos.get("HostName")
        if not host:
            return None
        prefix, digits = split_host(host)
        number = int(digits) if digits else -1
        return Vertex("node", prefix or host, host, number, {CONTAINMENT: f"{parent_path}/{host}"}, rank=0)

    def _device(self, entry: HwlocObject, parent_path: str, number: int) -> Vertex | None:
        type, name = entry.attributes.get("osdev_type", ""), entry.attributes.get("name", "")
        if type == _COPROCESSOR or (type == _GPU and name.startswith("rsmi")):
            return _numbered_vertex("gpu", _gpu_number(name, number), parent_path)
        if type != _BLOCK or (self._allowed and "storage" not in self._allowed):
            return None
        size = entry.infos.get("Size", "")
        if not (size.isascii() and size.isdigit()) or not int(size):
            problem = f"the block device {name!r} has no size"
            remedy = "exclude storage with -W, or add an <info> entry Size in kB"
            raise InputError(self._source, at=f"line {entry.line}", problem=problem, remedy=remedy)
        properties = {"LinuxDeviceID": entry.infos.get("LinuxDeviceID", "-1")}
        return dataclasses.replace(
            _numbered_vertex("storage", number, parent_path), size=int(size) // 1_000_000, properties=properties
        )


def _numbered_vertex(type: str, number: int, parent_path: str) -> Vertex:
    name = f"{type}{number}"
    return Vertex(type, type, name, number, {CONTAINMENT: f"{parent_path}/{name}"})


def _gpu_number(name: str, number: int) -> int:
    """Return the number in a GPU's name: 3 for cuda3, 0 for rsmi0, 1 for opencl0d1 (its device)."""
    for prefix in ("cuda", "rsmi"):
        if name.startswith(prefix):
            number = _leading_number(name.removeprefix(prefix))
    return _leading_number(name.partition("d")[2]) if name.startswith("opencl") else number


def _leading_number(text: str) -> int:
    digits = text[: len(text) - len(text.lstrip("0123456789"))]
    return int(digits or 0)


def _ordered_children(entry: HwlocObject) -> list[HwlocObject]:
    """Return the children in hwloc's order: with processing units, memory, devices."""
    children = [_as_hwloc_2(child) for child in entry.children]
    return sorted(children, key=lambda child: (child.type in _DEVICES, child.type in _MEMORY))


def _as_hwloc_2(entry: HwlocObject) -> HwlocObject:
    """Return an object in the form of hwloc since version 2.

    An old NUMA node becomes a sibling of its children. A group of one object is replaced by it.
    """
    computing = [child for child in entry.children if child.type not in (*_MEMORY, *_DEVICES)]
    if entry.type not in (*_MEMORY, "Group") or not computing:
        return entry
    others = [child for child in entry.children if child not in computing]
    if entry.type in _MEMORY:
        others.insert(0, dataclasses.replace(entry, children=[]))
    if len(computing) > 1:
        return HwlocObject(entry.line, {"type": "Group"}, children=[*computing, *others])
    only = _as_hwloc_2(computing[0])
    return dataclasses.replace(only, children=[*only.children, *others])


class _HwlocReader(XmlReader):
    """Collects the objects of a file."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self._document = HwlocObject(0, {})
        self._open = [self._document]

    def machine(self, content: bytes) -> HwlocObject:
        """Return the outermost object."""
        self.read(content, "use the output of `lstopo FILE.xml`; for another format use -f")
        if len(self._document.children) != 1:
            raise self.error("does not have exactly one outermost <object>", "use the output of `lstopo FILE.xml`")
        return self._document.children[0]

    def on_start(self, tag: str, attributes: dict[str, str]) -> None:
        """Begin an object, or add an <info> entry to the current one."""
        if tag == "object":
            entry = HwlocObject(self.line, attributes)
            self._open[-1].children.append(entry)
            self._open.append(entry)
        elif tag == "info":
            self._open[-1].infos[attributes.get("name", "")] = attributes.get("value", "")

    def on_end(self, tag: str) -> None:
        """End an object."""
        if tag == "object":
            self._open.pop()
