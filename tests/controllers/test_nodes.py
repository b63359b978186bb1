"""Nodes: taints by condition, evictions by taint, pods of deleted nodes, nodes added by users."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.controllers.conftest import Cluster


def set_ready(world: Cluster, name: str, status: str) -> None:
    node = copy.deepcopy(world.get("nodes", name))
    for one in node["status"]["conditions"]:
        if one["type"] == "Ready":
            one["status"] = status
    world.api.update("nodes", node, world.now, subresource="status")


def taints(world: Cluster, name: str) -> list[tuple[str, str]]:
    return [(one["key"], one["effect"]) for one in world.get("nodes", name)["spec"].get("taints", [])]


def add_taint(world: Cluster, name: str, **taint: Any) -> None:  # noqa: ANN401
    world.change("nodes", name, taints=[{"key": "maintenance", "effect": "NoExecute", **taint}])


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


@pytest.mark.parametrize(("status", "key"), [("False", "not-ready"), ("Unknown", "unreachable")])
def test_a_node_that_is_not_ready_is_tainted_until_it_is(world: Cluster, status: str, key: str) -> None:
    set_ready(world, "node-0", status)
    world.run(1)
    full = f"node.kubernetes.io/{key}"
    assert taints(world, "node-0") == [(full, "NoSchedule"), (full, "NoExecute")]
    set_ready(world, "node-0", "True")
    world.run(1)
    assert taints(world, "node-0") == [(full, "NoExecute")], "that one goes when the monitor looks"
    world.run(5)
    assert taints(world, "node-0") == []


def test_a_cordoned_node_is_tainted_with_an_event(world: Cluster) -> None:
    world.change("nodes", "node-0", unschedulable=True)
    world.run(1)
    assert taints(world, "node-0") == [("node.kubernetes.io/unschedulable", "NoSchedule")]
    assert world.events("NodeNotSchedulable") == ["Node node-0 status is now: NodeNotSchedulable"]
    world.change("nodes", "node-0", unschedulable=False)
    world.run(1)
    assert taints(world, "node-0") == []


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


def test_pods_of_a_deleted_node_are_garbage_collected(world: Cluster) -> None:
    world.create("pods", world.pod("lost", nodeName="node-0"))
    world.run(1)
    world.delete("nodes", "node-0")
    world.run(58)
    assert len(world.pods()) == 1, "found lost by the look at 20.1 s, and given up by the one 40 s later"
    world.run(2)
    assert not world.pods()


def test_a_replica_set_replaces_the_pods_of_a_deleted_node(world: Cluster) -> None:
    world.create("deployments.apps", world.deployment(replicas=4))
    world.run(1)
    world.delete("nodes", "node-0")
    world.run(81)
    running = world.pods("Running")
    assert len(running) == 4
    assert all(pod["spec"]["nodeName"] != "node-0" for pod in running)


def test_pods_bound_to_a_missing_node_start_once_it_exists(world: Cluster) -> None:
    world.create("pods", world.pod("early", nodeName="late"))
    world.run(10)
    assert world.get("pods", "default/early")["status"]["phase"] == "Pending"
    world.create("nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "late"}, "spec": {}})
    world.run(1)
    assert world.get("pods", "default/early")["status"]["phase"] == "Running"
