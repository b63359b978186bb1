"""Host ports: a pod whose host port is in use is rejected by the kubelet, and not placed by the scheduler."""

from __future__ import annotations

from typing import Any

from tests.execution.pod_status import status
from tests.simulated_cluster import Cluster


def with_port(world: Cluster, name: str, address: str = "", node: str = "", **spec: Any) -> dict[str, Any]:  # noqa: ANN401
    pod = world.pod(name, cpu="100m", **({"nodeName": node} if node else {}), **spec)
    port = {"containerPort": 80, "hostPort": 8080, "protocol": "TCP", **({"hostIP": address} if address else {})}
    pod["spec"]["containers"][0]["ports"] = [port]
    return pod


def test_a_pod_with_a_host_port_in_use_is_rejected(world: Cluster) -> None:
    node = next(iter(world.store.all("nodes")))
    world.create("pods", with_port(world, "first", node=node))
    world.run(1)
    world.create("pods", with_port(world, "second", "10.0.0.1", node))
    world.run(1)
    refused = status(world, "second")
    assert (refused["phase"], refused["reason"]) == ("Failed", "NodePorts")
    assert refused["message"] == (
        "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
    )
    world.delete("pods", "default/first")
    world.run(1)
    world.create("pods", with_port(world, "third", node=node))
    world.run(1)
    assert status(world, "third")["phase"] == "Running"


def test_two_addresses_of_a_node_have_the_same_port(world: Cluster) -> None:
    node = next(iter(world.store.all("nodes")))
    for number in (1, 2):
        world.create("pods", with_port(world, f"p{number}", f"10.0.0.{number}", node))
    world.run(1)
    assert len(world.pods("Running")) == 2


def test_a_pod_stays_pending_if_no_node_has_its_host_port_free(world: Cluster) -> None:
    for number in range(5):
        world.create("pods", with_port(world, f"p{number}"))
    world.run(2)
    assert len({pod["spec"]["nodeName"] for pod in world.pods("Running")}) == 4
    assert status(world, "p4")["conditions"][0]["message"].startswith(
        "0/4 nodes are available: 4 node(s) didn't have free ports for the requested pod ports."
    )
