"""Platforms from SimGrid XML files, read as Batsim reads them.

Batsim (docs, "Platform"; src/machines.cpp): a host has a role, `master`, `storage` or `compute_node`, the default;
only compute nodes are machines. They are numbered in the order of their names (`numbering`). Properties of zones are
inherited by the hosts inside, inner zones winning.

The 2020 Batkube added the properties `core` and `memory` to hosts, because SimGrid's attribute `core` describes
the processor and not what pods may use; they win over it. `gpu` and `pods` are ours, in the same spirit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from batkube.kernel.errors import InputError
from batkube.kernel.quantities import CPU, GPU, MEMORY, PODS
from batkube.platforms.builder import MACHINES_MAX, build_platform, parse_amount, with_default_pods
from batkube.platforms.model import Machine, Platform
from batkube.platforms.simgrid.elements import CLUSTERS, HOSTS, Element, parse_elements
from batkube.platforms.simgrid.numbering import natural_sort_key
from batkube.platforms.simgrid.speeds import default_speed

_ROLES = ("master", "storage", "compute_node")
#: Batsim's default for --master-host, which counts only where no host has the role; and what Batsim's own platforms
#: make of it when the master is a cluster of one.
MASTER_NAMES = ("master_host", "master_host0")
_RESOURCES = {"core": CPU, "memory": MEMORY, "gpu": GPU, "pods": PODS}


@dataclass(frozen=True, slots=True)
class _Host:
    """A host of the file, before it is known whether it is a machine."""

    name: str
    line: int
    attributes: Mapping[str, str]
    properties: Mapping[str, str]
    zone_properties: Mapping[str, str]
    #: The id of the zone or cluster right around it.
    zone: str


def parse_simgrid(path: Path, content: bytes) -> Platform:
    """Return the compute nodes of a SimGrid platform file."""
    source = str(path)
    root = parse_elements(source, content)
    hosts = []
    for host in _hosts(source, root, {}):
        hosts.append(host)
        if len(hosts) > MACHINES_MAX:
            raise InputError(source, at=f"line {host.line}", problem=f"more than {MACHINES_MAX} hosts")
    nodes = sorted(_compute_nodes(source, hosts), key=lambda host: natural_sort_key(host.name))
    machines = [_machine(source, number, host) for number, host in enumerate(nodes)]
    platform = build_platform(
        source, machines, remedy="add a <host> or <cluster> whose role is neither master nor storage"
    )
    storages = tuple(host.name for host in hosts if host.properties.get("role") == "storage")
    return replace(platform, link_count=_link_count(root), storages=storages)


def _link_count(element: Element) -> int:
    """Return how many links the file describes; those of all hosts of a cluster are one description."""
    own = element.other_tag_counts["link"] + (element.tag in CLUSTERS and "bw" in element.attributes)
    return own + sum(map(_link_count, element.children))


def _hosts(source: str, element: Element, zone_properties: Mapping[str, str], zone: str = "") -> Iterator[_Host]:
    """Yield the hosts inside `element`, in the order of the file."""
    if element.tag in HOSTS:
        name = element.attributes.get("id", "")
        if not name:
            raise InputError(source, at=f"line {element.line}", problem="a host without id", remedy="give it one")
        yield _Host(name, element.line, element.attributes, element.properties, zone_properties, zone)
    elif element.tag in CLUSTERS:
        zone = element.attributes.get("id", zone)
        for _, name in cluster_hosts(source, element):
            # Properties of a cluster go to each of its hosts (SimGrid's documentation of <cluster>), and as it is a
            # zone as well, they are those of the zone around them.
            around = {**zone_properties, **element.properties}
            yield _Host(name, element.line, element.attributes, element.properties, around, zone)
    else:
        inherited = {**zone_properties, **element.properties}
        for child in element.children:
            yield from _hosts(source, child, inherited, element.attributes.get("id", zone))


def cluster_hosts(source: str, element: Element) -> Iterator[tuple[int, str]]:
    """Yield the hosts of a cluster, each with its number and its name. Raises InputError."""
    prefix, suffix = element.attributes.get("prefix", ""), element.attributes.get("suffix", "")
    for number in _host_numbers(source, element):
        yield number, f"{prefix}{number}{suffix}"


def _host_numbers(source: str, element: Element) -> Iterator[int]:
    """Yield the numbers of a cluster's hosts: `0-3,5` is 0, 1, 2, 3, 5."""
    radical = element.attributes.get("radical", "")
    for part in radical.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,18})\s*(?:-\s*([0-9]{1,18})\s*)?", part)
        if match is None or (match[2] and int(match[2]) < int(match[1])):
            raise InputError(
                source,
                at=f"line {element.line}, radical",
                problem=f"{radical!r} does not number the hosts of the cluster",
                remedy="write numbers and intervals, such as 0-3,5",
            )
        yield from range(int(match[1]), int(match[2] or match[1]) + 1)


def _compute_nodes(source: str, hosts: list[_Host]) -> list[_Host]:
    roles = [role_of(source, host.line, host.name, host.properties) for host in hosts]
    if "master" in roles:
        return [host for host, role in zip(hosts, roles, strict=True) if role == "compute_node"]
    return [
        host
        for host, role in zip(hosts, roles, strict=True)
        if role == "compute_node" and host.name not in MASTER_NAMES
    ]


def role_of(source: str, line: int, name: str, properties: Mapping[str, str]) -> str:
    """Return the role that its properties give a host. Raises InputError."""
    role = properties.get("role") or "compute_node"
    if role not in _ROLES:
        raise InputError(
            source,
            at=f"line {line}, host {name!r}",
            problem=f"unknown role {role!r}",
            remedy=f"roles are {', '.join(_ROLES)}",
        )
    return role


def _machine(source: str, number: int, host: _Host) -> Machine:
    at = f"line {host.line}, host {host.name!r}"
    amounts = {"core": host.attributes.get("core", "1")}
    amounts |= {name: value for name, value in host.properties.items() if name in _RESOURCES}
    capacity = {
        _RESOURCES[name]: parse_amount(source, f"{at}, {name}", _RESOURCES[name], value)
        for name, value in amounts.items()
    }
    speeds = host.attributes.get("speed") or host.attributes.get("power")
    pstate = host.attributes.get("pstate")
    kept = {"speed": speeds} if speeds else {}
    kept |= {"pstate": pstate} if pstate else {}
    return Machine(
        id=number,
        name=host.name,
        capacity=with_default_pods(capacity),
        speed_flops=default_speed(source, at, speeds, pstate) if speeds else None,
        properties={**kept, **host.properties},
        zone_properties=host.zone_properties,
        zone=host.zone,
    )
