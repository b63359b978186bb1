"""Updates: allocate the resources that a file lists to a job, as after a restart.

The file is in JGF (all vertices that the job has or shares), in its shorthand (without the
descendants of exclusive vertices) or in R. All listed vertices must be in the graph as described,
and free; otherwise nothing is changed. Imitates `update` in flux-sched resource/readers.
"""

from __future__ import annotations

from pathlib import Path

from batkube.graph.formats.jgf import JgfFile, JgfVertex, parse_jgf, vertices_of
from batkube.graph.formats.rv1 import parse_r, ranks_of, vertices_of_r
from batkube.graph.idsets import decode_idset
from batkube.graph.matching.booking import Booking, BookingKind, JobWindow
from batkube.graph.matching.cancellation import CancelError, ReleasedRanks, cancel_ranks, reduce_ancestors
from batkube.graph.matching.matcher import Matcher
from batkube.graph.resources import CONTAINMENT, Vertex
from batkube.graph.traversal.selection import VertexSelection

#: The formats that list an allocation.
UPDATE_FORMATS = ("jgf", "jgf_shorthand", "rv1exec")


class UpdateError(Exception):
    """The listed resources do not exist as described or are not free."""


def update(matcher: Matcher, format: str, path: Path, content: bytes, window: JobWindow) -> None:
    """Allocate the resources that a file lists to a job, and pass them to the writer.

    Raises UpdateError and InputError.
    """
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
    """Release the resources that a file lists from a job; return whether nothing remains.

    Raises CancelError and InputError.
    """
    if format == "rv1exec":
        ranks = ranks_of(path, parse_r(path, content))
        return cancel_ranks(matcher.view, matcher.ledger, job, ranks)
    return reduce_ancestors(matcher.view, matcher.ledger, job, _release_listed(matcher, job, path, content))


def _release_listed(matcher: Matcher, job: int, path: Path, content: bytes) -> ReleasedRanks:
    """Release the vertices that a JGF file lists."""
    graph, ledger, released = matcher.graph, matcher.ledger, ReleasedRanks(matcher.view)
    for listed in vertices_of(path, parse_jgf(path, content)):
        try:
            vertex = _resolve_vertex(matcher, listed.vertex)
        except UpdateError as error:
            raise CancelError(str(error)) from None
        entry = ledger.entries.get(vertex)
        if entry is None or job not in entry.tags or job not in entry.allocations:
            raise CancelError(f"job {job} does not have {graph.name[vertex]}")
        released.add_units(vertex, ledger.release(vertex, job))
        released.add_vertex(vertex)
    return released


def _resolve_vertex(matcher: Matcher, vertex: Vertex) -> int:
    """Return the vertex of the graph that a file describes. Raises UpdateError if it differs."""
    graph = matcher.graph
    matches = {
        number for path in vertex.paths.values() for number in graph.at_path(path) if graph.rank[number] == vertex.rank
    }
    if len(matches) != 1:
        raise UpdateError(f"the graph has no vertex {', '.join(vertex.paths.values())} of rank {vertex.rank}")
    [number] = matches
    is_equal = (
        graph.type[number] == vertex.type
        and graph.basename[number] == vertex.basename
        and graph.size[number] == vertex.size
        and graph.id[number] == vertex.id
        and graph.name[number] == vertex.name
        and graph.paths_of(number) == dict(vertex.paths)
    )
    if not is_equal:
        raise UpdateError(f"the vertex {graph.name[number]} of the graph differs from the file's")
    return number


class _Updater:
    """Allocates vertices to a job and collects the edges that lead to them."""

    def __init__(self, matcher: Matcher, window: JobWindow) -> None:
        self._matcher = matcher
        self._window = window
        self._allocated: list[int] = []
        self._selection: VertexSelection | None = None
        self._edges: dict[int, tuple[int, bool]] = {}

    def undo(self) -> None:
        """Release all vertices that were allocated."""
        for vertex in self._allocated:
            self._matcher.ledger.release_units(vertex, self._window.job)

    def book(self) -> None:
        """Tag the vertices and pass them to the writer. Nothing is written if the file lists no root."""
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
            updates_weights=matcher.policy.stops_early,
        )
        if not booking.run():
            raise UpdateError("the file lists no exclusive vertex")
        matcher.writer.set_times(self._window.start, self._window.start + self._window.duration)

    def load_jgf(self, path: Path, file: JgfFile, *, is_short: bool) -> None:
        """Allocate the vertices of a JGF file and collect its edges."""
        graph, subsystem = self._matcher.graph, self._matcher.view.subsystem
        free_ranks = set(decode_idset(file.free_ranks)) if file.free_ranks else set()
        numbers: dict[str, tuple[int, JgfVertex]] = {}
        for listed in vertices_of(path, file):
            vertex = _resolve_vertex(self._matcher, listed.vertex)
            if listed.vertex.rank in free_ranks:
                continue
            numbers[listed.key] = (vertex, listed)
            self._allocate(vertex, listed.is_exclusive)
            if is_short and listed.is_exclusive:
                self._allocate_subtree(vertex)
        for edge in file.graph.edges:
            if edge.source not in numbers or edge.target not in numbers:
                if free_ranks:
                    continue
                raise UpdateError(f"the edge {edge.source} → {edge.target} has an end that the file does not list")
            (source, parent), (target, child) = numbers[edge.source], numbers[edge.target]
            if source == graph.roots[subsystem] and self._selection is None:
                self._selection = VertexSelection(parent.vertex.size, parent.is_exclusive)
            number = graph.edge_between(source, target)
            if number is None:
                raise UpdateError(f"the graph has no edge {edge.source} → {edge.target}")
            self._edges[number] = (child.vertex.size, child.is_exclusive)

    def _allocate_subtree(self, vertex: int) -> None:
        graph, subsystem = self._matcher.graph, self._matcher.view.subsystem
        for source in graph.subtree(vertex, subsystem):
            for edge in graph.edges_from(source, subsystem):
                target = graph.edge_target[edge]
                self._allocate(target, True)
                self._edges[edge] = (graph.size[target], True)

    def load_r(self, path: Path, content: bytes) -> None:
        """Allocate the children of nodes that R lists, and a node itself if it lists all its children."""
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
        raise UpdateError(f"{graph.name[parent]} has no {vertex.name} of rank {vertex.rank}")

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
