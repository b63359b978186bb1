"""Rolling updates of DaemonSets, with and without a surge (Kubernetes: pkg/controller/daemon/update.go)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.controllers.apps.test_daemon_sets import daemon_set

if TYPE_CHECKING:
    from conftest import Cluster


def slow_daemon_set(world: Cluster, image: str, **limits: int | str) -> dict[str, Any]:
    """Return a DaemonSet whose pods become ready after ten seconds."""
    manifest = daemon_set(world, image)
    probe = {"initialDelaySeconds": 10, "exec": {"command": ["true"]}}
    manifest["spec"]["template"]["spec"]["containers"][0]["readinessProbe"] = probe
    manifest["spec"]["updateStrategy"]["rollingUpdate"] |= limits
    return manifest


def images(world: Cluster) -> list[tuple[str, str]]:
    """Return node and image of each pod that is not being deleted."""
    alive = [pod for pod in world.pods() if "deletionTimestamp" not in pod["metadata"]]
    return sorted((pod["spec"].get("nodeName", ""), pod["spec"]["containers"][0]["image"]) for pod in alive)


def test_a_new_template_is_rolled_out_one_node_at_a_time(world: Cluster) -> None:
    world.create("daemonsets.apps", slow_daemon_set(world, "agent:1"))
    world.run(20)

    world.change("daemonsets.apps", "default/agent", template=slow_daemon_set(world, "agent:2")["spec"]["template"])
    updated = []
    for _ in range(4):
        world.run(5)
        updated.append(world.get("daemonsets.apps", "default/agent")["status"].get("updatedNumberScheduled", 0))
        world.run(5.1)

    assert updated == [1, 2, 3, 4]


def test_with_a_surge_the_old_pod_is_deleted_once_the_new_one_is_available(
    world: Cluster,
) -> None:
    limits = {"maxSurge": 2, "maxUnavailable": 0}
    world.create("daemonsets.apps", slow_daemon_set(world, "agent:1", **limits))
    world.run(20)

    world.change("daemonsets.apps", "default/agent", template=slow_daemon_set(world, "agent:2")["spec"]["template"])
    world.run(5)
    assert images(world) == [
        ("node-0", "agent:1"),
        ("node-0", "agent:2"),
        ("node-1", "agent:1"),
        ("node-1", "agent:2"),
        ("node-2", "agent:1"),
        ("node-3", "agent:1"),
    ]
    world.run(6)
    assert images(world) == [
        ("node-0", "agent:2"),
        ("node-1", "agent:2"),
        ("node-2", "agent:1"),
        ("node-2", "agent:2"),
        ("node-3", "agent:1"),
        ("node-3", "agent:2"),
    ]
    world.run(60)
    assert images(world) == [(f"node-{number}", "agent:2") for number in range(4)]
    status = world.get("daemonsets.apps", "default/agent")["status"]
    assert (status["updatedNumberScheduled"], status["numberAvailable"], status["desiredNumberScheduled"]) == (4, 4, 4)


def test_a_surge_is_limited_and_unavailable_pods_do_not_count(world: Cluster) -> None:
    world.create("daemonsets.apps", slow_daemon_set(world, "agent:1", maxSurge="25%", maxUnavailable=0))
    world.run(5)  # none of them is ready

    world.change("daemonsets.apps", "default/agent", template=slow_daemon_set(world, "agent:2")["spec"]["template"])
    world.run(1)

    # If neither the old nor the new pod is ready, only the new one is kept.
    assert images(world) == [(f"node-{number}", "agent:2") for number in range(4)]
