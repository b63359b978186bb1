"""Returns the network of a platform: that of its SimGrid file, or hosts without routes."""

from __future__ import annotations

from pathlib import Path

from batkube.kernel.errors import InputError
from batkube.platforms.model import Platform
from batkube.platforms.network import Host, HostRoute, Network
from batkube.platforms.simgrid.network import parse_network


def network_of(platform: Platform) -> Network:
    """Return the network of a platform. Raise InputError."""
    path = Path(platform.source)
    if path.suffix.lower() == ".xml":
        return parse_network(path, path.read_bytes())
    hosts = {
        machine.name: Host(machine.name, (machine.speed_flops,), 0, max(1, machine.cpu_milli // 1000), "compute_node")
        for machine in platform.machines
        if machine.speed_flops is not None
    }

    def no_route(source: str, target: str) -> HostRoute:
        raise InputError(
            platform.source,
            problem=f"has no network, and a job sends data from {source!r} to {target!r}",
            remedy="use a SimGrid file (.xml) with links and routes",
        )

    return Network(platform.source, hosts, no_route)
