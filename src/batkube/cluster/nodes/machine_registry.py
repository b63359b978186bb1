"""Maps nodes to machines: machine ids by node name, and the times at which each machine's node existed.

The machines of the platform have their own ids. A node that a client creates, such as an autoscaler's, is a further
machine; its id is the next one in order of creation. A node that is created again under its name is the same machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from batkube.cluster.mapping import NODE, kube_name
from batkube.cluster.object_meta import labels_of
from batkube.cluster.pods.resources import allocatable_of
from batkube.cluster.store import ADDED, DELETED, Batch, KubeObject, Store
from batkube.kernel.instants import START, Instant
from batkube.kernel.quantities import CPU, PODS
from batkube.platforms.model import DEFAULT_PODS, Machine

Presence = list[tuple[Instant, Instant | None]]
"""The intervals in which a node existed; the end is None while it still does."""


class MachineRegistry:
    """The machines of a world, by id."""

    def __init__(self, store: Store) -> None:
        #: The name of each machine's node.
        self.names: list[str] = []
        self.ids: dict[str, int] = {}
        self.machines: list[Machine] = []
        #: The number of machines that the platform describes.
        self.described_count = 0
        #: The presence of machines whose nodes were created after the start of the run, or deleted.
        self._presence: dict[int, Presence] = {}
        #: Machines whose nodes have not existed yet.
        self._not_yet_created: set[int] = set()
        store.subscribe(NODE, self._on_nodes_changed)

    def add_platform(self, machines: Sequence[Machine]) -> None:
        """Add the machines of a platform, before any node exists."""
        for machine in machines:
            self._not_yet_created.add(self._add(kube_name(machine.name), machine))
        self.described_count = len(machines)

    @property
    def created_nodes(self) -> list[str]:
        """The names of nodes that the platform does not describe."""
        return self.names[self.described_count :]

    def is_described(self, node: str) -> bool:
        """Return whether a node represents a machine of the platform."""
        return self.ids.get(node, self.described_count) < self.described_count

    def created_among(self, machines: Sequence[Machine]) -> list[Machine]:
        """Return which of these machines clients have created."""
        if len(self.machines) == self.described_count:
            return []
        return [machine for machine in machines if machine.id >= self.described_count]

    def presence(self, number: int) -> Presence | None:
        """Return when the node of a machine existed; None if it did throughout the run."""
        return [] if number in self._not_yet_created else self._presence.get(number)

    def _add(self, name: str, machine: Machine) -> int:
        number = self.ids[name] = len(self.machines)
        self.names.append(name)
        self.machines.append(machine)
        return number

    def _on_nodes_changed(self, batch: Batch, now: Instant) -> None:
        for name, node in zip(batch.keys, batch.objects, strict=True):
            if batch.type is DELETED:
                self._presence.setdefault(self.ids[name], [(START, None)])
                began, _ = self._presence[self.ids[name]].pop()
                self._presence[self.ids[name]].append((began, max(now, began)))
                continue
            if name not in self.ids:
                self._add(name, Machine(len(self.machines), name, {}, self._lowest_speed()))
            number = self.ids[name]
            if number >= self.described_count:
                self.machines[number] = _machine_of(node, self.machines[number])
            if batch.type is ADDED:
                self._not_yet_created.discard(number)
                if now > START or number in self._presence:
                    self._presence.setdefault(number, []).append((max(now, START), None))

    def _lowest_speed(self) -> float | None:
        """Return the speed of the platform's slowest machine, as the assumed speed of a node that a client creates."""
        speeds = [machine.speed_flops for machine in self.machines[: self.described_count]]
        return min((speed for speed in speeds if speed is not None), default=None)


def _machine_of(node: KubeObject, machine: Machine) -> Machine:
    """Return `machine` with the capacity and labels of its node."""
    return replace(machine, capacity={CPU: 0, PODS: DEFAULT_PODS, **allocatable_of(node)}, labels=labels_of(node))
