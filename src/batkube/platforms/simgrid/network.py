"""Reads the network of a SimGrid platform file: hosts, links, and the zones that connect them.

The supported kinds of zones are those of platforms for Batsim: Full, Floyd, Dijkstra, Cluster, Vivaldi, None.
Imitated: SimGrid 3.32, src/surf/sg_platf.cpp and src/surf/xml.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import NoReturn

from batkube.kernel.errors import InputError
from batkube.platforms.network import Host, Network, NetworkLink
from batkube.platforms.simgrid.elements import NETWORK_TAGS, Element, parse_elements
from batkube.platforms.simgrid.machines import cluster_hosts, role_of
from batkube.platforms.simgrid.routes import SHORTEST, Routes, RouteSegment, Zone
from batkube.platforms.simgrid.speeds import all_speeds, initial_pstate
from batkube.platforms.simgrid.units import bandwidth, latency

_ROUTES = ("route", "zoneRoute", "ASroute")
_BYPASSES = ("bypassRoute", "bypassZoneRoute", "bypassASroute")
_POLICIES = ("SHARED", "FATPIPE", "SPLITDUPLEX", "FULLDUPLEX")
_KINDS = ("full", *SHORTEST, "cluster", "vivaldi", "none")


def parse_network(path: Path, content: bytes) -> Network:
    """Return the network of a SimGrid platform file. Raise InputError."""
    source = str(path)
    reader = _NetworkReader(source)
    reader.read(parse_elements(source, content, NETWORK_TAGS))
    return Network(source, reader.hosts, Routes(source, reader.zone_of).route)


class _NetworkReader:
    """Builds the zones of a file."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.hosts: dict[str, Host] = {}
        #: The zone that contains each host, router and zone.
        self.zone_of: dict[str, Zone] = {}
        #: The two directions of each link, which are the same object unless it is duplex.
        self._links: dict[str, tuple[NetworkLink, NetworkLink]] = {}

    def read(self, element: Element) -> None:
        """Read the zones of the platform."""
        for child in element.children:
            self._read_zone(child, None)

    def _reject(self, element: Element, problem: str, remedy: str | None = None) -> NoReturn:
        name = element.attributes.get("id", "")
        at = f"line {element.line}, {element.tag}" + (f" {name!r}" if name else "")
        raise InputError(self.source, at=at, problem=problem, remedy=remedy)

    # Zones

    def _read_zone(self, element: Element, parent: Zone | None) -> None:
        """Read a zone and its contents: links first, routes last."""
        if element.tag == "config":
            return
        if element.tag in ("cluster", "cabinet"):
            self._read_cluster(element, parent)
            return
        if element.tag not in ("zone", "AS"):
            self._reject(element, "is not in a zone", "put it into a <zone>")
        kind = element.attributes.get("routing", "none").lower()
        if kind not in _KINDS:
            self._reject(
                element,
                f"zones with the routing {kind!r} are not modelled",
                "use Full, Floyd, Dijkstra, Cluster, Vivaldi or None",
            )
        zone = self._new_zone(element, kind, parent)
        by_tag: dict[str, list[Element]] = {}
        for child in element.children:
            by_tag.setdefault(child.tag, []).append(child)
        for tag in _BYPASSES:
            for child in by_tag.get(tag, ()):
                self._reject(child, "bypass routes are not modelled", "remove it")
        for child in by_tag.get("link", ()):
            self._read_link(child)
        for child in by_tag.get("backbone", ()):
            zone.backbone = self._read_link(child)[0]
        for child in element.children:
            match child.tag:
                case "host":
                    self._read_host(child, zone)
                case "peer":
                    self._read_peer(child, zone)
                case "router":
                    self._add_member(child, child.attributes.get("id", ""), zone)
                case "zone" | "AS" | "cluster":
                    self._read_zone(child, zone)
                case "cabinet":
                    self._read_cabinet(child, zone)
        for child in by_tag.get("host_link", ()):
            self._read_host_link(child, zone)
        for tag in _ROUTES:
            for child in by_tag.get(tag, ()):
                self._read_route(child, zone)

    def _new_zone(self, element: Element, kind: str, parent: Zone | None) -> Zone:
        zone = Zone(element.attributes.get("id", ""), kind, parent)
        if parent is not None:
            parent.has_zones = True
            self._add_member(element, zone.name, parent)
        return zone

    def _add_member(self, element: Element, name: str, zone: Zone) -> None:
        if name in self.zone_of:
            self._reject(element, f"the name {name!r} is taken", "use unique names for hosts, routers and zones")
        self.zone_of[name] = zone
        zone.members.append(name)
        if "coordinates" in element.attributes:
            zone.coordinates[name] = self._coordinates(element)

    def _coordinates(self, element: Element) -> tuple[float, ...]:
        text = element.attributes["coordinates"]
        try:
            numbers = tuple(float(part) for part in text.split())
        except ValueError:
            numbers = ()
        if len(numbers) != 3 or not all(map(math.isfinite, numbers)):
            self._reject(
                element, f"the coordinates {text!r} are not three numbers", "write coordinates such as 25.5 9.4 1.4"
            )
        return numbers

    # Hosts

    def _read_host(self, element: Element, zone: Zone) -> None:
        name = element.attributes.get("id", "")
        self._add_member(element, name, zone)
        self._add_host(element, name)

    def _add_host(self, element: Element, name: str, *, has_cores: bool = True) -> None:
        at = f"line {element.line}, host {name!r}"
        speeds = all_speeds(self.source, at, element.attributes.get("speed") or element.attributes.get("power") or "1")
        cores = element.attributes.get("core", "1") if has_cores else "1"
        if not cores.isascii() or not cores.isdigit() or int(cores) == 0:
            self._reject(element, f"{cores!r} is not a number of cores", "write a whole number, such as 4")
        self.hosts[name] = Host(
            name=name,
            speeds_flops=speeds,
            pstate=initial_pstate(self.source, at, len(speeds), element.attributes.get("pstate")),
            cores=int(cores),
            role=role_of(self.source, element.line, name, element.properties),
            properties=element.properties,
        )

    def _read_peer(self, element: Element, zone: Zone) -> None:
        """Read a host of a Vivaldi zone, with links of its own."""
        self._read_host(element, zone)
        name, at = element.attributes.get("id", ""), f"line {element.line}, peer"
        bw_in, bw_out = (bandwidth(self.source, at, element.attributes.get(key, "")) for key in ("bw_in", "bw_out"))
        zone.uplinks[name] = (NetworkLink(f"link_{name}_UP", bw_out, 0.0),)
        zone.downlinks[name] = (NetworkLink(f"link_{name}_DOWN", bw_in, 0.0),)

    # Links

    def _read_link(self, element: Element) -> tuple[NetworkLink, NetworkLink]:
        attributes, at = element.attributes, f"line {element.line}, {element.tag}"
        name = attributes.get("id", "")
        if name in self._links:
            self._reject(element, "two links have this name", "use unique names")
        pair = self._link_pair(element, name, attributes.get("bandwidth", ""), attributes.get("latency", "0s"), at)
        self._links[name] = pair
        if pair[0] is not pair[1]:
            # SimGrid accepts the directions by these names, too.
            self._links[f"{name}_UP"] = pair[0], pair[0]
            self._links[f"{name}_DOWN"] = pair[1], pair[1]
        return pair

    def _link_pair(
        self, element: Element, name: str, bandwidth_text: str, latency_text: str, at: str, policy: str | None = None
    ) -> tuple[NetworkLink, NetworkLink]:
        """Return the two directions of a link: the same object unless the link is duplex."""
        policy = policy or element.attributes.get("sharing_policy", "SHARED")
        if policy not in _POLICIES:
            self._reject(element, f"the sharing policy {policy!r} is not modelled", f"use {', '.join(_POLICIES[:3])}")
        bandwidth_bps, latency_s = bandwidth(self.source, at, bandwidth_text), latency(self.source, at, latency_text)
        if policy in ("SPLITDUPLEX", "FULLDUPLEX"):
            up, down = (NetworkLink(f"{name}_{direction}", bandwidth_bps, latency_s) for direction in ("UP", "DOWN"))
            return up, down
        link = NetworkLink(name, bandwidth_bps, latency_s, is_fatpipe=policy == "FATPIPE")
        return link, link

    # Clusters

    def _read_cluster(self, element: Element, parent: Zone | None) -> None:
        attributes, at = element.attributes, f"line {element.line}, cluster"
        if attributes.get("topology", "FLAT") != "FLAT":
            self._reject(element, f"clusters of the topology {attributes['topology']!r} are not modelled", "use FLAT")
        zone = self._new_zone(element, "cluster", parent)
        backbone: tuple[NetworkLink, ...] = ()
        if "bb_bw" in attributes or "bb_lat" in attributes:
            bb_policy = attributes.get("bb_sharing_policy", "SHARED")
            bb_bw, bb_lat = attributes.get("bb_bw", "0"), attributes.get("bb_lat", "0")
            backbone = (self._link_pair(element, f"{zone.name}_backbone", bb_bw, bb_lat, at, bb_policy)[0],)
        policy = attributes.get("sharing_policy", "SPLITDUPLEX")
        for number, name in cluster_hosts(self.source, element):
            self._add_member(element, name, zone)
            self._add_host(element, name)
            link = f"{zone.name}_link_{number}"
            up, down = self._link_pair(element, link, attributes.get("bw", ""), attributes.get("lat", "0"), at, policy)
            limiter: tuple[NetworkLink, ...] = ()
            if "limiter_link" in attributes:
                limit = bandwidth(self.source, at, attributes["limiter_link"])
                limiter = (NetworkLink(f"{link}_limiter", limit, 0.0),) if limit > 0 else ()
            zone.uplinks[name], zone.downlinks[name] = (*limiter, up, *backbone), (*backbone, down, *limiter)
            if "loopback_bw" in attributes or "loopback_lat" in attributes:
                loop_bw, loop_lat = attributes.get("loopback_bw", "0"), attributes.get("loopback_lat", "0")
                loopback, _ = self._link_pair(element, f"{link}_loopback", loop_bw, loop_lat, at, "FATPIPE")
                zone.segments[name, name] = RouteSegment((loopback,))
        router = attributes.get("router_id") or "".join(
            (attributes.get("prefix", ""), zone.name, "_router", attributes.get("suffix", ""))
        )
        self._add_member(element, router, zone)

    def _read_cabinet(self, element: Element, zone: Zone) -> None:
        """Read hosts of a Cluster zone, with one core and a link each (SimGrid: sg_platf_new_cabinet)."""
        attributes, at = element.attributes, f"line {element.line}, cabinet"
        for _, name in cluster_hosts(self.source, element):
            self._add_member(element, name, zone)
            self._add_host(element, name, has_cores=False)
            bw, lat = attributes.get("bw", ""), attributes.get("lat", "0")
            up, down = self._link_pair(element, f"link_{name}", bw, lat, at, "SPLITDUPLEX")
            self._connect(zone, name, up, down)

    def _read_host_link(self, element: Element, zone: Zone) -> None:
        up, down = (self._defined_link(element, element.attributes.get(key, ""))[0] for key in ("up", "down"))
        name = element.attributes.get("id", "")
        if self.zone_of.get(name) is not zone:
            self._reject(element, f"names {name!r}, which is not a host of its zone", "use a host of the same zone")
        self._connect(zone, name, up, down)

    def _connect(self, zone: Zone, name: str, up: NetworkLink, down: NetworkLink) -> None:
        backbone = () if zone.backbone is None else (zone.backbone,)
        zone.uplinks[name], zone.downlinks[name] = (up, *backbone), (*backbone, down)

    # Routes

    def _defined_link(self, element: Element, name: str) -> tuple[NetworkLink, NetworkLink]:
        if name not in self._links:
            self._reject(element, f"names the link {name!r}, which is not defined before", "define it above")
        return self._links[name]

    def _read_route(self, element: Element, zone: Zone) -> None:
        attributes = element.attributes
        source, target = attributes.get("src", ""), attributes.get("dst", "")
        for end in (source, target):
            if self.zone_of.get(end) is not zone:
                self._reject(element, f"names {end!r}, which is not in its zone", "use hosts or zones of the same zone")
        gateways = None
        if element.tag != "route":
            gateways = attributes.get("gw_src", ""), attributes.get("gw_dst", "")
            for gateway in gateways:
                if gateway not in self.zone_of:
                    self._reject(
                        element, f"names the gateway {gateway!r}, which does not exist", "use a host or a router"
                    )
        forward, backward = [], []
        for link in element.children:
            up, down = self._defined_link(link, link.attributes.get("id", ""))
            direction = link.attributes.get("direction", "NONE")
            if up is not down and direction not in ("UP", "DOWN"):
                self._reject(link, "names a duplex link without a direction", 'add direction="UP" or direction="DOWN"')
            if direction == "DOWN":
                up, down = down, up
            forward.append(up)
            backward.append(down)
        zone.segments[source, target] = RouteSegment(tuple(forward), gateways)
        if attributes.get("symmetrical", "YES").upper() != "NO" and source != target:
            reversed_gateways = None if gateways is None else gateways[::-1]
            zone.segments[target, source] = RouteSegment(tuple(reversed(backward)), reversed_gateways)
