"""StatefulSets: stable names, ordered creation, reverse deletion (Kubernetes: pkg/controller/statefulset)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Cluster

READY_S = 5


def stateful_set(world: Cluster, replicas: int = 3, image: str = "db:1", **spec: Any) -> dict[str, Any]:  # noqa: ANN401
    template = world.template({"app": "db"})
    probe = {"initialDelaySeconds": READY_S, "periodSeconds": 1, "exec": {"command": ["true"]}}
    template["spec"]["containers"][0] |= {"image": image, "readinessProbe": probe}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "default"},
        "spec": {
            "serviceName": "db",
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "db"}},
            "template": template,
            "podManagementPolicy": "OrderedReady",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            **spec,
        },
    }


def names(world: Cluster) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in world.pods())


def images(world: Cluster) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"] for pod in world.pods()}


def test_each_pod_waits_until_its_predecessor_is_ready(world: Cluster) -> None:
    world.create("statefulsets.apps", stateful_set(world))

    names_over_time = []
    for _ in range(3):
        world.run(1)
        names_over_time.append(names(world))
        world.run(READY_S - 1 + 0.1)

    assert names_over_time == [["db-0"], ["db-0", "db-1"], ["db-0", "db-1", "db-2"]]
    world.run(READY_S)
    status = world.get("statefulsets.apps", "default/db")["status"]
    assert (status["replicas"], status["readyReplicas"], status["availableReplicas"]) == (3, 3, 3)
    assert status["currentRevision"] == status["updateRevision"]


def test_pods_of_a_parallel_set_are_created_and_deleted_at_once(world: Cluster) -> None:
    world.create("statefulsets.apps", stateful_set(world, podManagementPolicy="Parallel"))
    world.run(0.1)
    assert names(world) == ["db-0", "db-1", "db-2"]

    world.change("statefulsets.apps", "default/db", replicas=0)
    world.run(0.1)

    assert names(world) == []


def test_a_pod_has_an_ordinal_a_host_name_and_a_claim(world: Cluster) -> None:
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    world.create("statefulsets.apps", stateful_set(world, 1, volumeClaimTemplates=[claim], ordinals={"start": 7}))
    world.run(1)

    pod = world.get("pods", "default/db-7")
    assert pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "7"
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("db-7", "db")
    assert pod["spec"]["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-7"}}]
    assert world.get("persistentvolumeclaims", "default/data-db-7")["metadata"]["labels"] == {"app": "db"}


def test_a_deleted_pod_is_recreated_with_its_name(world: Cluster) -> None:
    world.create("statefulsets.apps", stateful_set(world, 2))
    world.run(20)
    before = world.get("pods", "default/db-0")["metadata"]["uid"]

    world.delete("pods", "default/db-0")
    world.run(20)

    assert names(world) == ["db-0", "db-1"]
    assert world.get("pods", "default/db-0")["metadata"]["uid"] != before


def test_a_rolling_update_starts_with_the_last_pod_one_at_a_time(world: Cluster) -> None:
    world.create("statefulsets.apps", stateful_set(world))
    world.run(30)
    new = stateful_set(world, image="db:2")["spec"]["template"]

    world.change("statefulsets.apps", "default/db", template=new)
    world.run(1)
    assert images(world) == {"db-0": "db:1", "db-1": "db:1", "db-2": "db:2"}
    world.run(READY_S)
    assert images(world) == {"db-0": "db:1", "db-1": "db:2", "db-2": "db:2"}

    world.run(30)
    status = world.get("statefulsets.apps", "default/db")["status"]
    assert images(world) == dict.fromkeys(("db-0", "db-1", "db-2"), "db:2")
    assert status["currentRevision"] == status["updateRevision"]
    assert [revision["revision"] for revision in world.store.all("controllerrevisions.apps").values()] == [1, 2]


def test_a_partition_keeps_the_old_template_for_the_first_pods(world: Cluster) -> None:
    world.create("statefulsets.apps", stateful_set(world))
    world.run(30)
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    new = stateful_set(world, image="db:2")["spec"]["template"]

    world.change("statefulsets.apps", "default/db", template=new, updateStrategy=strategy)
    world.run(30)
    world.delete("pods", "default/db-0")
    world.run(30)

    assert images(world) == {"db-0": "db:1", "db-1": "db:1", "db-2": "db:2"}


@pytest.mark.parametrize("replicas", [1, 0])
def test_a_set_scales_down_from_the_last_pod(world: Cluster, replicas: int) -> None:
    world.create("statefulsets.apps", stateful_set(world))
    world.run(30)

    world.change("statefulsets.apps", "default/db", replicas=replicas)
    world.run(30)

    assert names(world) == [f"db-{ordinal}" for ordinal in range(replicas)]
    expected = [f"delete Pod db-{ordinal} in StatefulSet db successful" for ordinal in reversed(range(replicas, 3))]
    assert world.events("SuccessfulDelete") == expected


def test_a_ready_pod_is_deleted_only_after_min_ready_seconds(world: Cluster) -> None:
    world.create("statefulsets.apps", stateful_set(world, replicas=2, minReadySeconds=10))
    world.run(2 * READY_S + 10 + 1)

    world.change("statefulsets.apps", "default/db", replicas=1)
    world.run(1)
    assert names(world) == ["db-0", "db-1"]
    world.run(10)

    assert names(world) == ["db-0"]
