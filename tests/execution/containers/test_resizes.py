"""In-place resizes of running pods, as seen in their statuses, on their nodes and by schedulers.

Reasons, messages and the order of steps are those of the kubelet's source (v1.34.4: pkg/kubelet/allocation).
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.simulated_cluster import Cluster

from batkube.cluster.store import KubeObject
from batkube.kernel.instants import seconds
from batkube.kernel.quantities import CPU
from batkube.policies.registry.catalogue import load_policy
from batkube.policies.runtime.policy_scheduler import PolicyChoice
from batkube.workloads.container_rules.rules import ContainerRule
from batkube.workloads.container_rules.usage_curves import UsageCurve

MIB = 1 << 20


def resize(world: Cluster, name: str = "a", *, limits: dict[str, str] | None = None, **requests: str) -> None:
    """Request new requests and limits for the only container of a pod."""
    (container,) = world.get("pods", f"default/{name}")["spec"]["containers"]
    resources = {**container["resources"], "requests": {**container["resources"]["requests"], **requests}}
    if limits is not None:
        resources["limits"] = limits
    world.change("pods", f"default/{name}", containers=[{**container, "resources": resources}])


def pod(world: Cluster, name: str = "a", cpu: str = "1", **more: Any) -> KubeObject:  # noqa: ANN401
    made = world.pod(name, cpu=cpu)
    made["spec"]["containers"][0] |= more
    return made


def container(world: Cluster, name: str = "a") -> KubeObject:
    found: KubeObject = world.get("pods", f"default/{name}")["status"]["containerStatuses"][0]
    return found


def pending(world: Cluster, name: str = "a") -> tuple[str, str] | None:
    """Return reason and message of a pending resize."""
    for one in world.get("pods", f"default/{name}")["status"]["conditions"]:
        if one["type"] == "PodResizePending":
            return one["reason"], one["message"]
    return None


def phase(world: Cluster, name: str) -> str:
    found: str = world.get("pods", f"default/{name}")["status"]["phase"]
    return found


@pytest.fixture
def full_cluster(make_world: type[Cluster]) -> Cluster:
    """A node of four CPUs with two pods, a and b, of two CPUs each."""
    world = make_world("1x4,16Gi")
    for name in ("a", "b"):
        world.create("pods", pod(world, name, cpu="2"))
    world.run(1)
    return world


def test_a_running_container_reports_its_resources(world: Cluster) -> None:
    world.create("pods", pod(world))
    world.run(1)
    assert container(world)["resources"] == {"requests": {CPU: "1"}}
    assert container(world)["allocatedResources"] == {CPU: "1"}


def test_a_container_is_resized_without_a_restart(world: Cluster) -> None:
    world.create("pods", pod(world))
    world.run(1)
    started = container(world)["state"]
    seen: list[list[str]] = []
    world.store.subscribe(
        "pods",
        lambda batch, now: seen.extend([one["type"] for one in each["status"]["conditions"]] for each in batch.objects),
    )

    resize(world, cpu="2")
    world.run(1)

    assert container(world)["resources"]["requests"] == container(world)["allocatedResources"] == {CPU: "2"}
    assert (container(world)["state"], container(world)["restartCount"]) == (started, 0)
    assert any("PodResizeInProgress" in types for types in seen)
    assert "PodResizeInProgress" not in seen[-1]
    message = 'Pod resize completed: {"containers":[{"name":"app","resources":{"requests":{"cpu":"2"}}}]}'
    assert world.events("ResizeCompleted") == [message]
    assert world.get("pods", "default/a")["status"]["observedGeneration"] == 2


def test_a_resize_changes_the_free_capacity_of_the_node(make_world: type[Cluster]) -> None:
    world = make_world("1x4,16Gi")
    world.create("pods", pod(world, "a", cpu="3"))
    world.create("pods", pod(world, "b", cpu="3"))
    world.run(1)
    assert phase(world, "b") == "Pending"

    resize(world, "a", cpu="1")
    world.run(10)
    assert phase(world, "b") == "Running"

    resize(world, "b", cpu="2")
    resize(world, "a", cpu="2")
    world.run(1)
    world.create("pods", pod(world, "c", cpu="1"))
    world.run(10)
    assert phase(world, "c") == "Pending"


def test_a_deferred_resize_waits_until_a_pod_is_deleted(full_cluster: Cluster) -> None:
    resize(full_cluster, "a", cpu="3")
    full_cluster.run(1)
    message = "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000"
    assert pending(full_cluster) == ("Deferred", message)
    assert container(full_cluster)["allocatedResources"] == {CPU: "2"}

    full_cluster.delete("pods", "default/b")
    full_cluster.run(1)
    assert pending(full_cluster) is None
    assert container(full_cluster)["allocatedResources"] == {CPU: "3"}


def test_a_deferred_resize_is_retried_when_another_pod_shrinks(full_cluster: Cluster) -> None:
    resize(full_cluster, "a", cpu="3")
    full_cluster.run(1)
    resize(full_cluster, "b", cpu="1")
    full_cluster.run(1)

    assert container(full_cluster)["allocatedResources"] == {CPU: "3"}


def test_a_deferred_resize_is_retried_three_minutes_after_a_pod_finished(make_world: type[Cluster]) -> None:
    world = make_world("1x4,16Gi")
    world.create("pods", pod(world, "a", cpu="2"))
    world.create("pods", world.pod("b", {"batkube.io/duration": "30s"}, cpu="2", restart="Never"))
    world.run(1)

    resize(world, "a", cpu="3")
    world.run(170)
    assert pending(world) is not None
    world.run(15)
    assert pending(world) is None


def test_an_infeasible_resize_is_not_counted_by_schedulers(make_world: type[Cluster]) -> None:
    world = make_world("1x4,16Gi")
    world.create("pods", pod(world, "a", cpu="2"))
    world.run(1)

    resize(world, "a", cpu="5")
    world.run(1)
    assert pending(world) == ("Infeasible", "Node didn't have enough capacity: cpu, requested: 5000, capacity: 4000")

    world.create("pods", pod(world, "b", cpu="2"))
    world.run(1)
    assert phase(world, "b") == "Running"


def test_the_scheduler_reserves_capacity_for_deferred_resizes(full_cluster: Cluster) -> None:
    resize(full_cluster, "a", cpu="4")
    full_cluster.delete("pods", "default/b")
    full_cluster.create("pods", pod(full_cluster, "c", cpu="1"))
    full_cluster.run(20)

    assert container(full_cluster)["allocatedResources"] == {CPU: "4"}
    assert phase(full_cluster, "c") == "Pending"


def test_a_withdrawn_resize_is_no_longer_pending(make_world: type[Cluster]) -> None:
    world = make_world("1x4,16Gi")
    world.create("pods", pod(world, "a", cpu="2"))
    world.run(1)
    resize(world, "a", cpu="5")
    world.run(1)
    resize(world, "a", cpu="2")
    world.run(1)
    assert pending(world) is None
    assert world.events("ResizeCompleted") == []


def test_the_resize_of_the_pod_with_higher_priority_comes_first(make_world: type[Cluster]) -> None:
    world = make_world("1x4,16Gi")
    for name, priority in (("low", 0), ("high", 10), ("other", 0)):
        made = pod(world, name, cpu="1")
        made["spec"]["priority"] = priority
        world.create("pods", made)
    world.create("pods", pod(world, "last", cpu="1"))
    world.run(1)
    resize(world, "low", cpu="2")
    world.run(1)
    resize(world, "high", cpu="2")
    world.run(1)

    world.delete("pods", "default/other")
    world.run(1)

    assert pending(world, "high") is None
    assert pending(world, "low") is not None


def test_the_resize_policy_can_require_a_restart(world: Cluster) -> None:
    policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
    world.create("pods", pod(world, resizePolicy=policy))
    world.run(1)

    resize(world, cpu="2")
    world.run(1)
    assert container(world)["restartCount"] == 0
    resize(world, memory="1Gi")
    world.run(1)

    assert container(world)["restartCount"] == 1
    assert container(world)["resources"]["requests"] == {CPU: "2", "memory": "1Gi"}
    assert world.events("Killing") == ["Container app resize requires restart"]


LEAK = UsageCurve(((seconds(0), 0), (seconds(100), 100 * MIB)))


def test_raising_the_limit_in_time_prevents_an_oom_kill(make_world: type[Cluster]) -> None:
    world = make_world("1x4,16Gi", rules=[ContainerRule("", image="app", memory=LEAK)])
    resources = {"requests": {CPU: "1", "memory": "50Mi"}, "limits": {"memory": "50Mi"}}
    world.create("pods", pod(world, resources=resources))
    world.run(40)
    resize(world, limits={"memory": "80Mi"})
    world.run(30)
    assert container(world)["restartCount"] == 0
    world.run(20)
    assert container(world)["lastState"]["terminated"]["reason"] == "OOMKilled"


def test_a_memory_limit_is_not_lowered_below_usage(make_world: type[Cluster]) -> None:
    falls = UsageCurve(((seconds(0), 60 * MIB), (seconds(30), 60 * MIB), (seconds(30), 10 * MIB)))
    world = make_world("1x4,16Gi", rules=[ContainerRule("", image="app", memory=falls)])
    resources = {"requests": {CPU: "1"}, "limits": {"memory": "80Mi"}}
    world.create("pods", pod(world, resources=resources))
    world.run(10)

    resize(world, limits={"memory": "50Mi"})
    world.run(5)
    progress = next(
        one for one in world.get("pods", "default/a")["status"]["conditions"] if one["type"] == "PodResizeInProgress"
    )
    limit, use = 50 * MIB, 60 * MIB
    assert progress["reason"] == "Error"
    assert progress["message"] == (
        f"cannot decrease memory limits: [attempting to set pod memory limit ({limit}) below current usage ({use}), "
        f'attempting to set container "app" memory limit ({limit}) below current usage ({use})]'
    )
    assert container(world)["resources"]["limits"] == {"memory": "80Mi"}

    world.run(30)
    assert container(world)["resources"]["limits"] == {"memory": "50Mi"}
    assert container(world)["restartCount"] == 0


@pytest.mark.parametrize("wanted", ["1", "3"])
def test_our_policies_count_the_resources_after_a_resize(make_world: type[Cluster], wanted: str) -> None:
    world = make_world("1x4,16Gi", scheduler=PolicyChoice(load_policy("first-fit", {}), random.Random(0)))
    world.create("pods", pod(world, "a", cpu="2"))
    world.run(1)
    resize(world, "a", cpu=wanted)
    world.run(1)
    world.create("pods", pod(world, "b", cpu="3"))
    world.create("pods", pod(world, "c", cpu="2"))
    world.run(10)
    assert [phase(world, "b"), phase(world, "c")] == (["Running", "Pending"] if wanted == "1" else ["Pending"] * 2)
