"""The matcher: finds resources for jobspecs in a graph, and books them.

    matcher = Matcher(graph, policy="hinode")
    outcome = matcher.match(jobspec, MatchOperation.ALLOCATE_ORELSE_RESERVE, job=1, now=0)
    matcher.cancel(1)

Times are whole seconds of the graph's own time; `now` is passed in. Imitates flux-sched
resource/traversers/dfu.cpp.
"""

from __future__ import annotations

import dataclasses
import enum

from batkube.graph.accounting.ledger import Ledger
from batkube.graph.accounting.planner import PLAN_END
from batkube.graph.accounting.pruning import DEFAULT_FILTERS, PruningTypes, SubtreeFilters
from batkube.graph.formats.match_writers import MatchWriter, SimpleWriter
from batkube.graph.matching.booking import Booking, BookingKind, JobWindow
from batkube.graph.matching.cancellation import cancel
from batkube.graph.requests.compiled import RequestLevel, compile_requests, exclusive_types
from batkube.graph.requests.jobspec import Jobspec, VertexRequest
from batkube.graph.resources import CONTAINMENT, ResourceGraph
from batkube.graph.traversal.candidates import MatchWindow
from batkube.graph.traversal.flexible_walk import FlexibleWalk, xor_alternatives
from batkube.graph.traversal.match_policy import match_policy
from batkube.graph.traversal.selection import VertexSelection, select
from batkube.graph.traversal.subsystem_view import SubsystemView
from batkube.graph.traversal.walk import Walk
from batkube.graph.traversal.walk_cache import WalkCache
from batkube.kernel.errors import InputError

#: A hundred years, which is also the duration of jobs without a limit (flux-sched:
#: SYSTEM_MAX_DURATION in resource/config/system_defaults.hpp).
GRAPH_END = 3_153_600_000
TRAVERSERS = ("simple", "flexible")


class MatchOperation(enum.Enum):
    """What to do with a match (flux-sched: resource/policies/base/match_op.h)."""

    ALLOCATE = "allocate"
    ALLOCATE_ORELSE_RESERVE = "allocate_orelse_reserve"
    ALLOCATE_WITH_SATISFIABILITY = "allocate_with_satisfiability"
    SATISFIABILITY = "satisfiability"
    WITHOUT_ALLOCATING = "without_allocating"
    WITHOUT_ALLOCATING_FUTURE = "without_allocating_future"

    @property
    def allocates(self) -> bool:
        """Whether a match is booked."""
        return self not in (
            MatchOperation.SATISFIABILITY,
            MatchOperation.WITHOUT_ALLOCATING,
            MatchOperation.WITHOUT_ALLOCATING_FUTURE,
        )

    @property
    def may_start_later(self) -> bool:
        """Whether a match may start later than now."""
        return self in (MatchOperation.ALLOCATE_ORELSE_RESERVE, MatchOperation.WITHOUT_ALLOCATING_FUTURE)

    @property
    def checks_satisfiability(self) -> bool:
        """Whether a request that an empty graph cannot satisfy is reported as unsatisfiable."""
        return self in (MatchOperation.ALLOCATE_WITH_SATISFIABILITY, MatchOperation.SATISFIABILITY)


@dataclasses.dataclass(frozen=True, slots=True)
class MatchOutcome:
    """The result of a match: its start time if there is one, or else whether one is possible."""

    start: int | None
    duration: int = 0
    is_satisfiable: bool = True

    @property
    def is_match(self) -> bool:
        """Whether resources were found."""
        return self.start is not None


_BUSY = MatchOutcome(None)
_UNSATISFIABLE = MatchOutcome(None, is_satisfiable=False)


class Matcher:
    """A graph with its bookings and a match policy."""

    def __init__(
        self,
        graph: ResourceGraph,
        policy: str = "first",
        *,
        filters: str = DEFAULT_FILTERS,
        subsystems: tuple[str, ...] = (CONTAINMENT,),
        traverser: str = "simple",
        writer: MatchWriter | None = None,
        end: int = GRAPH_END,
    ) -> None:
        """`end` is the end of the graph's time. Its unit is seconds unless the caller uses another one."""
        for subsystem in subsystems:
            if subsystem not in graph.roots:
                remedy = f"it has {', '.join(sorted(graph.roots))}"
                raise InputError("the graph", problem=f"has no subsystem {subsystem!r}", remedy=remedy)
        self.graph = graph
        self.policy = match_policy(policy)
        self.writer: MatchWriter = writer or SimpleWriter()
        self.is_flexible = traverser == "flexible"
        self.end = end
        self.view = SubsystemView(graph, subsystems[0])
        self.filters = SubtreeFilters(graph, subsystems[0], PruningTypes(filters))
        self.ledger = Ledger(graph, self.filters, subsystems[0])
        self._cache = WalkCache(self.view, self.ledger)
        self._compiled: dict[tuple[VertexRequest, ...], RequestLevel] = {}

    def match(self, jobspec: Jobspec, operation: MatchOperation, *, job: int, now: int = 0) -> MatchOutcome:
        """Find resources for a jobspec, book them if the operation allocates, and write the match."""
        self._check(jobspec)
        duration = jobspec.duration or self.end
        level = self.compiled(jobspec)
        if operation is MatchOperation.SATISFIABILITY:
            return MatchOutcome(None, is_satisfiable=self._select_when_empty(jobspec, duration) is not None)
        if not self._is_feasible(jobspec, level, operation, now, duration):
            return _UNSATISFIABLE if operation.checks_satisfiability else _BUSY
        selection = self._select(jobspec, MatchWindow(now, duration, is_now=True))
        start: int | None = now
        kind = BookingKind.ALLOCATION if operation.allocates else BookingKind.DRY_RUN
        if selection is None and operation.may_start_later:
            start, selection = self._find_reservation(jobspec, level, now, duration)
            kind = BookingKind.RESERVATION if operation.allocates else BookingKind.DRY_RUN
        if selection is None or start is None:
            return self._failed_outcome(jobspec, operation, duration)
        return self._book(jobspec, selection, JobWindow(job, start, duration, now), kind)

    def cancel(self, job: int) -> None:
        """Release all resources of a job. Raises CancelError if it has none."""
        cancel(self.view, self.ledger, job)

    def compiled(self, jobspec: Jobspec) -> RequestLevel:
        """Return the compiled resources of a jobspec. Equal jobspecs share one object."""
        level = self._compiled.get(jobspec.resources)
        if level is None:
            tracked = self.filters.types.tracked
            level = compile_requests(jobspec, tracked, is_flexible=self.is_flexible)
            self._compiled[jobspec.resources] = level
        return level

    def set_property(self, path: str, key: str, value: str) -> bool:
        """Set a property of the vertices at a path; return False if there are none."""
        vertices = self.graph.at_path(path)
        for vertex in vertices:
            self.graph.properties.setdefault(vertex, {})[key] = value
            self.ledger.mark_changed(vertex)
        return bool(vertices)

    def set_status(self, path: str, *, is_up: bool) -> bool:
        """Mark the vertices at a path and their subtrees as up or down; return False if there are none."""
        vertices = self.graph.at_path(path)
        for vertex in vertices:
            if self.graph.is_up[vertex] is is_up:
                continue
            self.graph.is_up[vertex] = is_up
            self.ledger.mark_changed(vertex)
            for below in self.graph.subtree(vertex, self.view.subsystem):
                if self.graph.type[below] == "node":
                    self.graph.nodes_up += self.graph.size[below] * (1 if is_up else -1)
        return bool(vertices)

    def on_graph_changed(self) -> None:
        """Recompute filters and clear caches after vertices were added or removed."""
        self.filters.recount()
        self.view.reset()
        self._compiled.clear()
        self._cache.clear()

    def _check(self, jobspec: Jobspec) -> None:
        if jobspec.duration > self.end:
            problem = f"the duration is {jobspec.duration} s, but the graph's time ends after {self.end} s"
            raise InputError(jobspec.source, problem=problem, remedy="shorten the duration")
        self._check_types(jobspec, jobspec.resources)

    def _check_types(self, jobspec: Jobspec, requests: tuple[VertexRequest, ...]) -> None:
        for request in requests:
            if request.type not in self.graph.type_order:
                problem = f"the type {request.type!r} is not in the graph"
                remedy = f"use one of {', '.join(sorted(self.graph.by_type))}"
                raise InputError(jobspec.source, at=request.place or None, problem=problem, remedy=remedy)
            self._check_types(jobspec, request.inside)

    def _select(self, jobspec: Jobspec, window: MatchWindow) -> VertexSelection | None:
        """Return the resources for a job in a window, or None."""
        walk_class = FlexibleWalk if self.is_flexible else Walk
        variants = xor_alternatives(jobspec) if self.is_flexible else (jobspec,)
        for variant in variants:
            walk = walk_class(self.view, self.ledger, self.policy, window, jobspec.constraint, self._cache)
            selection = select(walk, self.compiled(variant))
            if selection is not None:
                return selection
        return None

    def _find_reservation(
        self, jobspec: Jobspec, level: RequestLevel, now: int, duration: int
    ) -> tuple[int | None, VertexSelection | None]:
        """Return the earliest time after now at which the resources are free, with the resources.

        They can become free only when a span starts or ends. The root's filter has all these times
        as points, and skips those at which too little is free in total.
        """
        planner = self.filters.planner(self.view.root)
        if planner is None:
            return None, None
        for time in list(planner.fitting_points(now + 1, duration, level.demand)):
            selection = self._select(jobspec, MatchWindow(time, duration))
            if selection is not None:
                return time, selection
        return None, None

    def _select_when_empty(self, jobspec: Jobspec, duration: int) -> VertexSelection | None:
        """Return the resources for a job if no other job runs and all vertices are up, or None."""
        return self._select(jobspec, MatchWindow(PLAN_END - duration - 1, duration, ignores_down=True))

    def _failed_outcome(self, jobspec: Jobspec, operation: MatchOperation, duration: int) -> MatchOutcome:
        if not (operation.may_start_later or operation.checks_satisfiability):
            return _BUSY
        return _UNSATISFIABLE if self._select_when_empty(jobspec, duration) is None else _BUSY

    def _is_feasible(
        self, jobspec: Jobspec, level: RequestLevel, operation: MatchOperation, now: int, duration: int
    ) -> bool:
        """Return whether enough nodes are up and allowed, before any walk.

        Imitates `request_feasible` (flux-sched resource/traversers/dfu.cpp).
        """
        count = level.demand.get("node", 0)
        if count > self.graph.nodes_up:
            return False
        if jobspec.constraint is None:
            return True
        is_now = operation in (MatchOperation.ALLOCATE, MatchOperation.WITHOUT_ALLOCATING)
        time = now if is_now else self.end - 1
        for vertex in self.graph.by_type.get("node", ()):
            if count <= 0:
                break
            count -= (
                jobspec.constraint.allows(self.graph, vertex)
                and (operation.checks_satisfiability or self.graph.is_up[vertex])
                and self.ledger.free(vertex, time, duration) == 1
            )
        return count <= 0

    def _book(self, jobspec: Jobspec, selection: VertexSelection, window: JobWindow, kind: BookingKind) -> MatchOutcome:
        if window.start >= self.end:
            return _BUSY
        if window.start + window.duration > self.end:
            window = dataclasses.replace(window, duration=self.end - window.start)
        types = exclusive_types(jobspec.resources) | ({"node"} if self.policy.is_node_exclusive else set())
        booking = Booking(
            self.view,
            self.ledger,
            selection,
            window,
            kind,
            types,
            self.writer,
            updates_weights=self.policy.stops_early,
        )
        if not booking.run():
            return _BUSY
        self.writer.set_times(window.start, window.start + window.duration)
        if jobspec.queue:
            self.writer.set_queue(jobspec.queue)
        return MatchOutcome(window.start, window.duration)
