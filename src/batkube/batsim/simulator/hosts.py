"""The hosts of a platform file as Batsim sees them: a master, machines to compute on, machines that store.

Machines have Batsim's numbers (`platforms/simgrid/numbering.py`); storage comes after all others.
"""

from __future__ import annotations

from collections.abc import Mapping

from batkube.batsim.state.machines import LiveMachine, Machines
from batkube.kernel.errors import InputError
from batkube.platforms.network import Host, Network
from batkube.platforms.simgrid.numbering import in_batsim_order

_ROLES = ("master", "storage", "compute_node")
#: The size of Batsim's own messages between its actors, in bytes (Batsim: send_message).
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
    """Return the machines of a platform.

    `zones` has the properties of the zones around each host. `roles` gives hosts other roles than the file, as `-r`
    does; only the first `limit` compute nodes are taken.
    """
    given = {master: "master", **(roles or {})}
    by_role: dict[str, list[tuple[Host, Mapping[str, str]]]] = {role: [] for role in _ROLES}
    for name in in_batsim_order(network.hosts):
        host = network.hosts[name]
        properties = {**host.properties, "role": _role(network.source, host, given.get(name))}
        by_role[properties["role"] or "compute_node"].append((host, properties))
    if len(by_role["master"]) != 1:
        names = ", ".join(host.name for host, _ in by_role["master"]) or "none"
        raise InputError(
            network.source,
            problem=f"one host must be the master, where no job runs; these are: {names}",
            remedy="name it with -m HOST, or give it the role master in the file",
        )
    compute = by_role["compute_node"]
    if limit is not None and limit > len(compute):
        raise InputError(
            network.source, problem=f"has {len(compute)} machines to compute on, and {limit} are asked for (--mmax)"
        )
    chosen = [(entry, False) for entry in compute[:limit]] + [(entry, True) for entry in by_role["storage"]]
    machines = [
        LiveMachine(number, host.name, properties, zones.get(host.name, {}), is_storage)
        for number, ((host, properties), is_storage) in enumerate(chosen)
    ]
    if not machines:
        raise InputError(network.source, problem="has no host to compute on")
    return Machines(machines, by_role["master"][0][0].name)


def _role(source: str, host: Host, other: str | None) -> str:
    """Return the role of a host; one that the command line gives is added to that of the file, as Batsim does."""
    own = host.properties.get("role", "")
    role = f"{own},{other}" if own and other else own or other or ""
    if role and role not in _ROLES:
        raise InputError(
            source, at=f"host {host.name!r}", problem=f"unknown role {role!r}", remedy=f"roles are {', '.join(_ROLES)}"
        )
    return role


class TransferTimes:
    """How long Batsim's own messages take from host to host: the way's latency, and their bytes at its bandwidth."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._cache: dict[tuple[str, str], float] = {}

    def __call__(self, source: str, target: str) -> float:
        """Return how many nanoseconds one takes."""
        ends = source, target
        if ends not in self._cache:
            route = self._network.route(source, target)
            slowest = min((link.bandwidth_bps for link in route.links), default=None)
            sending_s = 0.0 if slowest is None else _MESSAGE_BYTES / slowest
            self._cache[ends] = (route.latency_s + sending_s) * 1e9
        return self._cache[ends]
