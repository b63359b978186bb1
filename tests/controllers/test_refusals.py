"""Kubelets reject and delay pods as real ones do: host ports in use, missing images, invalid paths, deadlines."""

from __future__ import annotations

from typing import Any

import pytest
from tests.controllers.conftest import Cluster

from batkube.workloads.container_rules.rules import ContainerRule


def status(world: Cluster, name: str) -> dict[str, Any]:
    return dict(world.get("pods", f"default/{name}")["status"])


def waiting(world: Cluster, name: str) -> dict[str, Any]:
    return dict(status(world, name)["containerStatuses"][0]["state"]["waiting"])


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


def test_a_missing_image_is_pulled_with_back_off(make_world: type[Cluster]) -> None:
    world = make_world("1x4,16Gi", rules=[ContainerRule("rules.yaml: [0]", image="*:404", pull_fails=True)])
    pod = world.pod("lost")
    pod["spec"]["containers"][0]["image"] = "web:404"
    world.create("pods", pod)
    world.run(0.5)
    assert waiting(world, "lost")["reason"] == "ErrImagePull"
    world.run(2)
    assert waiting(world, "lost")["reason"] == "ImagePullBackOff"
    assert status(world, "lost")["phase"] == "Pending"
    assert status(world, "lost")["containerStatuses"][0]["ready"] is False
    world.run(30)
    pulls = [one for one in world.store.all("events").values() if one["reason"] == "Pulling"]
    assert sum(one.get("count", 1) for one in pulls) == 3, "at 0, 10 and 30 s"


@pytest.mark.parametrize(("value", "is_fine"), [("..", False), ("/tmp", False), ("good", True)])
def test_an_invalid_sub_path_keeps_a_container_waiting(world: Cluster, value: str, is_fine: bool) -> None:
    pod = world.pod("p", {"path": value}, volumes=[{"name": "v", "emptyDir": {}}])
    container = pod["spec"]["containers"][0]
    field = {"fieldRef": {"fieldPath": "metadata.annotations['path']"}}
    container["env"] = [{"name": "WHERE", "valueFrom": field}]
    container["volumeMounts"] = [{"name": "v", "mountPath": "/v", "subPathExpr": "$(WHERE)"}]
    world.create("pods", pod)
    world.run(1)
    assert status(world, "p")["phase"] == ("Running" if is_fine else "Pending")
    if not is_fine:
        assert waiting(world, "p")["reason"] == "CreateContainerConfigError"
        stuck = world.get("pods", "default/p")
        annotated = {**stuck["metadata"], "annotations": {"path": "better"}}
        world.api.update("pods", {**stuck, "metadata": annotated}, world.now)
        world.run(1)
        assert status(world, "p")["phase"] == "Running"


def test_a_deadline_may_be_set_and_lowered_while_a_pod_runs(world: Cluster) -> None:
    world.create("pods", world.pod("p"))
    world.run(5)
    world.change("pods", "default/p", activeDeadlineSeconds=60)
    world.run(20)
    assert status(world, "p")["phase"] == "Running"
    world.change("pods", "default/p", activeDeadlineSeconds=30)
    world.run(4)
    assert status(world, "p")["phase"] == "Running"
    world.run(2)
    assert (status(world, "p")["phase"], status(world, "p")["reason"]) == ("Failed", "DeadlineExceeded")


def test_an_ephemeral_container_runs_and_does_not_affect_the_pod(world: Cluster) -> None:
    world.create("pods", world.pod("p", {"batkube.io/duration": "60s"}, restart="Never"))
    world.run(5)
    added = [{"name": "brief", "image": "busybox", "command": ["sh", "-c", "sleep 3; exit 4"]}]
    world.change("pods", "default/p", ephemeralContainers=added)
    world.run(1)
    (one,) = status(world, "p")["ephemeralContainerStatuses"]
    assert "running" in one["state"]
    world.change("pods", "default/p", ephemeralContainers=[*added, {"name": "shell", "image": "busybox"}])
    world.run(5)
    first, second = status(world, "p")["ephemeralContainerStatuses"]
    assert first["state"]["terminated"]["exitCode"] == 4
    assert "running" in second["state"]
    world.run(60)
    assert status(world, "p")["phase"] == "Succeeded"


@pytest.mark.parametrize("restart", ["Always", "Never"])
def test_a_new_image_restarts_a_container_under_any_restart_policy(world: Cluster, restart: str) -> None:
    """The container restarts from the beginning; other containers of the pod are unaffected."""
    pod = world.pod("p", {"batkube.io/duration": "60s"}, restart=restart)
    (first,) = pod["spec"]["containers"]
    pod["spec"]["containers"] = [first, {**first, "name": "beside"}]
    world.create("pods", pod)
    world.run(40)
    changed = [{**first, "image": "app:2"}, {**first, "name": "beside"}]
    world.change("pods", "default/p", containers=changed)
    world.run(1)
    one, beside = status(world, "p")["containerStatuses"]
    assert (one["image"], one["restartCount"], beside["restartCount"]) == ("app:2", 1, 0)
    assert one["lastState"]["terminated"]["exitCode"] == 143
    assert world.events("Killing") == [f"Container {first['name']} definition changed, will be restarted"]
    world.run(25)
    one, beside = status(world, "p")["containerStatuses"]
    assert "running" in one["state"], "it runs for a minute from when it was started anew"
    assert ("terminated" in beside["state"]) == (restart == "Never")


def test_a_container_in_back_off_restarts_at_once_with_a_new_image(world: Cluster) -> None:
    world.create("pods", world.pod("p", {"batkube.io/duration": "1s", "batkube.io/exit-code": "1"}))
    world.run(5)
    assert waiting(world, "p")["reason"] == "CrashLoopBackOff"
    (container,) = world.get("pods", "default/p")["spec"]["containers"]
    world.change("pods", "default/p", containers=[{**container, "image": "app:2"}])
    world.run(0.5)
    assert status(world, "p")["containerStatuses"][0]["image"] == "app:2"
    assert "running" in status(world, "p")["containerStatuses"][0]["state"]
