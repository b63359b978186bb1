"""The hosts of a platform file by their roles in Batsim: the master, compute nodes, storage.

Machines have Batsim's numbers (`platforms/simgrid/numbering.py`); storage hosts come last.

Imitated: Batsim 4.2.1, Machines::create_machines in src/machines.cpp.
"""

from __future__ import annotations

from collections.abc import Mapping

from batkube.batsim.state.machines import LiveMachine, Machines
from batkube.kernel.errors import InputError
from batkube.platforms.network import Host, Network
from batkube.platforms.simgrid.numbering import in_batsim_order

_ROLES = ("master", "storage", "compute_node")
#: The size of Batsim's internal messages in bytes (send_message in src/ipp.cpp).
_MESSAGE_BYTES = 1
MASTER_HOST = "master_host"


def machines_of(
    network: Network,
    zones: Mapping[str, Mapping[str, str]],
    *,
    master: str = MASTER_HOST,
    roles: Mapping[str, str] | None = None,
    limit: int | None = None,
) -> Machines:
    """Return the machines of a platform. Raise InputError if it has no compute node, or not exactly one master.

    `zones` are the properties of the zones around each host, `roles` are additional roles (`-r`). Only the first
    `limit` compute nodes are used.
    """
    added_roles = {master: "master", **(roles or {})}
    by_role: dict[str, list[tuple[Host, Mapping[str, str]]]] = {role: [] for role in _ROLES}
    for name in in_batsim_order(network.hosts):
        host = network.hosts[name]
        properties = {**host.properties, "role": _role(network.source, host, added_roles.get(name))}
        by_role[properties["role"] or "compute_node"].append((host, properties))
    if len(by_role["master"]) != 1:
        names = ", ".join(host.name for host, _ in by_role["master"]) or "none"
        raise InputError(
            network.source,
            problem=f"exactly one host must be the master, which runs no jobs; masters: {names}",
            remedy="name it with -m HOST, or give it the role master in the file",
        )
    compute = by_role["compute_node"]
    if limit is not None and limit > len(compute):
        raise InputError(
            network.source,
            problem=f"has {len(compute)} compute nodes, and --mmax requests {limit}",
            remedy="use a larger platform or a lower --mmax",
        )
    selected = [(entry, False) for entry in compute[:limit]] + [(entry, True) for entry in by_role["storage"]]
    machines = [
        LiveMachine(number, host.name, properties, zones.get(host.name, {}), is_storage)
        for number, ((host, properties), is_storage) in enumerate(selected)
    ]
    if not machines:
        raise InputError(network.source, problem="has no compute node")
    return Machines(machines, by_role["master"][0][0].name)


def _role(source: str, host: Host, added_role: str | None) -> str:
    """Return the role of a host; an added role is appended to that of the file, as in Batsim."""
    file_role = host.properties.get("role", "")
    role = f"{file_role},{added_role}" if file_role and added_role else file_role or added_role or ""
    if role and role not in _ROLES:
        raise InputError(
            source, at=f"host {host.name!r}", problem=f"unknown role {role!r}", remedy=f"roles are {', '.join(_ROLES)}"
        )
    return role


class TransferTimes:
    """The durations of Batsim's internal messages between hosts: the latency of the route plus the transmission."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._cache: dict[tuple[str, str], float] = {}

    def __call__(self, source: str, target: str) -> float:
        """Return the duration of a message in nanoseconds."""
        ends = source, target
        if ends not in self._cache:
            route = self._network.route(source, target)
            bottleneck_bps = min((link.bandwidth_bps for link in route.links), default=None)
            transmission_s = 0.0 if bottleneck_bps is None else _MESSAGE_BYTES / bottleneck_bps
            self._cache[ends] = (route.latency_s + transmission_s) * 1e9
        return self._cache[ends]
