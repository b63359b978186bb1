"""Zones of a SimGrid platform, and the ways through them.

Routes are composed as SimGrid composes them (SimGrid 3.32, src/kernel/routing): inside the innermost zone around both
ends the zone's own rule counts; where it leads from zone to zone, the ways to and from their gateways are added.
"""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass, field

from batkube.kernel.errors import InputError
from batkube.platforms.network import HostRoute, NetworkLink

#: Kinds of zones in which the path of the fewest links counts.
SHORTEST = ("floyd", "dijkstra", "dijkstracache")
#: What connects a host of a Full, Floyd or Dijkstra zone to itself unless the file says so (network/loopback-bw, -lat).
#: The L07 model, with which Batsim runs, has defaults of its own for these: recorded messages from a host to itself
#: take a tenth of a nanosecond per byte, and no latency.
_LOOPBACK = NetworkLink("__loopback__", 10e9, 0.0, is_fatpipe=True)
_MILLISECONDS = 1000.0


@dataclass(frozen=True, slots=True)
class RouteSegment:
    """The links between two members of a zone, and the gateways where these are zones themselves."""

    links: tuple[NetworkLink, ...]
    gateways: tuple[str, str] | None = None


@dataclass(slots=True)
class Zone:
    """A zone: who is in it, and how they are connected."""

    name: str
    kind: str
    parent: Zone | None
    has_zones: bool = False
    #: In the order of the file.
    members: list[str] = field(default_factory=list)
    segments: dict[tuple[str, str], RouteSegment] = field(default_factory=dict)
    #: Of Cluster and Vivaldi zones: the links from a member to all others, and back.
    up: dict[str, tuple[NetworkLink, ...]] = field(default_factory=dict)
    down: dict[str, tuple[NetworkLink, ...]] = field(default_factory=dict)
    coordinates: dict[str, tuple[float, ...]] = field(default_factory=dict)
    backbone: NetworkLink | None = None
    #: Of zones of shortest paths: the member before another on the way from a third, once somebody asked.
    predecessors: dict[str, dict[str, str]] = field(default_factory=dict)


class Routes:
    """Finds the way between two hosts."""

    def __init__(self, source: str, zone_of: dict[str, Zone]) -> None:
        self._source = source
        self._zone_of = zone_of

    def route(self, source: str, target: str) -> HostRoute:
        """Return the links between two hosts, and their latency."""
        links: list[NetworkLink] = []
        extra_s = self._append_route(source, target, links)
        return HostRoute(tuple(links), math.fsum([extra_s, *(link.latency_s for link in links)]))

    def _append_route(self, source: str, target: str, links: list[NetworkLink]) -> float:
        """Add the links from one point to another; return what latency there is beside theirs."""
        zone, here, there = self._common_zone(source, target)
        local: list[NetworkLink] = []
        gateways, extra_s = self._append_local_route(zone, here, there, local)
        if (here, there) == (source, target):
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
        """Return the innermost zone around both, and which members of it they are, or are in."""
        chains = [self._enclosing_zones(source), self._enclosing_zones(target)]
        zones = {id(zone): name for zone, name in chains[0]}
        for zone, name in chains[1]:
            if id(zone) in zones:
                return zone, zones[id(zone)], name
        raise InputError(self._source, problem=f"no zone contains both {source!r} and {target!r}")

    def _enclosing_zones(self, name: str) -> list[tuple[Zone, str]]:
        """Return the zones around a point, innermost first, each with its member that is or contains the point."""
        chain = []
        zone: Zone | None = self._zone_of[name]
        while zone is not None:
            chain.append((zone, name))
            name, zone = zone.name, zone.parent
        return chain

    def _append_local_route(
        self, zone: Zone, here: str, there: str, links: list[NetworkLink]
    ) -> tuple[tuple[str, str] | None, float]:
        """Add the links between two members of a zone; return the gateways, and latency beside the links'."""
        if zone.kind in ("cluster", "vivaldi"):
            return None, self._append_star_route(zone, here, there, links)
        if zone.kind == "none":
            return None, 0.0
        way = zone.segments.get((here, there))
        if way is None and here == there and not zone.has_zones:
            links.append(_LOOPBACK)
            return None, 0.0
        if zone.kind in SHORTEST:
            return self._append_shortest_route(zone, here, there, links)
        # A pair without a route has no links between it, and nothing to wait for (FullZone::get_local_route).
        if way is None:
            return None, 0.0
        links += way.links
        return way.gateways, 0.0

    def _append_star_route(self, zone: Zone, here: str, there: str, links: list[NetworkLink]) -> float:
        if (here, there) in zone.segments:
            links += zone.segments[here, there].links
            return 0.0
        # No link is taken twice: the backbone is on the way up and on the way down (StarZone::add_links_to_route).
        links += dict.fromkeys((*zone.up.get(here, ()), *zone.down.get(there, ())))
        if zone.kind != "vivaldi":
            return 0.0
        ends = [zone.coordinates.get(name) for name in (here, there)]
        if ends[0] is None or ends[1] is None:
            raise InputError(
                self._source,
                at=f"zone {zone.name!r}",
                problem=f"no coordinates are given for {here if ends[0] is None else there!r}",
                remedy="hosts of Vivaldi zones have coordinates of three numbers",
            )
        (x, y, height), (other_x, other_y, other_height) = ends[0], ends[1]
        return (math.hypot(x - other_x, y - other_y) + abs(height) + abs(other_height)) / _MILLISECONDS

    def _append_shortest_route(
        self, zone: Zone, here: str, there: str, links: list[NetworkLink]
    ) -> tuple[tuple[str, str] | None, float]:
        """Follow the path of the fewest links; of equal ones that whose members come first in the file."""
        if here not in zone.predecessors:
            zone.predecessors[here] = _shortest_paths(zone, here)
        path = [there]
        while path[-1] != here:
            if path[-1] not in zone.predecessors[here]:
                raise InputError(self._source, at=f"zone {zone.name!r}", problem=f"no route from {here!r} to {there!r}")
            path.append(zone.predecessors[here][path[-1]])
        steps = [zone.segments[pair] for pair in itertools.pairwise(path[::-1])]
        extra_s = 0.0
        for number, step in enumerate(steps):
            if number and step.gateways and (last := steps[number - 1].gateways) and last[1] != step.gateways[0]:
                extra_s += self._append_route(last[1], step.gateways[0], links)
            links += step.links
        first, final = steps[0].gateways, steps[-1].gateways
        return (None if first is None or final is None else (first[0], final[1])), extra_s


def _shortest_paths(zone: Zone, start: str) -> dict[str, str]:
    """Return the member before each other on the path of the fewest links from `start`."""
    ranks = {name: rank for rank, name in enumerate(zone.members)}
    neighbours: dict[str, list[tuple[str, int]]] = {}
    for (source, target), way in zone.segments.items():
        neighbours.setdefault(source, []).append((target, len(way.links)))
    costs, before = {start: 0}, {}
    queue = [(0, ranks[start], start)]
    while queue:
        cost, _, name = heapq.heappop(queue)
        if cost > costs[name]:
            continue
        for other, length in neighbours.get(name, ()):
            if other not in costs or cost + length < costs[other]:
                costs[other], before[other] = cost + length, name
                heapq.heappush(queue, (cost + length, ranks[other], other))
    return before
