"""Pods bound to nodes without a running kubelet."""

from __future__ import annotations

from tests.simulated_cluster import Cluster


def test_pods_bound_to_a_missing_node_start_once_it_exists(world: Cluster) -> None:
    world.create("pods", world.pod("early", nodeName="late"))
    world.run(10)
    assert world.get("pods", "default/early")["status"]["phase"] == "Pending"
    world.create("nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "late"}, "spec": {}})
    world.run(1)
    assert world.get("pods", "default/early")["status"]["phase"] == "Running"
