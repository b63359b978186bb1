"""Deployments roll out, roll back, scale and pause as `kubectl rollout` expects."""

from __future__ import annotations

import copy
from typing import Any

from tests.simulated_cluster import Cluster

WEB = "default/web"


def set_image(world: Cluster, image: str) -> None:
    deployment = copy.deepcopy(world.get("deployments.apps", WEB))
    deployment["spec"]["template"]["spec"]["containers"][0]["image"] = image
    world.api.update("deployments.apps", deployment, world.now)


def images(world: Cluster) -> list[str]:
    return sorted(pod["spec"]["containers"][0]["image"] for pod in world.pods("Running"))


def condition(world: Cluster, kind: str) -> dict[str, Any]:
    conditions = world.get("deployments.apps", WEB)["status"]["conditions"]
    return next(one for one in conditions if one["type"] == kind)


def sizes(world: Cluster) -> dict[str, int]:
    return {
        one["spec"]["template"]["spec"]["containers"][0]["image"]: one["spec"]["replicas"]
        for one in world.store.all("replicasets.apps").values()
    }


def test_a_new_deployment_creates_a_replica_set(world: Cluster) -> None:
    world.create("deployments.apps", world.deployment(replicas=3))
    world.run(1)
    (replica_set,) = world.store.all("replicasets.apps").values()
    digest = replica_set["metadata"]["labels"]["pod-template-hash"]
    assert replica_set["metadata"]["name"] == f"web-{digest}"
    assert replica_set["spec"]["selector"]["matchLabels"] == {"app": "web", "pod-template-hash": digest}
    assert replica_set["metadata"]["annotations"] == {
        "deployment.kubernetes.io/revision": "1",
        "deployment.kubernetes.io/desired-replicas": "3",
        "deployment.kubernetes.io/max-replicas": "4",
    }
    status = world.get("deployments.apps", WEB)["status"]
    counts = {name: count for name, count in status.items() if name != "conditions"}
    assert counts == {
        "observedGeneration": 1,
        "replicas": 3,
        "updatedReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
    }
    assert condition(world, "Available")["reason"] == "MinimumReplicasAvailable"
    assert condition(world, "Progressing")["message"] == f'ReplicaSet "web-{digest}" has successfully progressed.'
    assert world.events("ScalingReplicaSet") == [f"Scaled up replica set web-{digest} from 0 to 3"]


def test_a_rolling_update_respects_max_surge_and_max_unavailable(world: Cluster) -> None:
    deployment = world.deployment(replicas=8)
    probe = {"initialDelaySeconds": 5}
    deployment["spec"]["template"]["spec"]["containers"][0]["readinessProbe"] = probe
    world.create("deployments.apps", deployment)
    world.run(10)
    set_image(world, "app:2")
    mixed = False
    for _ in range(400):
        world.run(0.1)
        pods = [pod for pod in world.pods() if "deletionTimestamp" not in pod["metadata"]]
        ready = [
            pod
            for pod in pods
            if any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))
        ]
        assert len(pods) <= 10
        assert len(ready) >= 6
        mixed |= len(set(images(world))) == 2
    assert mixed
    assert images(world) == ["app:2"] * 8
    assert sizes(world) == {"app:1": 0, "app:2": 8}
    assert world.get("deployments.apps", WEB)["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"


def test_rolling_back_by_template_reuses_the_old_replica_set(world: Cluster) -> None:
    world.create("deployments.apps", world.deployment())
    world.run(1)
    set_image(world, "app:2")
    world.run(2)
    set_image(world, "app:1")
    world.run(2)
    assert images(world) == ["app:1"] * 3
    assert len(world.store.all("replicasets.apps")) == 2
    restored = next(one for one in world.store.all("replicasets.apps").values() if one["spec"]["replicas"])
    assert restored["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"
    assert restored["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"] == "1"


def test_the_deprecated_rollback_annotation_restores_a_revision(world: Cluster) -> None:
    world.create("deployments.apps", world.deployment())
    world.run(1)
    set_image(world, "app:2")
    world.run(2)
    deployment = copy.deepcopy(world.get("deployments.apps", WEB))
    deployment["metadata"]["annotations"]["deprecated.deployment.rollback.to"] = "1"
    deployment["spec"]["minReadySeconds"] = 0
    world.api.update("deployments.apps", deployment, world.now)
    world.run(2)
    assert images(world) == ["app:1"] * 3
    assert world.events("DeploymentRollback") == ['Rolled back deployment "web" to revision 1']


def test_recreate_waits_until_the_old_pods_are_deleted(world: Cluster) -> None:
    deployment = world.deployment(strategy={"type": "Recreate"})
    deployment["spec"]["template"]["metadata"]["annotations"] = {"batkube.io/stop-time": "5s"}
    world.create("deployments.apps", deployment)
    world.run(1)
    set_image(world, "app:2")
    world.run(4)
    assert {pod["spec"]["containers"][0]["image"] for pod in world.pods()} == {"app:1"}
    world.run(4)
    assert images(world) == ["app:2"] * 3


def test_scaling_creates_no_replica_set_and_records_events(world: Cluster) -> None:
    world.create("deployments.apps", world.deployment(replicas=2))
    world.run(1)
    world.change("deployments.apps", WEB, replicas=5)
    world.run(1)
    assert len(world.pods("Running")) == 5
    world.change("deployments.apps", WEB, replicas=0)
    world.run(1)
    assert not world.pods()
    name = next(iter(world.store.all("replicasets.apps").values()))["metadata"]["name"]
    assert world.events("ScalingReplicaSet") == [
        f"Scaled up replica set {name} from 0 to 2",
        f"Scaled up replica set {name} from 2 to 5",
        f"Scaled down replica set {name} from 5 to 0",
    ]


def test_a_paused_deployment_is_not_rolled_out_until_it_is_resumed(world: Cluster) -> None:
    world.create("deployments.apps", world.deployment())
    world.run(1)
    world.change("deployments.apps", WEB, paused=True)
    set_image(world, "app:2")
    world.run(2)
    assert images(world) == ["app:1"] * 3
    assert condition(world, "Progressing")["reason"] == "DeploymentPaused"
    world.change("deployments.apps", WEB, paused=False)
    world.run(2)
    assert images(world) == ["app:2"] * 3


def test_a_rollout_that_cannot_proceed_times_out(world: Cluster) -> None:
    deployment = world.deployment(replicas=1, progressDeadlineSeconds=60)
    deployment["spec"]["template"]["spec"]["nodeSelector"] = {"gpu": "yes"}
    world.create("deployments.apps", deployment)
    world.run(50)
    assert condition(world, "Progressing")["status"] == "True"
    world.run(20)
    late = condition(world, "Progressing")
    assert (late["status"], late["reason"]) == ("False", "ProgressDeadlineExceeded")
    assert late["message"].endswith("has timed out progressing.")


def test_old_revisions_beyond_the_history_limit_are_deleted(world: Cluster) -> None:
    world.create("deployments.apps", world.deployment(revisionHistoryLimit=1))
    for number in range(2, 5):
        world.run(2)
        set_image(world, f"app:{number}")
    world.run(3)
    assert sorted(sizes(world)) == ["app:3", "app:4"]
