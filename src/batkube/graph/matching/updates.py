"""Updating: giving a job what a file says it has, as after a restart. Fluxion: the readers' `update`.

The file is JGF (all vertices that the job has or shares), its shorthand (without what is below exclusive ones) or R.
Everything it names must be in the graph as described, and free; otherwise nothing is changed.
"""

from __future__ import annotations

from pathlib import Path

from batkube.graph.formats.jgf import JgfFile, JgfVertex, parse_jgf, vertices_of
from batkube.graph.formats.rv1 import parse_r, ranks_of, vertices_of_r
from batkube.graph.idsets import decode_idset
from batkube.graph.matching.booking import Booking, BookingKind, JobWindow
from batkube.graph.matching.cancellation import CancelError, FreedRanks, cancel_ranks, reduce_ancestors
from batkube.graph.matching.matcher import Matcher
from batkube.graph.resources import CONTAINMENT, Vertex
from batkube.graph.traversal.selection import VertexSelection

#: The formats that an allocation can be given in.
UPDATE_FORMATS = ("jgf", "jgf_shorthand", "rv1exec")


class UpdateError(Exception):
    """What a file says cannot be so."""


def update(matcher: Matcher, format: str, path: Path, content: bytes, window: JobWindow) -> None:
    """Give a job what a file says it has, and hand it to the writer. Raises UpdateError and InputError."""
    updater = _Updater(matcher, window)
    try:
        if format == "rv1exec":
            updater.load_r(path, content)
        else:
            updater.load_jgf(path, parse_jgf(path, content), is_short=format == "jgf_shorthand")
    except UpdateError:
        updater.undo()
        raise
    updater.book()


def cancel_part(matcher: Matcher, job: int, format: str, path: Path, content: bytes) -> bool:
    """Take from a job what a file names; tell whether nothing remains. Raises CancelError and InputError."""
    if format == "rv1exec":
        ranks = ranks_of(path, parse_r(path, content))
        return cancel_ranks(matcher.view, matcher.ledger, job, ranks)
    return reduce_ancestors(matcher.view, matcher.ledger, job, _release_listed(matcher, job, path, content))


def _release_listed(matcher: Matcher, job: int, path: Path, content: bytes) -> FreedRanks:
    """Free the vertices of a JGF file, and return what they were."""
    graph, ledger = matcher.graph, matcher.ledger
    ranks = FreedRanks({}, {})
    for entry in vertices_of(path, parse_jgf(path, content)):
        try:
            vertex = _resolve_vertex(matcher, entry.vertex)
        except UpdateError as fault:
            raise CancelError(str(fault)) from None
        page = ledger.entries.get(vertex)
        if page is None or job not in page.tags or job not in page.allocations:
            raise CancelError(f"job {job} does not have {graph.name[vertex]}")
        units = ledger.release(vertex, job)
        rank, type = graph.rank[vertex], graph.type[vertex]
        counts = ranks.counts.setdefault(rank, {})
        counts[type] = counts.get(type, 0) + units
        places = graph.paths[matcher.view.subsystem]
        if rank not in ranks.tops or len(places[vertex]) < len(places[ranks.tops[rank]]):
            ranks.tops[rank] = vertex
    return ranks


def _resolve_vertex(matcher: Matcher, vertex: Vertex) -> int:
    """Return the vertex of the graph that a file means, which must be as the file says."""
    graph = matcher.graph
    matches = {
        number
        for place in vertex.paths.values()
        for number in graph.at_path(place)
        if graph.rank[number] == vertex.rank
    }
    if len(matches) != 1:
        raise UpdateError(f"there is no vertex {', '.join(vertex.paths.values())} of rank {vertex.rank}")
    [number] = matches
    same = (
        graph.type[number] == vertex.type
        and graph.basename[number] == vertex.basename
        and graph.size[number] == vertex.size
        and graph.id[number] == vertex.id
        and graph.name[number] == vertex.name
        and graph.paths_of(number) == dict(vertex.paths)
    )
    if not same:
        raise UpdateError(f"the vertex {graph.name[number]} is not as the file says")
    return number


class _Updater:
    """Holds vertices for a job and gathers which edges lead to them."""

    def __init__(self, matcher: Matcher, window: JobWindow) -> None:
        self._matcher = matcher
        self._window = window
        self._allocated: list[int] = []
        self._selection: VertexSelection | None = None
        self._edges: dict[int, tuple[int, bool]] = {}

    def undo(self) -> None:
        """Let go of everything."""
        for vertex in self._allocated:
            self._matcher.ledger.release_units(vertex, self._window.job)

    def book(self) -> None:
        """Enter the rest into the books; nothing if the file does not begin at the root."""
        if self._selection is None:
            for vertex in self._allocated:
                self._matcher.ledger.mark_uncounted(vertex)
            return
        self._selection.edges.update(self._edges)
        matcher = self._matcher
        exclusive = {"node"} if matcher.policy.is_node_exclusive else set()
        booking = Booking(
            matcher.view,
            matcher.ledger,
            self._selection,
            self._window,
            BookingKind.UPDATE,
            exclusive,
            matcher.writer,
            weighs=matcher.policy.stops_early,
        )
        if not booking.run():
            raise UpdateError("nothing in it is exclusive")
        matcher.writer.times(self._window.start, self._window.start + self._window.duration)

    def load_jgf(self, path: Path, file: JgfFile, *, is_short: bool) -> None:
        """Take the vertices and edges of a JGF file."""
        graph, subsystem = self._matcher.graph, self._matcher.view.subsystem
        free_ranks = set(decode_idset(file.free_ranks)) if file.free_ranks else set()
        numbers: dict[str, tuple[int, JgfVertex]] = {}
        for entry in vertices_of(path, file):
            vertex = _resolve_vertex(self._matcher, entry.vertex)
            if entry.vertex.rank in free_ranks:
                continue
            numbers[entry.key] = (vertex, entry)
            self._allocate(vertex, entry.is_exclusive)
            if is_short and entry.is_exclusive:
                self._allocate_subtree(vertex)
        for edge in file.graph.edges:
            if edge.source not in numbers or edge.target not in numbers:
                if free_ranks:
                    continue
                raise UpdateError(f"the edge {edge.source} → {edge.target} is between unknown vertices")
            (source, above), (target, below) = numbers[edge.source], numbers[edge.target]
            if source == graph.roots[subsystem] and self._selection is None:
                self._selection = VertexSelection(above.vertex.size, above.is_exclusive)
            number = graph.edge_between(source, target)
            if number is None:
                raise UpdateError(f"there is no edge {edge.source} → {edge.target} in the graph")
            self._edges[number] = (below.vertex.size, below.is_exclusive)

    def _allocate_subtree(self, vertex: int) -> None:
        graph, subsystem = self._matcher.graph, self._matcher.view.subsystem
        for edge in (edge for inner in graph.subtree(vertex, subsystem) for edge in graph.edges_from(inner, subsystem)):
            target = graph.edge_target[edge]
            self._allocate(target, True)
            self._edges[edge] = (graph.size[target], True)

    def load_r(self, path: Path, content: bytes) -> None:
        """Take the nodes and their children of R; a node of which all children are taken is held itself."""
        graph = self._matcher.graph
        root = graph.roots[CONTAINMENT]
        self._selection = VertexSelection(graph.size[root], False)
        for node, children in vertices_of_r(path, parse_r(path, content)):
            vertex = self._resolve_r_vertex(root, node)
            numbers = [self._resolve_r_vertex(vertex, child) for child in children]
            self._check_free(vertex)
            for number in numbers:
                self._allocate(number, True)
            if len(numbers) == len(graph.by_rank[node.rank]) - 1:
                self._allocate(vertex, True)

    def _resolve_r_vertex(self, parent: int, vertex: Vertex) -> int:
        graph = self._matcher.graph
        for edge in graph.edges_from(parent, CONTAINMENT):
            number = graph.edge_target[edge]
            if (graph.name[number], graph.rank[number], graph.id[number], graph.size[number], graph.type[number]) == (
                vertex.name,
                vertex.rank,
                vertex.id,
                vertex.size,
                vertex.type,
            ):
                self._edges[edge] = (graph.size[number], True)
                return number
        raise UpdateError(f"there is no {vertex.name} of rank {vertex.rank} in {graph.name[parent]}")

    def _allocate(self, vertex: int, exclusive: bool) -> None:
        window = self._window
        if not exclusive:
            self._check_free(vertex)
            return
        size = self._matcher.graph.size[vertex]
        ledger = self._matcher.ledger
        if not ledger.allocate(vertex, window.job, window.start, window.duration, size, is_reservation=False):
            raise UpdateError(f"{self._matcher.graph.name[vertex]} is not free")
        self._allocated.append(vertex)

    def _check_free(self, vertex: int) -> None:
        free = self._matcher.ledger.free(vertex, self._window.start, self._window.duration)
        if free < self._matcher.graph.size[vertex]:
            raise UpdateError(f"{self._matcher.graph.name[vertex]} is not free")
