"""Hosts, links and the ways between hosts, as a SimGrid platform file describes them.

It stands beside the platform of a run and is read only where jobs communicate, share cores or use storage: most do not,
and files of many routes are large. Routes are found when they are asked for, and remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(frozen=True, slots=True, eq=False)
class NetworkLink:
    """One link, or one direction of a link that has two."""

    name: str
    bandwidth_bps: float
    latency_s: float
    #: Whether each task has the whole bandwidth for itself (SimGrid: FATPIPE).
    is_fatpipe: bool = False


@dataclass(frozen=True, slots=True)
class Host:
    """A host of the file: a machine, a storage or the master."""

    name: str
    #: Flops per second of one core, by power state.
    speeds_flops: tuple[float, ...]
    #: The power state it begins in.
    pstate: int
    cores: int
    role: str
    properties: Mapping[str, str] = field(default_factory=dict)


class HostRoute(NamedTuple):
    """The links from one host to another, in order, and how long the first byte takes."""

    links: tuple[NetworkLink, ...]
    latency_s: float


@dataclass(slots=True)
class Network:
    """What tasks can use of a platform."""

    source: str
    hosts: Mapping[str, Host]
    find_route: Callable[[str, str], HostRoute]
    _routes: dict[tuple[str, str], HostRoute] = field(default_factory=dict)

    def route(self, source: str, target: str) -> HostRoute:
        """Return the way from the host `source` to the host `target`. Raises InputError."""
        ends = source, target
        if ends not in self._routes:
            self._routes[ends] = self.find_route(source, target)
        return self._routes[ends]

    @property
    def storages(self) -> tuple[str, ...]:
        """The hosts that store data and run nothing, in the order of the file."""
        return tuple(host.name for host in self.hosts.values() if host.role == "storage")
