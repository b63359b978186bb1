"""Failed nodes are detected and tainted, and pods of deleted nodes are garbage collected."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulated_cluster import Cluster

from batkube.cluster.mapping import NODE, ResourceModel, node_of
from batkube.cluster.object_meta import condition_of
from batkube.cluster.store import Batch
from batkube.cluster.store_client import StoreClient
from batkube.cluster.world import World
from batkube.controllers.nodes.lifecycle import NodeLifecycleController
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import Instant, seconds
from batkube.kernel.streams import Streams
from batkube.platforms.reader import read_platform
from batkube.timing.loop import Loop


def set_ready(world: Cluster, name: str, status: str) -> None:
    node = copy.deepcopy(world.get("nodes", name))
    for one in node["status"]["conditions"]:
        if one["type"] == "Ready":
            one["status"] = status
    world.api.update("nodes", node, world.now, subresource="status")


def taints(world: Cluster, name: str) -> list[tuple[str, str]]:
    return [(one["key"], one["effect"]) for one in world.get("nodes", name)["spec"].get("taints", [])]


@pytest.mark.parametrize(("status", "key"), [("False", "not-ready"), ("Unknown", "unreachable")])
def test_a_node_that_is_not_ready_is_tainted_until_it_is(world: Cluster, status: str, key: str) -> None:
    set_ready(world, "node-0", status)
    world.run(1)
    taint = f"node.kubernetes.io/{key}"
    assert taints(world, "node-0") == [(taint, "NoSchedule"), (taint, "NoExecute")]
    set_ready(world, "node-0", "True")
    world.run(1)
    assert taints(world, "node-0") == [(taint, "NoExecute")], "removed at the next check of the monitor"
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


def test_pods_of_a_deleted_node_are_garbage_collected(world: Cluster) -> None:
    world.create("pods", world.pod("lost", nodeName="node-0"))
    world.run(1)
    world.delete("nodes", "node-0")
    world.run(58)
    assert len(world.pods()) == 1, "the node is found missing at 20.1 s, and its pods are deleted 40 s later"
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


_MS = 1_000_000


def simulated_detection(first_check: int, registered: int, failed: int) -> int:
    """Return when a monitor that checks every 5 s sees a lease unchanged for more than 50 s, in milliseconds.

    The kubelet renews every 10 s until it fails. At the same instant, failure precedes renewal, and renewal a check.
    """
    last_renewal, changed, check = -1, 0, first_check
    while True:
        renewals = [at for at in range(registered, min(failed, check + 1), 10_000)] or [registered]
        if check >= registered:
            if renewals[-1] != last_renewal:
                last_renewal, changed = renewals[-1], check
            if check - changed > 50_000:
                return check
        check += 5_000


@given(
    first_check=st.integers(100, 20_000),
    registered_after=st.integers(0, 30_000),
    failed_after=st.one_of(st.integers(1, 200_000), st.integers(1, 20).map(lambda tens: tens * 10_000)),
)
def test_an_unresponsive_node_is_detected_at_the_same_instant_as_by_a_periodic_monitor(
    first_check: int, registered_after: int, failed_after: int
) -> None:
    registered = first_check + registered_after
    failed = registered + failed_after
    world = World(Streams(0))
    # A starting monitor makes its first check 100 ms later.
    world.clock.advance(Instant((first_check - 100) * _MS))
    detections: list[int] = []

    def on_nodes_changed(batch: Batch, now: Instant) -> None:
        if (condition_of(batch.objects[0], "Ready") or {}).get("status") == "Unknown" and not detections:
            detections.append(now // _MS)

    NodeLifecycleController(world, StoreClient(world.store))
    world.store.subscribe(NODE, on_nodes_changed)
    (machine,) = read_platform("1x1").machines
    key, node = node_of(machine, ResourceModel.REQUESTS, Instant(registered * _MS))
    world.agenda.book(Instant(registered * _MS), Rank.START, lambda now: world.store.create(NODE, [key], [node], now))
    world.agenda.book(Instant(failed * _MS), Rank.TIMELINE, lambda now: world.heartbeats.stop(key, now))
    Loop(world).run_until(Instant(failed * _MS + seconds(100)))

    assert detections == [simulated_detection(first_check, registered, failed)]


def test_a_month_of_a_thousand_healthy_nodes_needs_no_appointments() -> None:
    world = World(Streams(0))
    NodeLifecycleController(world, StoreClient(world.store))
    machines = read_platform("1000x1").machines
    nodes = [node_of(machine, ResourceModel.REQUESTS, Instant(0)) for machine in machines]
    world.store.create(NODE, [key for key, _ in nodes], [node for _, node in nodes], Instant(0))
    loop = Loop(world)

    loop.run_until(Instant(seconds(30 * 86400)))

    assert loop.executed == 1000, "each node is reconciled once, when it is created"
