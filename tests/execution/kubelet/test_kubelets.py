"""The lifecycle of a pod on a served node, as its status and events show it."""

from __future__ import annotations

from tests.execution.pod_status import JOB_LIKE, conditions, status
from tests.simulated_cluster import Cluster

from batkube.execution.latencies.delays import Delays, Latencies
from batkube.kernel.distributions import parse_distribution
from batkube.kernel.streams import Streams


def test_a_bound_pod_runs_and_has_an_address(world: Cluster) -> None:
    world.create("pods", world.pod("a"))
    world.run(1)
    found = status(world)
    assert found["phase"] == "Running"
    assert found["podIP"].startswith("10.")
    assert (
        found["hostIP"]
        == world.get("nodes", world.get("pods", "default/a")["spec"]["nodeName"])["status"]["addresses"][0]["address"]
    )
    assert set(conditions(world).values()) == {"True"}
    (container,) = found["containerStatuses"]
    assert container["ready"] is True
    assert "running" in container["state"]
    assert world.events("Started") == ["Started container app"]


def test_a_starting_pod_shows_container_creating(world: Cluster) -> None:
    seen = []
    world.store.subscribe("pods", lambda batch, now: seen.extend(pod["status"] for pod in batch.objects))
    world.create("pods", world.pod("a"))
    world.run(1)
    waiting = next(one for one in seen if one.get("containerStatuses"))
    assert waiting["phase"] == "Pending"
    assert waiting["containerStatuses"][0]["state"] == {"waiting": {"reason": "ContainerCreating"}}


def test_a_finished_pod_frees_its_capacity(make_world: type[Cluster]) -> None:
    world = make_world("1x1,1Gi")
    world.create("pods", world.pod("a", {"batkube.io/duration": "30s"}, **JOB_LIKE))
    world.create("pods", world.pod("b", {"batkube.io/duration": "30s"}, **JOB_LIKE))
    world.run(20)
    assert status(world, "b")["phase"] == "Pending"
    world.run(20)
    assert status(world, "b")["phase"] == "Running"


def test_a_full_node_rejects_a_bound_pod(make_world: type[Cluster]) -> None:
    world = make_world("1x2,1Gi")
    world.create("pods", world.pod("a", cpu="3", nodeName="node-0"))
    world.run(1)
    found = status(world)
    assert (found["phase"], found["reason"]) == ("Failed", "OutOfcpu")
    reason = "Node didn't have enough resource: cpu, requested: 3000, used: 0, capacity: 2000"
    assert found["message"] == f"Pod was rejected: {reason}"
    assert world.events("OutOfcpu") == [reason]


def test_a_deleted_pod_is_stopped_and_removed(world: Cluster) -> None:
    world.create("pods", world.pod("a"))
    world.run(1)
    world.delete("pods", "default/a")
    world.run(0.1)
    assert not world.pods()
    assert world.events("Killing") == ["Stopping container app"]


def test_addresses_are_reused(world: Cluster) -> None:
    world.create("pods", world.pod("a"))
    world.run(1)
    address = status(world)["podIP"]
    world.delete("pods", "default/a")
    world.run(1)
    world.create("pods", world.pod("a"))
    world.run(1)
    assert status(world)["podIP"] == address


def test_delays_take_effect_and_an_image_is_pulled_once_per_node(make_world: type[Cluster]) -> None:
    latencies = Latencies(pull=parse_distribution("constant:5"), report=parse_distribution("constant:2"))
    world = make_world("1x4,16Gi", delays=Delays(latencies, Streams(0)))
    world.create("pods", world.pod("a", {"batkube.io/duration": "10s"}, **JOB_LIKE))
    world.run(4)
    assert status(world)["containerStatuses"][0]["state"] == {"waiting": {"reason": "ContainerCreating"}}
    world.run(2)
    assert status(world)["phase"] == "Running"
    world.create("pods", world.pod("b"))
    world.run(0.1)
    assert status(world, "b")["phase"] == "Running"
    world.run(10)
    assert status(world)["phase"] == "Running"
    world.run(2)
    assert status(world)["phase"] == "Succeeded"
