"""Nodes of machines: stored before a run, added during it, and system pods on them."""

from __future__ import annotations

from typing import Any

from batkube.cluster.mapping import NODE
from batkube.cluster.store import Key, KubeObject
from batkube.cluster.world import World
from batkube.components.access import Access
from batkube.components.nodes import NodeCreator
from batkube.execution.latencies.system_pods import SystemPod
from batkube.execution.nodes.allocations import NodeAllocations
from batkube.kernel.instants import START, Instant
from batkube.kernel.streams import Streams
from batkube.platforms.reader import read_platform


class RecordingClient:
    """Records what a component creates."""

    def __init__(self) -> None:
        self.created: list[tuple[str, str]] = []

    def create(self, storage: str, obj: KubeObject, now: Instant, *, subresource: str = "") -> KubeObject:
        self.created.append((storage, obj["metadata"]["name"]))
        return obj


def test_nodes_of_a_run_exist_and_are_ready_before_it_begins() -> None:
    world = World(Streams(0))
    NodeCreator(Access.of_world(world, None)).store(read_platform("2x4,16Gi").machines, START)

    nodes = [world.store.get(NODE, Key(name)) for name in ("node-0", "node-1")]
    assert [node["status"]["allocatable"]["cpu"] for node in nodes] == ["4", "4"]
    assert all({"Ready": "True"}.items() <= conditions(node).items() for node in nodes)


def conditions(node: dict[str, Any]) -> dict[str, str]:
    return {each["type"]: each["status"] for each in node["status"]["conditions"]}


def test_an_added_machine_is_a_request_of_the_administrator() -> None:
    clients = dict[str, RecordingClient]()
    access: Any = Access(lambda name: clients.setdefault(name, RecordingClient()), is_api=True)  # type: ignore[arg-type,return-value]

    NodeCreator(access).add(read_platform("1x4,16Gi").machines[0], START)

    assert {name: client.created for name, client in clients.items()} == {"kubectl": [(NODE, "node-0")]}


def test_system_pods_of_a_run_hold_their_requests_from_the_beginning() -> None:
    world, machines = World(Streams(0)), read_platform("1x4,16Gi").machines
    nodes, allocations = NodeCreator(Access.of_world(world, None)), NodeAllocations(world.store)
    (dns,) = SystemPod.parse_all([{"name": "coredns", "cpu": "3"}])
    nodes.store(machines, START)

    nodes.store_system_pods([dns], machines, allocations, START)

    shortage = allocations.allocate(["node-0"], dns.requests)
    assert shortage is not None
    assert shortage.resource == "cpu"
