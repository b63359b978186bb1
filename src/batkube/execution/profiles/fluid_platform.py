"""The hosts and links of a platform as fluid resources, and parallel tasks on them.

    rate ≤ speed of one core / flops on each host         a process does not use several cores
    rate ≤ γ / (2 · latency · bytes) on each route         TCP's window γ (SimGrid: network/TCP-gamma)
    latency = that of the slowest route                    paid once, before the work begins

This is SimGrid's L07 model (SimGrid 3.32, src/surf/ptask_L07.cpp), which Batsim uses; it has no correction factors for
bandwidths and latencies. On a FATPIPE link, each flow of a task has the whole bandwidth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from batkube.fluid.flow import Flow
from batkube.fluid.tasks import FluidResource, Task
from batkube.kernel.instants import Duration
from batkube.platforms.network import Host, Network, NetworkLink

#: The TCP window in bytes (SimGrid: network/TCP-gamma).
_TCP_GAMMA_BYTES = 4194304.0


class FluidPlatform:
    """Hosts and links, with the tasks that use them."""

    def __init__(self, network: Network, flow: Flow) -> None:
        self.network = network
        self.flow = flow
        self._cores: dict[str, FluidResource] = {}
        self._links: dict[NetworkLink, FluidResource] = {}
        self._pstates = {name: host.pstate for name, host in network.hosts.items()}

    def cores(self, name: str) -> FluidResource:
        """Return the cores of a host."""
        if name not in self._cores:
            host = self.network.hosts[name]
            self._cores[name] = FluidResource(name, host.cores * self.speed(name))
        return self._cores[name]

    def host(self, name: str) -> Host:
        """Return a host as the platform file describes it."""
        return self.network.hosts[name]

    def pstate(self, name: str) -> int:
        """Return the current power state of a host."""
        return self._pstates[name]

    def speed(self, name: str) -> float:
        """Return the current speed of one core of a host, in flops per second."""
        return self.network.hosts[name].speeds_flops[self._pstates[name]]

    def set_pstate(self, name: str, pstate: int) -> None:
        """Change the power state, and thereby the speed, of a host."""
        cores = self.cores(name)
        self._pstates[name] = pstate
        self.flow.set_capacity(cores, self.network.hosts[name].cores * self.speed(name))
        for task in cores.tasks:
            assert isinstance(task, ParallelTask)
            task.bound = self._bound(task)

    def new_task(self, name: str, hosts: Sequence[str], flops: Sequence[float], sent_bytes: Sequence[float]) -> Task:
        """Return a task with a process on each of `hosts`; `sent_bytes` is a matrix, row sends to column, or empty."""
        weights: dict[NetworkLink, float] = {}
        fat: dict[NetworkLink, float] = {}
        latency_s, window_s = 0.0, 0.0
        count = len(hosts)
        for position, amount in enumerate(sent_bytes):
            if amount <= 0:
                continue
            route = self.network.route(hosts[position // count], hosts[position % count])
            latency_s = max(latency_s, route.latency_s)
            window_s = max(window_s, route.latency_s * amount)
            for link in route.links:
                if link.is_fatpipe:
                    fat[link] = max(fat.get(link, 0.0), amount)
                else:
                    weights[link] = weights.get(link, 0.0) + amount
        uses = [(self.cores(host), amount) for host, amount in zip(hosts, flops, strict=True)]
        uses += [(self._link(link), amount) for link, amount in weights.items()]
        uses += [(FluidResource(link.name, link.bandwidth_bps), amount) for link, amount in fat.items()]
        task = ParallelTask(
            name,
            uses,
            hosts=tuple(hosts),
            flops=tuple(flops),
            network_bound=_TCP_GAMMA_BYTES / (2.0 * window_s) if window_s > 0 else math.inf,
            latency=Duration(round(latency_s * 1e9)),
        )
        task.bound = self._bound(task)
        return task

    def _bound(self, task: ParallelTask) -> float:
        per_core = [
            self.speed(host) / amount for host, amount in zip(task.hosts, task.flops, strict=True) if amount > 0
        ]
        return min([task.network_bound, *per_core])

    def _link(self, link: NetworkLink) -> FluidResource:
        if link not in self._links:
            self._links[link] = FluidResource(link.name, link.bandwidth_bps)
        return self._links[link]


class ParallelTask(Task):
    """A task of several processes, with the values on which the bound of its rate depends."""

    __slots__ = ("flops", "hosts", "network_bound")

    def __init__(
        self,
        name: str,
        uses: Sequence[tuple[FluidResource, float]],
        *,
        hosts: tuple[str, ...],
        flops: tuple[float, ...],
        network_bound: float,
        latency: Duration,
    ) -> None:
        super().__init__(name, uses, bound=network_bound, latency=latency)
        self.hosts = hosts
        self.flops = flops
        self.network_bound = network_bound
