"""The scheduler of a served cluster: node selection, and the messages of unschedulable pods."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.simulated_cluster import Cluster

from batkube.cluster.nodes.constraints import find_toleration


def node_of(world: Cluster, name: str) -> str | None:
    found: str | None = world.get("pods", f"default/{name}")["spec"].get("nodeName")
    return found


def why_not(world: Cluster, name: str) -> str:
    conditions = world.get("pods", f"default/{name}")["status"]["conditions"]
    (condition,) = [one for one in conditions if one["type"] == "PodScheduled"]
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    message: str = condition["message"]
    return message


def label(world: Cluster, node: str, **labels: str) -> None:
    found = copy.deepcopy(world.get("nodes", node))
    found["metadata"]["labels"] |= labels
    world.api.update("nodes", {**found, "spec": {**found["spec"], "podCIDR": node}}, world.now)


def test_pods_are_spread_over_the_nodes(world: Cluster) -> None:
    for number in range(8):
        world.create("pods", world.pod(f"p{number}"))
    world.run(1)
    nodes = [node_of(world, f"p{number}") for number in range(8)]
    assert sorted(nodes) == sorted([f"node-{number}" for number in range(4)] * 2)
    assert world.events("Scheduled")[0] == f"Successfully assigned default/p0 to {nodes[0]}"


def test_an_unschedulable_pod_has_kube_schedulers_message(world: Cluster) -> None:
    world.create("pods", world.pod("big", cpu="5"))
    world.run(1)
    assert why_not(world, "big") == (
        "0/4 nodes are available: 4 Insufficient cpu. "
        "no new claims to deallocate, preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling."
    )
    assert world.events("FailedScheduling") == [why_not(world, "big")]


def test_the_reasons_of_all_nodes_are_counted(world: Cluster) -> None:
    for number in range(4):
        world.create("pods", world.pod(f"p{number}", cpu="3"))
    world.change("nodes", "node-0", unschedulable=True)
    world.change("nodes", "node-1", taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}])
    label(world, "node-2", disk="ssd")
    world.run(1)
    world.create("pods", world.pod("picky", cpu="2", nodeSelector={"disk": "ssd"}))
    world.run(1)
    assert why_not(world, "picky") == (
        "0/4 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector, "
        "1 node(s) had untolerated taint(s), 1 node(s) were unschedulable. no new claims to deallocate, "
        "preemption: 0/4 nodes are available: 1 No preemption victims found for incoming pod, "
        "3 Preemption is not helpful for scheduling."
    )


def test_a_pending_pod_is_bound_once_capacity_is_free(make_world: type[Cluster]) -> None:
    world = make_world("1x1,1Gi")
    world.create("pods", world.pod("a", {"batkube.io/duration": "30s"}, restart="Never"))
    world.create("pods", world.pod("b"))
    world.run(20)
    assert node_of(world, "b") is None
    world.run(15)
    assert node_of(world, "b") == "node-0"


def test_without_nodes_a_pod_stays_pending(world: Cluster) -> None:
    for name in list(world.store.all("nodes")):
        world.delete("nodes", name)
    world.create("pods", world.pod("a"))
    world.run(1)
    assert node_of(world, "a") is None
    world.create("nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "new"}, "spec": {}})
    world.run(1)
    assert node_of(world, "a") == "new"


def affinity(key: str, operator: str, *values: str) -> dict[str, Any]:
    expression = {"key": key, "operator": operator, **({"values": list(values)} if values else {})}
    term = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}


@pytest.mark.parametrize(
    ("operator", "values", "allowed"),
    [
        ("In", ["2", "3"], {"node-2", "node-3"}),
        ("NotIn", ["2", "3"], {"node-0", "node-1"}),
        ("Exists", [], {"node-1", "node-2", "node-3"}),
        ("DoesNotExist", [], {"node-0"}),
        ("Gt", ["2"], {"node-3"}),
        ("Lt", ["2"], {"node-1"}),
    ],
)
def test_required_affinity_is_respected(world: Cluster, operator: str, values: list[str], allowed: set[str]) -> None:
    for number in range(1, 4):
        label(world, f"node-{number}", rack=str(number))
    for number in range(4):
        world.create("pods", world.pod(f"p{number}", cpu="100m", affinity=affinity("rack", operator, *values)))
    world.run(1)
    assert {node_of(world, f"p{number}") for number in range(4)} == allowed


def test_preferred_affinity_decides_among_nodes_that_fit(world: Cluster) -> None:
    label(world, "node-3", disk="ssd")
    preference = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 10, "preference": preference}]}
    world.create("pods", world.pod("a", affinity={"nodeAffinity": preferred}))
    world.run(1)
    assert node_of(world, "a") == "node-3"


def test_pods_of_another_scheduler_are_ignored(world: Cluster) -> None:
    world.create("pods", world.pod("a", schedulerName="mine"))
    world.run(1)
    assert node_of(world, "a") is None
    assert not world.events("FailedScheduling")


def test_without_our_scheduler_no_pod_is_bound(make_world: type[Cluster]) -> None:
    world = make_world("2x2,1Gi", scheduler=False)
    world.create("pods", world.pod("a"))
    world.run(5)
    assert node_of(world, "a") is None


def test_a_gated_pod_waits_for_its_gates(world: Cluster) -> None:
    world.create("pods", world.pod("a", schedulingGates=[{"name": "wait"}]))
    world.run(1)
    assert node_of(world, "a") is None
    world.change("pods", "default/a", schedulingGates=[])
    world.run(1)
    assert node_of(world, "a") is not None


def test_the_most_important_pod_goes_first(make_world: type[Cluster]) -> None:
    world = make_world("1x1,1Gi", scheduler=True)
    world.change("nodes", "node-0", unschedulable=True)
    world.create("pods", world.pod("low", priority=1))
    world.create("pods", world.pod("high", priority=10))
    world.run(1)
    world.change("nodes", "node-0", unschedulable=False)
    world.run(1)
    assert node_of(world, "high") == "node-0"
    assert node_of(world, "low") is None


def test_a_more_important_pod_preempts_the_least_important_ones(make_world: type[Cluster]) -> None:
    world = make_world("2x2,4Gi")
    for name, priority in (("a", 5), ("b", 1), ("c", 3), ("d", 3)):
        world.create("pods", world.pod(name, priority=priority, nodeName="node-0" if name in "ab" else "node-1"))
    world.run(1)
    world.create("pods", world.pod("urgent", priority=100))
    world.run(2)
    assert node_of(world, "urgent") == "node-0"
    assert sorted(pod["metadata"]["name"] for pod in world.pods()) == ["a", "c", "d", "urgent"]
    uid = world.get("pods", "default/urgent")["metadata"]["uid"]
    assert world.events("Preempted") == [f"Preempted by pod {uid} on node node-0"]


def test_preempted_capacity_is_reserved_for_the_preemptor(make_world: type[Cluster]) -> None:
    world = make_world("1x2,4Gi")
    world.create("pods", world.pod("old", {"batkube.io/stop-time": "10s"}, cpu="2", priority=1))
    world.run(1)
    world.create("pods", world.pod("urgent", cpu="2", priority=100))
    world.run(1)
    assert world.get("pods", "default/urgent")["status"]["nominatedNodeName"] == "node-0"
    world.create("pods", world.pod("modest", cpu="1", priority=50))
    world.run(15)
    assert node_of(world, "urgent") == "node-0"
    assert node_of(world, "modest") is None


def test_a_pod_with_preemption_policy_never_does_not_preempt(make_world: type[Cluster]) -> None:
    world = make_world("1x1,4Gi")
    world.create("pods", world.pod("old", priority=1))
    world.run(1)
    world.create("pods", world.pod("polite", priority=100, preemptionPolicy="Never"))
    world.run(1)
    assert why_not(world, "polite").endswith("preemption: not eligible due to preemptionPolicy=Never.")


@pytest.mark.parametrize(
    ("toleration", "accepts"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "gpu", "value": "yes"}, True),
        ({"key": "gpu", "operator": "Equal", "value": "no"}, False),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_a_toleration_accepts_a_taint(toleration: dict[str, str], accepts: bool) -> None:
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    assert (find_toleration([toleration], taint) is not None) == accepts


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 60), st.integers(0, 2)), min_size=1, max_size=25))
def test_no_node_is_ever_over_allocated_and_none_idle_while_a_pod_fits(plans: list[tuple[int, int, int]]) -> None:
    world = Cluster("3x4,16Gi")
    for number, (cpu, length, priority) in enumerate(plans):
        annotations = {"batkube.io/duration": f"{length}s"}
        pod = world.pod(f"p{number}", annotations, cpu=str(cpu), restart="Never", priority=priority)
        world.create("pods", pod)
        world.run(length / 10)
        used: dict[str, int] = {}
        for one in world.pods():
            if one["spec"].get("nodeName") and one["status"]["phase"] not in ("Succeeded", "Failed"):
                requested = int(one["spec"]["containers"][0]["resources"]["requests"]["cpu"])
                used[one["spec"]["nodeName"]] = used.get(one["spec"]["nodeName"], 0) + requested
        assert all(amount <= 4 for amount in used.values())
        waiting = [
            int(one["spec"]["containers"][0]["resources"]["requests"]["cpu"])
            for one in world.pods("Pending")
            if not one["spec"].get("nodeName")
        ]
        most_free = max(4 - used.get(f"node-{node}", 0) for node in range(3))
        assert all(requested > most_free for requested in waiting)
    world.run(3600)
    assert {one["status"]["phase"] for one in world.pods()} == {"Succeeded"}


def test_other_requests_are_answered_between_the_decisions(world: Cluster) -> None:
    """A round stops when its turn is over, and the next one considers the other pods."""
    world.world.agenda.start_turn = lambda: lambda: True
    for number in range(20):
        world.create("pods", world.pod(f"p{number}"))
    before = world.loop.executed
    world.run(1)

    assert sum(node_of(world, f"p{number}") is not None for number in range(20)) == 16
    assert why_not(world, "p19").startswith("0/4 nodes are available")
    assert world.loop.executed - before > 20
