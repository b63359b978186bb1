"""Nodes of the platform are registered as a kubelet does, and nodes added by users become ready."""

from __future__ import annotations

from tests.simulated_cluster import Cluster


def taints(world: Cluster, name: str) -> list[tuple[str, str]]:
    return [(one["key"], one["effect"]) for one in world.get("nodes", name)["spec"].get("taints", [])]


def test_a_node_of_the_platform_is_registered_as_a_kubelet_would(world: Cluster) -> None:
    node = world.get("nodes", "node-0")
    assert node["status"]["allocatable"] == {"cpu": "4", "memory": "16Gi", "pods": "110"}
    assert [one["type"] for one in node["status"]["addresses"]] == ["InternalIP", "Hostname"]
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "node-0"
    assert node["status"]["nodeInfo"]["kubeletVersion"].startswith("v1.34")


def test_an_added_node_becomes_ready_and_runs_pods(world: Cluster) -> None:
    spec = {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]}
    world.create("nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "extra"}, "spec": spec})
    world.run(1)
    assert taints(world, "extra") == []
    world.create("pods", world.pod("here", nodeSelector={"kubernetes.io/hostname": "extra"}))
    world.run(1)
    assert world.get("pods", "default/here")["status"]["phase"] == "Running"
