"""Reads platforms from SimGrid XML files, as Batsim does.

A host has the role `master`, `storage` or `compute_node` (the default), and only compute nodes are machines (Batsim:
docs/input-platform.rst, src/machines.cpp). They are sorted by name (`numbering.py`). Hosts inherit the properties of
the zones around them; those of inner zones take precedence.

The Batkube of 2020 introduced the host properties `core` and `memory`, since SimGrid's attribute `core` describes the
processor, not what pods may use; they take precedence over it. The properties `gpu` and `pods` are new.
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
#: The names of the master if no host has the role: Batsim's default for --master-host, and its form in Batsim's own
#: platforms that define the master as a cluster of one host.
MASTER_NAMES = ("master_host", "master_host0")
_RESOURCES = {"core": CPU, "memory": MEMORY, "gpu": GPU, "pods": PODS}


@dataclass(frozen=True, slots=True)
class _Host:
    """A host of the file, with any role."""

    name: str
    line: int
    attributes: Mapping[str, str]
    properties: Mapping[str, str]
    zone_properties: Mapping[str, str]
    #: The id of the innermost zone or cluster that contains it.
    zone: str


def parse_simgrid(path: Path, content: bytes) -> Platform:
    """Return the platform of a SimGrid file: its compute nodes. Raise InputError."""
    source = str(path)
    root = parse_elements(source, content)
    hosts = []
    for host in _hosts(source, root, {}):
        hosts.append(host)
        if len(hosts) > MACHINES_MAX:
            raise InputError(
                source, at=f"line {host.line}", problem=f"more than {MACHINES_MAX} hosts", remedy="use fewer"
            )
    nodes = sorted(_compute_nodes(source, hosts), key=lambda host: natural_sort_key(host.name))
    machines = [_machine(source, number, host) for number, host in enumerate(nodes)]
    platform = build_platform(source, machines, remedy="add a <host> or <cluster> with the role compute_node")
    storages = tuple(host.name for host in hosts if host.properties.get("role") == "storage")
    return replace(platform, link_count=_link_count(root), storages=storages)


def _link_count(element: Element) -> int:
    """Return the number of links of the file; those of a cluster count as one."""
    own = element.other_tag_counts["link"] + (element.tag in CLUSTERS and "bw" in element.attributes)
    return own + sum(map(_link_count, element.children))


def _hosts(source: str, element: Element, zone_properties: Mapping[str, str], zone: str = "") -> Iterator[_Host]:
    """Yield the hosts in `element`, in the order of the file."""
    if element.tag in HOSTS:
        name = element.attributes.get("id", "")
        if not name:
            raise InputError(
                source, at=f"line {element.line}", problem="a host has no id", remedy="add the attribute id"
            )
        yield _Host(name, element.line, element.attributes, element.properties, zone_properties, zone)
    elif element.tag in CLUSTERS:
        zone = element.attributes.get("id", zone)
        for _, name in cluster_hosts(source, element):
            # A cluster is a zone, so its hosts inherit its properties; SimGrid also copies them to each host
            # (documentation of <cluster>).
            inherited = {**zone_properties, **element.properties}
            yield _Host(name, element.line, element.attributes, element.properties, inherited, zone)
    else:
        inherited = {**zone_properties, **element.properties}
        for child in element.children:
            yield from _hosts(source, child, inherited, element.attributes.get("id", zone))


def cluster_hosts(source: str, element: Element) -> Iterator[tuple[int, str]]:
    """Yield the numbers and names of the hosts of a cluster. Raise InputError."""
    prefix, suffix = element.attributes.get("prefix", ""), element.attributes.get("suffix", "")
    for number in _host_numbers(source, element):
        yield number, f"{prefix}{number}{suffix}"


def _host_numbers(source: str, element: Element) -> Iterator[int]:
    """Yield the numbers of the hosts of a cluster: `0-3,5` is 0, 1, 2, 3, 5."""
    radical = element.attributes.get("radical", "")
    for part in radical.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,18})\s*(?:-\s*([0-9]{1,18})\s*)?", part)
        if match is None or (match[2] and int(match[2]) < int(match[1])):
            raise InputError(
                source,
                at=f"line {element.line}, radical",
                problem=f"{radical!r} is not a list of host numbers",
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
    """Return the role of a host. Raise InputError."""
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
    properties = {"speed": speeds} if speeds else {}
    properties |= {"pstate": pstate} if pstate else {}
    return Machine(
        id=number,
        name=host.name,
        capacity=with_default_pods(capacity),
        speed_flops=default_speed(source, at, speeds, pstate) if speeds else None,
        properties={**properties, **host.properties},
        zone_properties=host.zone_properties,
        zone=host.zone,
    )
