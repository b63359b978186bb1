"""Records how many machines are busy, unavailable, asleep and created by programs, for machine_states.csv."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import TYPE_CHECKING

from batkube.cluster.mapping import NODE
from batkube.cluster.store import DELETED, Batch
from batkube.cluster.world import World
from batkube.execution.nodes.allocations import NodeAllocations
from batkube.kernel.instants import Instant
from batkube.outputs.writers.streaming_csv import MachineStatesWriter

if TYPE_CHECKING:
    from batkube.execution.energy.power_switches import PowerSwitches, SleepCounts


def record_machine_states(
    world: World,
    allocations: NodeAllocations,
    states: MachineStatesWriter,
    switches: PowerSwitches | None,
    *,
    nodes_may_change: bool,
) -> Callable[[int, Instant], None]:
    """Record the states of machines and the usage of pods; return the listener for the number of busy machines.

    With `nodes_may_change`, nodes can be added, removed or cordoned, so unavailable machines are counted too.
    """
    asleep: Container[str] = () if switches is None else switches.sleeping_nodes
    counter = UnavailableMachineCounter(world, allocations, states.record_states, asleep) if nodes_may_change else None
    update = states.record_states if counter is None else counter.update

    def on_power_state_changed(counts: SleepCounts, now: Instant) -> None:
        states.record_power_states(*counts, now)
        if counter is not None:
            counter.update(allocations.busy_node_count, now)

    if switches is not None:
        switches.on_change = on_power_state_changed

    def on_busy_changed(busy: int, now: Instant) -> None:
        allocations.record_usage(now)
        update(busy, now)

    return on_busy_changed


class UnavailableMachineCounter:
    """Counts unavailable machines: their nodes are absent, silent, or cordoned and idle.

    Sleeping machines are counted elsewhere. Nodes that programs create are counted while they exist.
    """

    def __init__(
        self,
        world: World,
        allocations: NodeAllocations,
        on_change: Callable[[int, Instant, int, int], None],
        asleep: Container[str],
    ) -> None:
        """`on_change` gets the number of busy machines, the instant, and the counts of unavailable and created ones."""
        self._asleep = asleep
        self._silent = world.heartbeats.silent
        self._machines = world.machines
        self._allocations = allocations
        self._on_change = on_change
        self._missing = dict.fromkeys(world.machines.names)
        self._created: dict[str, None] = {}
        self._cordoned: dict[str, None] = {}
        world.store.subscribe(NODE, self._on_nodes_changed)
        world.heartbeats.subscribe(self._on_heartbeat_changed, self._on_heartbeat_changed)

    def _on_nodes_changed(self, batch: Batch, now: Instant) -> None:
        for name, node in zip(batch.keys, batch.objects, strict=True):
            self._cordoned.pop(name, None)
            self._missing.pop(name, None)
            self._created.pop(name, None)
            is_described = self._machines.is_described(name)
            if batch.type is not DELETED and not is_described:
                self._created[name] = None
            if batch.type is DELETED and is_described:
                self._missing[name] = None
            elif batch.type is not DELETED and node["spec"].get("unschedulable"):
                self._cordoned[name] = None
        self._on_heartbeat_changed("", now)

    def _on_heartbeat_changed(self, node: str, now: Instant) -> None:
        self.update(self._allocations.busy_node_count, now)

    def update(self, busy: int, now: Instant) -> None:
        """Report the numbers of machines, of which `busy` run pods."""
        drained = [name for name in self._cordoned if name not in self._silent and not self._allocations.is_busy(name)]
        absent = sum(name not in self._asleep for name in (*self._missing, *self._silent, *drained))
        self._on_change(busy, now, absent, len(self._created))
