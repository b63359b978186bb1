"""The machine registry: ids of machines, and the times at which their nodes existed."""

from __future__ import annotations

from batkube.cluster.mapping import NODE
from batkube.cluster.store import Key
from batkube.cluster.world import World
from batkube.kernel.instants import START, Instant, seconds
from batkube.kernel.streams import Streams
from batkube.platforms.reader import read_platform


def at(moment_s: int) -> Instant:
    return Instant(START + seconds(moment_s))


def create(world: World, name: str, moment_s: int, cpu: str = "1") -> None:
    node = {"metadata": {"name": name, "uid": name}, "spec": {}, "status": {"allocatable": {"cpu": cpu}}}
    world.store.create(NODE, [Key(name)], [node], at(moment_s))


def test_nodes_created_by_clients_get_the_next_ids_in_order_of_creation() -> None:
    world = World(Streams(0))
    world.machines.add_platform(read_platform("2x4").machines)
    for name, moment_s in (("node-1", 0), ("spot-b", 5), ("node-0", 6), ("spot-a", 7)):
        create(world, name, moment_s, "3")

    machines = world.machines
    assert machines.names == ["node-0", "node-1", "spot-b", "spot-a"]
    assert [machine.cpu_milli for machine in machines.machines] == [4000, 4000, 3000, 3000]
    assert machines.created_nodes == ["spot-b", "spot-a"]
    assert [machines.is_described(name) for name in ("node-1", "spot-a", "elsewhere")] == [True, False, False]


def test_a_node_that_is_created_again_is_the_same_machine() -> None:
    world = World(Streams(0))
    world.machines.add_platform(read_platform("2x4").machines)
    create(world, "node-0", 0)
    create(world, "spot", 5)
    for name in ("node-0", "spot"):
        world.store.delete(NODE, [Key(name)], at(10))
    create(world, "spot", 20)

    machines = world.machines
    assert machines.ids["spot"] == 2
    assert machines.presence(0) == [(at(0), at(10))]
    assert machines.presence(1) == [], "its node was never created"
    assert machines.presence(2) == [(at(5), at(10)), (at(20), None)]
