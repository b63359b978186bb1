"""ReplicaSets maintain their size, adopt and release pods, and choose which pods to delete."""

from __future__ import annotations

from typing import Any

from tests.simulated_cluster import Cluster


def replica_set(world: Cluster, replicas: int, **spec: object) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": world.template({"app": "web"}),
            **spec,
        },
    }


def test_missing_pods_are_created_and_the_status_is_updated(world: Cluster) -> None:
    world.create("replicasets.apps", replica_set(world, 3))
    world.run(1)
    assert len(world.pods("Running")) == 3
    status = world.get("replicasets.apps", "default/web")["status"]
    assert status == {
        "replicas": 3,
        "fullyLabeledReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "observedGeneration": 1,
    }
    names = [pod["metadata"]["name"] for pod in world.pods()]
    assert world.events("SuccessfulCreate") == [f"Created pod: {name}" for name in names]
    assert all(name.startswith("web-") for name in names)


def test_a_deleted_pod_is_replaced(world: Cluster) -> None:
    world.create("replicasets.apps", replica_set(world, 2))
    world.run(1)
    first = world.pods()[0]["metadata"]["name"]
    world.delete("pods", f"default/{first}")
    world.run(1)
    assert len(world.pods("Running")) == 2
    assert first not in [pod["metadata"]["name"] for pod in world.pods()]


def test_scaling_down_deletes_pending_pods_first(world: Cluster) -> None:
    world.create("replicasets.apps", replica_set(world, 16))
    world.run(1)
    world.change("replicasets.apps", "default/web", replicas=18)
    world.run(1)
    pending = {pod["metadata"]["name"] for pod in world.pods("Pending")}
    assert len(pending) == 2
    world.change("replicasets.apps", "default/web", replicas=16)
    world.run(1)
    assert len(world.pods("Running")) == 16
    assert not world.pods("Pending")
    assert {message.rpartition(" ")[2] for message in world.events("SuccessfulDelete")} == pending


def test_running_pods_with_the_lowest_deletion_cost_are_deleted_first(world: Cluster) -> None:
    world.create("replicasets.apps", replica_set(world, 3))
    world.run(1)
    cheap = world.pods()[1]
    cheap["metadata"]["annotations"] = {"controller.kubernetes.io/pod-deletion-cost": "-5"}
    world.change("replicasets.apps", "default/web", replicas=2)
    world.run(1)
    assert world.events("SuccessfulDelete") == [f"Deleted pod: {cheap['metadata']['name']}"]


def test_matching_orphans_are_adopted_and_mismatching_pods_released(world: Cluster) -> None:
    orphan = world.pod("stray")
    orphan["metadata"]["labels"] = {"app": "web"}
    world.create("pods", orphan)
    world.run(1)
    world.create("replicasets.apps", replica_set(world, 2))
    world.run(1)
    assert len(world.pods()) == 2
    adopted = world.get("pods", "default/stray")
    assert adopted["metadata"]["ownerReferences"][0]["kind"] == "ReplicaSet"

    world.api.update("pods", {**adopted, "metadata": {**adopted["metadata"], "labels": {"app": "other"}}}, world.now)
    world.run(1)
    assert "ownerReferences" not in world.get("pods", "default/stray")["metadata"]
    assert len(world.pods()) == 3


def test_a_failed_creation_is_reported_and_retried(world: Cluster) -> None:
    world.api.forbidden["pods"] = 'pods "web-x" is forbidden: exceeded quota'
    world.create("replicasets.apps", replica_set(world, 2))
    world.run(2)
    condition = world.get("replicasets.apps", "default/web")["status"]["conditions"][0]
    assert (condition["type"], condition["status"], condition["reason"]) == ("ReplicaFailure", "True", "FailedCreate")
    assert condition["message"] == 'pods "web-x" is forbidden: exceeded quota'
    assert world.events("FailedCreate") == ['Error creating: pods "web-x" is forbidden: exceeded quota']

    world.api.forbidden.clear()
    world.run(10)
    assert len(world.pods("Running")) == 2
    assert "conditions" not in world.get("replicasets.apps", "default/web")["status"]


def test_a_pod_is_available_after_min_ready_seconds(world: Cluster) -> None:
    world.create("replicasets.apps", replica_set(world, 1, minReadySeconds=20))
    world.run(10)
    status = world.get("replicasets.apps", "default/web")["status"]
    assert status["readyReplicas"] == 1
    assert "availableReplicas" not in status
    world.run(12)
    assert world.get("replicasets.apps", "default/web")["status"]["availableReplicas"] == 1


def test_a_replication_controller_selects_pods_by_plain_labels(world: Cluster) -> None:
    controller = replica_set(world, 2, selector={"app": "web"})
    controller |= {"apiVersion": "v1", "kind": "ReplicationController"}
    stray = world.pod("stray")
    stray["metadata"]["labels"] = {"app": "web"}
    world.create("pods", stray)
    world.create("replicationcontrollers", controller)
    world.run(1)
    assert len(world.pods("Running")) == 2
    assert {pod["metadata"]["ownerReferences"][0]["kind"] for pod in world.pods()} == {"ReplicationController"}
    assert world.get("replicationcontrollers", "default/web")["status"]["availableReplicas"] == 2

    adopted = world.get("pods", "default/stray")
    world.api.update("pods", {**adopted, "metadata": {**adopted["metadata"], "labels": {"app": "other"}}}, world.now)
    world.run(1)
    assert "ownerReferences" not in world.get("pods", "default/stray")["metadata"]
    assert len(world.pods()) == 3
    world.change("replicationcontrollers", "default/web", replicas=0)
    world.run(1)
    assert [pod["metadata"]["name"] for pod in world.pods()] == ["stray"]


def test_a_name_in_the_template_is_ignored(world: Cluster) -> None:
    """Kubernetes: controller_utils.go, GetPodFromTemplate takes labels, annotations and finalizers."""
    template = world.template({"app": "web"})
    template["metadata"]["name"] = "once"
    world.create("replicasets.apps", replica_set(world, 2, template=template))
    world.run(1)
    assert len(world.pods("Running")) == 2
    assert all(pod["metadata"]["name"].startswith("web-") for pod in world.pods())


def test_other_requests_are_answered_between_the_creations_of_pods(world: Cluster) -> None:
    """A reconciliation stops when its turn is over, and the next one creates the other pods."""
    world.world.agenda.start_turn = lambda: lambda: True
    before = world.loop.executed
    world.create("deployments.apps", world.deployment(replicas=16))
    world.run(1)

    assert len(world.pods("Running")) == 16
    assert world.loop.executed - before > 2 * 16
