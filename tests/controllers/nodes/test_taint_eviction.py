"""NoExecute taints evict pods after their toleration time."""

from __future__ import annotations

from typing import Any

from tests.simulated_cluster import Cluster


def add_taint(world: Cluster, name: str, **taint: Any) -> None:  # noqa: ANN401
    world.change("nodes", name, taints=[{"key": "maintenance", "effect": "NoExecute", **taint}])


def test_a_no_execute_taint_evicts_pods_after_their_toleration(world: Cluster) -> None:
    for name, tolerations in (
        ("none", []),
        ("short", [{"key": "maintenance", "operator": "Exists", "tolerationSeconds": 60}]),
        ("ever", [{"operator": "Exists"}]),
    ):
        world.create("pods", world.pod(name, nodeName="node-0", tolerations=tolerations))
    world.run(1)
    add_taint(world, "node-0")
    world.run(5)
    assert sorted(pod["metadata"]["name"] for pod in world.pods()) == ["ever", "short"]
    world.run(60)
    assert [pod["metadata"]["name"] for pod in world.pods()] == ["ever"]
    assert world.events("TaintManagerEviction") == [
        "Marking for deletion Pod default/none",
        "Marking for deletion Pod default/short",
    ]


def test_a_taint_removed_in_time_evicts_no_pod(world: Cluster) -> None:
    tolerations = [{"key": "maintenance", "operator": "Exists", "tolerationSeconds": 60}]
    world.create("pods", world.pod("short", nodeName="node-0", tolerations=tolerations))
    world.run(1)
    add_taint(world, "node-0")
    world.run(30)
    world.change("nodes", "node-0", taints=[])
    world.run(60)
    assert world.get("pods", "default/short")["status"]["phase"] == "Running"
    assert world.events("TaintManagerEviction") == ["Cancelling deletion of Pod default/short"]
