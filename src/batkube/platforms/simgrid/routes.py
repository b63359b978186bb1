"""The zones of a SimGrid platform, and routes through them.

Imitated: SimGrid 3.32, NetZoneImpl::get_global_route in src/kernel/routing/NetZoneImpl.cpp. The innermost zone that
contains both ends has its own rule for a local route between its members. If these are zones, the routes to and from
their gateways are added.
"""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass, field

from batkube.kernel.errors import InputError
from batkube.platforms.network import HostRoute, NetworkLink

#: The kinds of zones with shortest paths.
SHORTEST = ("floyd", "dijkstra", "dijkstracache")
#: The default route from a host of a Full, Floyd or Dijkstra zone to itself. The L07 model, which Batsim uses, has its
#: own defaults of network/loopback-bw and network/loopback-lat: in recorded runs, messages from a host to itself take a
#: tenth of a nanosecond per byte, and no latency.
_LOOPBACK = NetworkLink("__loopback__", 10e9, 0.0, is_fatpipe=True)
_MILLISECONDS = 1000.0


@dataclass(frozen=True, slots=True)
class RouteSegment:
    """The links between two members of a zone, and the gateways if the members are zones."""

    links: tuple[NetworkLink, ...]
    gateways: tuple[str, str] | None = None


@dataclass(slots=True)
class Zone:
    """A zone: its members, and how they are connected."""

    name: str
    kind: str
    parent: Zone | None
    has_zones: bool = False
    #: In the order of the file.
    members: list[str] = field(default_factory=list)
    segments: dict[tuple[str, str], RouteSegment] = field(default_factory=dict)
    #: In Cluster and Vivaldi zones: the links from a member to all others, and back.
    uplinks: dict[str, tuple[NetworkLink, ...]] = field(default_factory=dict)
    downlinks: dict[str, tuple[NetworkLink, ...]] = field(default_factory=dict)
    coordinates: dict[str, tuple[float, ...]] = field(default_factory=dict)
    backbone: NetworkLink | None = None
    #: In zones with shortest paths, by start: the predecessor of each member. Computed on demand.
    predecessors: dict[str, dict[str, str]] = field(default_factory=dict)


class Routes:
    """Computes the routes between hosts."""

    def __init__(self, source: str, zone_of: dict[str, Zone]) -> None:
        self._source = source
        self._zone_of = zone_of

    def route(self, source: str, target: str) -> HostRoute:
        """Return the route between two hosts. Raise InputError if there is none."""
        links: list[NetworkLink] = []
        extra_s = self._append_route(source, target, links)
        return HostRoute(tuple(links), math.fsum([extra_s, *(link.latency_s for link in links)]))

    def _append_route(self, source: str, target: str, links: list[NetworkLink]) -> float:
        """Append the links from one point to another; return the latency beyond that of the links."""
        zone, start, end = self._common_zone(source, target)
        local: list[NetworkLink] = []
        gateways, extra_s = self._append_local_route(zone, start, end, local)
        if (start, end) == (source, target):
            links += local
            return extra_s
        if gateways is None:
            raise InputError(self._source, problem=f"no route leads from {source!r} to {target!r}")
        if source != gateways[0]:
            extra_s += self._append_route(source, gateways[0], links)
        links += local
        if target != gateways[1]:
            extra_s += self._append_route(gateways[1], target, links)
        return extra_s

    def _common_zone(self, source: str, target: str) -> tuple[Zone, str, str]:
        """Return the innermost zone that contains both points, and its members that are or contain them."""
        source_members = {id(zone): member for zone, member in self._enclosing_zones(source)}
        for zone, member in self._enclosing_zones(target):
            if id(zone) in source_members:
                return zone, source_members[id(zone)], member
        raise InputError(self._source, problem=f"no zone contains both {source!r} and {target!r}")

    def _enclosing_zones(self, name: str) -> list[tuple[Zone, str]]:
        """Return the zones that contain a point, innermost first, with the member that is or contains the point."""
        chain = []
        zone: Zone | None = self._zone_of[name]
        while zone is not None:
            chain.append((zone, name))
            name, zone = zone.name, zone.parent
        return chain

    def _append_local_route(
        self, zone: Zone, start: str, end: str, links: list[NetworkLink]
    ) -> tuple[tuple[str, str] | None, float]:
        """Append the links between two members of a zone; return the gateways, and the latency beyond the links."""
        if zone.kind in ("cluster", "vivaldi"):
            return None, self._append_star_route(zone, start, end, links)
        if zone.kind == "none":
            return None, 0.0
        segment = zone.segments.get((start, end))
        if segment is None and start == end and not zone.has_zones:
            links.append(_LOOPBACK)
            return None, 0.0
        if zone.kind in SHORTEST and (segment is None or start != end):
            return self._append_shortest_route(zone, start, end, links)
        # Without a route, there are no links and no latency (FullZone::get_local_route).
        if segment is None:
            return None, 0.0
        links += segment.links
        return segment.gateways, 0.0

    def _append_star_route(self, zone: Zone, start: str, end: str, links: list[NetworkLink]) -> float:
        if (start, end) in zone.segments:
            links += zone.segments[start, end].links
            return 0.0
        # No link is used twice: the backbone is both on the way up and down (StarZone::add_links_to_route).
        links += dict.fromkeys((*zone.uplinks.get(start, ()), *zone.downlinks.get(end, ())))
        if zone.kind != "vivaldi":
            return 0.0
        ends = [zone.coordinates.get(name) for name in (start, end)]
        if ends[0] is None or ends[1] is None:
            raise InputError(
                self._source,
                at=f"zone {zone.name!r}",
                problem=f"{start if ends[0] is None else end!r} has no coordinates",
                remedy="add three coordinates to each member of a Vivaldi zone",
            )
        # The Euclidean distance and both heights, in milliseconds (VivaldiZone::get_local_route).
        (x, y, height), (other_x, other_y, other_height) = ends[0], ends[1]
        return (math.hypot(x - other_x, y - other_y) + abs(height) + abs(other_height)) / _MILLISECONDS

    def _append_shortest_route(
        self, zone: Zone, start: str, end: str, links: list[NetworkLink]
    ) -> tuple[tuple[str, str] | None, float]:
        """Append the path with the fewest links; of several, the one whose members come first in the file."""
        if start not in zone.predecessors:
            zone.predecessors[start] = _shortest_paths(zone, start)
        path = [end]
        while len(path) == 1 or path[-1] != start:
            if path[-1] not in zone.predecessors[start]:
                raise InputError(self._source, at=f"zone {zone.name!r}", problem=f"no route from {start!r} to {end!r}")
            path.append(zone.predecessors[start][path[-1]])
        segments = [zone.segments[pair] for pair in itertools.pairwise(path[::-1])]
        extra_s = 0.0
        last_gateways: tuple[str, str] | None = None
        for segment in segments:
            if last_gateways and segment.gateways and last_gateways[1] != segment.gateways[0]:
                extra_s += self._append_route(last_gateways[1], segment.gateways[0], links)
            links += segment.links
            last_gateways = segment.gateways
        first_gateways = segments[0].gateways
        if first_gateways is None or last_gateways is None:
            return None, extra_s
        return (first_gateways[0], last_gateways[1]), extra_s


def _shortest_paths(zone: Zone, start: str) -> dict[str, str]:
    """Return the predecessor of each member on the path of the fewest links from `start` (Dijkstra's algorithm)."""
    ranks = {name: rank for rank, name in enumerate(zone.members)}
    neighbours: dict[str, list[tuple[str, int]]] = {}
    for (source, target), segment in zone.segments.items():
        neighbours.setdefault(source, []).append((target, len(segment.links)))
    costs, predecessors = {start: 0}, {}
    queue = [(0, ranks[start], start)]
    while queue:
        cost, _, name = heapq.heappop(queue)
        if cost > costs[name]:
            continue
        for other, length in neighbours.get(name, ()):
            if other not in costs or cost + length < costs[other]:
                costs[other], predecessors[other] = cost + length, name
                heapq.heappush(queue, (cost + length, ranks[other], other))
    return predecessors
