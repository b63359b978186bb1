"""Every policy can schedule a served cluster, and respects constraints that it does not know itself."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from tests.simulated_cluster import Cluster

import batkube
from batkube.kernel.instants import instant_of, seconds
from batkube.policies.registry.catalogue import load_policy, policy_names
from batkube.policies.runtime.policy_scheduler import PolicyChoice


def world_with(policy: str, platform: str = "2x2,4Gi") -> Cluster:
    return Cluster(platform, scheduler=PolicyChoice(load_policy(policy, {}), random.Random(0)))


def node_of(world: Cluster, name: str) -> str | None:
    node: str | None = world.get("pods", f"default/{name}")["spec"].get("nodeName")
    return node


@pytest.mark.parametrize("policy", [name for name, _ in policy_names()])
def test_every_policy_runs_pods_to_completion(policy: str) -> None:
    world = world_with(policy)
    for number in range(10):
        pod = world.pod(f"p{number}", {"batkube.io/duration": "30s", "batkube.io/walltime": "60s"}, restart="Never")
        world.create("pods", pod)
    world.run(200)
    assert {pod["status"]["phase"] for pod in world.pods()} == {"Succeeded"}


def test_the_policy_decides_where_pods_go() -> None:
    packed, spread = world_with("best-fit"), world_with("worst-fit")
    for world in (packed, spread):
        for name in ("a", "b"):
            world.create("pods", world.pod(name))
        world.run(1)
    assert node_of(packed, "a") == node_of(packed, "b")
    assert node_of(spread, "a") != node_of(spread, "b")


def test_policies_respect_selectors_and_taints() -> None:
    world = world_with("first-fit")
    world.create("pods", world.pod("picky", nodeSelector={"kubernetes.io/hostname": "node-1"}))
    world.change("nodes", "node-0", taints=[{"key": "gpu", "effect": "NoSchedule"}])
    world.create("pods", world.pod("plain"))
    world.run(1)
    assert node_of(world, "picky") == node_of(world, "plain") == "node-1"


def test_pending_pods_have_a_reason() -> None:
    world = world_with("fcfs", "1x2,4Gi")
    world.create("pods", world.pod("big", cpu="3"))
    world.create("pods", world.pod("small"))
    world.run(1)
    messages = {
        name: world.get("pods", f"default/{name}")["status"]["conditions"][0]["message"] for name in ("big", "small")
    }
    assert messages["big"] == "0/1 nodes are available: 1 Insufficient cpu."
    assert messages["small"] == "the policy Fcfs has not started it yet"


def test_a_new_node_is_used() -> None:
    world = world_with("fcfs", "1x1,4Gi")
    for name in ("a", "b"):
        world.create("pods", world.pod(name))
    world.run(1)
    assert node_of(world, "b") is None
    world.create("nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "extra"}, "spec": {}})
    world.run(1)
    assert node_of(world, "b") == "extra"


def test_an_evicting_policy_gets_the_capacity_once_the_pod_is_deleted() -> None:
    world = world_with("priority", "1x1,4Gi")
    world.create("pods", world.pod("low", {"batkube.io/stop-time": "5s"}, priority=1))
    world.run(1)
    world.create("pods", world.pod("high", priority=10))
    world.run(3)
    assert node_of(world, "high") is None
    world.run(5)
    assert node_of(world, "high") == "node-0"


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "sjf", "priority", "best-fit", "worst-fit"])
def test_the_same_pods_go_to_the_same_nodes_in_a_run_and_in_a_served_cluster(policy: str, tmp_path: Path) -> None:
    draw = random.Random(7).randint
    jobs = sorted((draw(0, 100), draw(1, 20), draw(0, 20), draw(1, 4)) for _ in range(30))
    world = world_with(policy, "2x4,4Gi")
    begin = world.now
    for number, (at, lasts, slack, cpu) in enumerate(jobs):
        world.run((begin + seconds(at) - world.now) / seconds(1))
        annotations = {"batkube.io/duration": f"{lasts}s", "batkube.io/walltime": f"{lasts + slack + 1}s"}
        world.create("pods", world.pod(f"w0-{number}", annotations, restart="Never", cpu=str(cpu)))
    world.run(400)
    served = {
        pod["metadata"]["name"]: (
            pod["spec"]["nodeName"],
            (instant_of(pod["status"]["startTime"]) - begin) // seconds(1),
        )
        for pod in world.pods()
    }

    entries = [
        {"id": number, "subtime": at, "res": 1, "profile": str(number), "walltime": lasts + slack + 1}
        for number, (at, lasts, slack, _) in enumerate(jobs)
    ]
    profiles = {
        str(number): {"type": "delay", "delay": lasts, "cpu": str(cpu)}
        for number, (_, lasts, _, cpu) in enumerate(jobs)
    }
    workload = tmp_path / "w.json"
    workload.write_text(json.dumps({"nb_res": 2, "jobs": entries, "profiles": profiles}))
    run = batkube.run(
        workload=workload,
        platform="2x4,4Gi",
        scheduler=f"policy:{policy}",
        resources="requests",
        out=tmp_path / "out",
    )
    rows = {str(row["pod"]): (row["node"], int(row["started"])) for _, row in run.pods.iterrows()}

    assert served == rows
