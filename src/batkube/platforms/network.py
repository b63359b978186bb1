"""The network of a SimGrid platform file: hosts, links, and routes between hosts.

It is separate from the platform, and read only if jobs communicate, share cores or use storage: most do not, and files
with many routes are large. Routes are computed on demand and cached.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(frozen=True, slots=True, eq=False)
class NetworkLink:
    """A link, or one direction of a duplex link."""

    name: str
    bandwidth_bps: float
    latency_s: float
    #: Whether each task has the whole bandwidth (SimGrid: FATPIPE).
    is_fatpipe: bool = False


@dataclass(frozen=True, slots=True)
class Host:
    """A host: a machine, a storage or the master."""

    name: str
    #: The speed of one core in flops per second, by power state.
    speeds_flops: tuple[float, ...]
    #: The initial power state.
    pstate: int
    cores: int
    role: str
    properties: Mapping[str, str] = field(default_factory=dict)


class HostRoute(NamedTuple):
    """The links from one host to another, in order, and the latency."""

    links: tuple[NetworkLink, ...]
    latency_s: float


@dataclass(slots=True)
class Network:
    """The hosts of a platform, and the routes between them."""

    source: str
    hosts: Mapping[str, Host]
    find_route: Callable[[str, str], HostRoute]
    _routes: dict[tuple[str, str], HostRoute] = field(default_factory=dict)

    def route(self, source: str, target: str) -> HostRoute:
        """Return the route from the host `source` to the host `target`. Raise InputError."""
        ends = source, target
        if ends not in self._routes:
            self._routes[ends] = self.find_route(source, target)
        return self._routes[ends]

    @property
    def storages(self) -> tuple[str, ...]:
        """The storage hosts, in the order of the file."""
        return tuple(host.name for host in self.hosts.values() if host.role == "storage")
