"""Deleted namespaces are emptied, and new ones get a service account and the CA certificate."""

from __future__ import annotations

import gc
import tracemalloc

from tests.simulated_cluster import Cluster


def create_namespace(world: Cluster, name: str) -> None:
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name},
        "spec": {"finalizers": ["kubernetes"]},
    }
    world.create("namespaces", namespace)
    world.run(1)


def test_the_default_account_of_a_namespace_is_created_and_recreated(world: Cluster) -> None:
    create_namespace(world, "lab")
    first = world.get("serviceaccounts", "lab/default")
    world.delete("serviceaccounts", "lab/default")
    world.run(1)
    second = world.get("serviceaccounts", "lab/default")
    assert first["metadata"]["uid"] != second["metadata"]["uid"]


def test_a_namespace_is_deleted_when_empty_and_reports_its_remaining_content(world: Cluster) -> None:
    create_namespace(world, "lab")
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "lab"}}
    config["metadata"] = {**config["metadata"], "finalizers": ["example.com/protect"]}
    world.create("configmaps", config)
    world.delete("namespaces", "lab")
    world.run(6)
    conditions = {one["type"]: one for one in world.get("namespaces", "lab")["status"]["conditions"]}
    remaining = conditions["NamespaceContentRemaining"]
    assert remaining["status"] == "True"
    assert "configmaps. has 1 resource instances" in remaining["message"]
    assert conditions["NamespaceDeletionDiscoveryFailure"]["status"] == "False"
    assert world.store.get("serviceaccounts", "lab/default") is None  # type: ignore[arg-type]
    remove_finalizers(world, "configmaps", "lab/c")
    world.run(5)
    assert "lab" not in world.store.all("namespaces")


def remove_finalizers(world: Cluster, storage: str, key: str) -> None:
    """Remove the finalizers of an object that is being deleted."""
    obj = world.get(storage, key)
    metadata = {name: value for name, value in obj["metadata"].items() if name != "finalizers"}
    world.api.update(storage, {**obj, "metadata": {**metadata, "deletionGracePeriodSeconds": 0}}, world.now)
    world.run(1)


def test_every_namespace_contains_the_ca_certificate(world: Cluster) -> None:
    create_namespace(world, "lab")
    published = world.get("configmaps", "lab/kube-root-ca.crt")
    world.api.update("configmaps", {**published, "data": {"ca.crt": "forged"}}, world.now)
    world.run(1)
    assert world.get("configmaps", "lab/kube-root-ca.crt")["data"] == {"ca.crt": "the authority"}


def test_pods_are_deleted_before_other_objects(world: Cluster) -> None:
    create_namespace(world, "lab")
    pod = world.pod("p")
    pod["metadata"] |= {"namespace": "lab", "finalizers": ["example.com/protect"]}
    world.create("pods", pod)
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "lab"}}
    world.create("configmaps", config)
    world.run(1)
    world.delete("namespaces", "lab")
    world.run(60)
    assert "deletionTimestamp" in world.get("pods", "lab/p")["metadata"]
    assert "deletionTimestamp" not in world.get("configmaps", "lab/c")["metadata"]
    remove_finalizers(world, "pods", "lab/p")
    world.run(60)
    assert not [key for key in world.store.all("configmaps") if key.startswith("lab/")]
    assert "lab" not in world.store.all("namespaces")


def test_a_namespace_is_checked_again_at_the_times_of_the_real_controller(world: Cluster) -> None:
    create_namespace(world, "lab")
    pod = world.pod("slow", {"batkube.io/stop-time": "30s"})
    pod["metadata"]["namespace"] = "lab"
    pod["spec"]["terminationGracePeriodSeconds"] = 30
    world.create("pods", pod)
    world.run(1)
    world.delete("namespaces", "lab")
    world.run(4.9)
    assert "deletionTimestamp" not in world.get("pods", "lab/slow")["metadata"]
    world.run(0.2)
    assert "deletionTimestamp" in world.get("pods", "lab/slow")["metadata"]

    # Checks are after 5 s, 5 s after the change of conditions, and then every half of the pod's 30 s plus one second.
    world.run(36.8)
    assert not [key for key in world.store.all("pods") if key.startswith("lab/")]
    assert "lab" in world.store.all("namespaces")
    world.run(0.2)
    assert "lab" not in world.store.all("namespaces")


def test_a_namespace_reports_a_pod_that_exceeds_its_grace_period(world: Cluster) -> None:
    create_namespace(world, "lab")
    pod = world.pod("lost")
    pod["metadata"]["namespace"] = "lab"
    pod["spec"] |= {"nodeName": "node-that-failed", "terminationGracePeriodSeconds": 3}
    world.create("pods", pod)
    world.delete("namespaces", "lab")
    world.run(6)
    conditions = {one["type"]: one["message"] for one in world.get("namespaces", "lab")["status"]["conditions"]}
    problem = "unexpected items still remain in namespace: lab for gvr: /v1, Resource=pods"
    failure = f"Failed to delete all resource types, 1 remaining: {problem}"
    assert conditions["NamespaceDeletionContentFailure"] == failure


def test_a_namespace_that_is_recreated_at_once_stays(world: Cluster) -> None:
    create_namespace(world, "lab")
    world.delete("namespaces", "lab")
    while "lab" in world.store.all("namespaces"):
        world.run(0.001)
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "lab"},
        "spec": {"finalizers": ["kubernetes"]},
    }
    world.create("namespaces", namespace)
    world.create("configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "lab"}})
    world.run(60)
    assert world.get("configmaps", "lab/c")
    assert "deletionTimestamp" not in world.get("namespaces", "lab")["metadata"]


def test_deleted_namespaces_leave_no_memory_allocated(world: Cluster) -> None:
    def create_and_delete(first: int, count: int) -> None:
        for number in range(first, first + count):
            create_namespace(world, f"lab-{number}")
            for name in range(50):
                metadata = {"name": f"c-{name}", "namespace": f"lab-{number}"}
                world.create("configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
            world.delete("namespaces", f"lab-{number}")
            world.run(5)
            assert f"lab-{number}" not in world.store.all("namespaces")
        world.store.compact()

    create_and_delete(0, 10)
    gc.collect()
    tracemalloc.start()
    try:
        create_and_delete(10, 20)
        gc.collect()
        growth_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert growth_bytes < 30_000
