"""Pod affinity, anti-affinity and topology spread."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from tests.simulated_cluster import Cluster

from batkube.policies.registry.catalogue import load_policy
from batkube.policies.runtime.policy_scheduler import PolicyChoice

ZONE = "topology.kubernetes.io/zone"


@pytest.fixture
def zones(world: Cluster) -> Cluster:
    """Two zones of two nodes each."""
    for number in range(4):
        node = copy.deepcopy(world.get("nodes", f"node-{number}"))
        node["metadata"]["labels"][ZONE] = "east" if number < 2 else "west"
        world.api.update("nodes", {**node, "spec": {**node["spec"], "podCIDR": str(number)}}, world.now)
    return world


def near(kind: str, app: str, key: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def create(world: Cluster, name: str, app: str, **spec: Any) -> str | None:  # noqa: ANN401
    pod = world.pod(name, cpu="100m", **spec)
    pod["metadata"]["labels"] = {"app": app}
    world.create("pods", pod)
    world.run(0.1)
    found: str | None = world.get("pods", f"default/{name}")["spec"].get("nodeName")
    return found


def why_not(world: Cluster, name: str) -> str:
    message: str = world.get("pods", f"default/{name}")["status"]["conditions"][0]["message"]
    return message


def test_affinity_puts_a_pod_near_others(zones: Cluster) -> None:
    create(zones, "db", "db", nodeName="node-3")
    found = create(zones, "web", "web", affinity=near("podAffinity", "db", ZONE))
    assert found in ("node-2", "node-3")
    assert create(zones, "close", "web", affinity=near("podAffinity", "db", "kubernetes.io/hostname")) == "node-3"


def test_without_a_matching_pod_a_pod_waits_unless_its_affinity_matches_itself(zones: Cluster) -> None:
    assert create(zones, "lonely", "web", affinity=near("podAffinity", "db", ZONE)) is None
    assert "4 node(s) didn't match pod affinity rules" in why_not(zones, "lonely")
    first = create(zones, "one", "peer", affinity=near("podAffinity", "peer", ZONE))
    second = create(zones, "two", "peer", affinity=near("podAffinity", "peer", ZONE))
    assert first is not None
    assert second is not None
    east = ("node-0", "node-1")
    assert (first in east) == (second in east)


def test_anti_affinity_keeps_pods_apart(zones: Cluster) -> None:
    affinity = near("podAntiAffinity", "web", "kubernetes.io/hostname")
    nodes = [create(zones, f"web-{number}", "web", affinity=affinity) for number in range(5)]
    assert sorted(node for node in nodes if node) == ["node-0", "node-1", "node-2", "node-3"]
    assert nodes[4] is None
    assert "4 node(s) didn't match pod anti-affinity rules" in why_not(zones, "web-4")


def test_anti_affinity_of_an_existing_pod_is_respected(zones: Cluster) -> None:
    create(zones, "grumpy", "grumpy", nodeName="node-0", affinity=near("podAntiAffinity", "web", ZONE))
    assert create(zones, "web", "web") in ("node-2", "node-3")
    for name in ("node-2", "node-3"):
        zones.change("nodes", name, unschedulable=True)
    assert create(zones, "late", "web") is None
    assert "2 node(s) didn't satisfy existing pods anti-affinity rules" in why_not(zones, "late")
    zones.delete("pods", "default/grumpy")
    zones.run(1)
    assert zones.get("pods", "default/late")["spec"].get("nodeName") in ("node-0", "node-1")


def test_a_spread_stays_even(zones: Cluster) -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    nodes = [create(zones, f"web-{number}", "web", topologySpreadConstraints=[constraint]) for number in range(4)]
    assert sorted(node in ("node-0", "node-1") for node in nodes) == [False, False, True, True]
    for name in ("node-2", "node-3"):
        zones.change("nodes", name, unschedulable=True)
    assert create(zones, "a", "web", topologySpreadConstraints=[constraint]) in ("node-0", "node-1")
    assert create(zones, "b", "web", topologySpreadConstraints=[constraint]) is None
    assert "2 node(s) didn't match pod topology spread constraints" in why_not(zones, "b")
    heeding = {**constraint, "nodeTaintsPolicy": "Honor"}
    assert create(zones, "c", "web", topologySpreadConstraints=[heeding]) in ("node-0", "node-1")


def test_policies_respect_pod_affinity() -> None:
    world = Cluster("2x4,16Gi", scheduler=PolicyChoice(load_policy("first-fit", {}), random.Random(0)))
    affinity = near("podAntiAffinity", "web", "kubernetes.io/hostname")
    nodes = [create(world, f"web-{number}", "web", affinity=affinity) for number in range(3)]
    assert nodes == ["node-0", "node-1", None]
