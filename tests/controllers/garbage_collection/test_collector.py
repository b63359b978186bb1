"""Garbage collection: background, foreground and orphan deletion, and nonexistent owners."""

from __future__ import annotations

from typing import Any

from tests.simulated_cluster import Cluster

from batkube.cluster.object_meta import controller_reference


def config_map(name: str, *owners: dict[str, Any], blocks: bool = True) -> dict[str, Any]:
    references = [
        {**controller_reference(owner), "controller": False, "blockOwnerDeletion": blocks} for owner in owners
    ]
    metadata = {"name": name, "namespace": "default", **({"ownerReferences": references} if references else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {}}


def create_config_map(world: Cluster, name: str, *owners: str, blocks: bool = True) -> None:
    owner_objects = [world.get("configmaps", f"default/{owner}") for owner in owners]
    world.create("configmaps", config_map(name, *owner_objects, blocks=blocks))


def names(world: Cluster) -> list[str]:
    all_names = [one["metadata"]["name"] for one in world.store.all("configmaps").values()]
    return [name for name in all_names if name != "kube-root-ca.crt"]


def test_in_background_deletion_the_owner_is_deleted_first(world: Cluster) -> None:
    create_config_map(world, "owner")
    create_config_map(world, "child", "owner")
    create_config_map(world, "grandchild", "child")
    world.delete("configmaps", "default/owner")
    assert names(world) == ["child", "grandchild"]
    world.run(1)
    assert names(world) == []


def test_in_foreground_deletion_the_owner_waits_for_blocking_dependents(world: Cluster) -> None:
    create_config_map(world, "owner")
    create_config_map(world, "child", "owner")
    create_config_map(world, "not-blocking", "owner", blocks=False)
    child = world.get("configmaps", "default/child")
    protected = {**child, "metadata": {**child["metadata"], "finalizers": ["example.com/protect"]}}
    world.api.update("configmaps", protected, world.now)
    world.delete("configmaps", "default/owner", propagation="Foreground")
    world.run(1)
    assert "owner" in names(world)
    assert "deletionTimestamp" in world.get("configmaps", "default/child")["metadata"]
    child = world.get("configmaps", "default/child")
    unlocked = {
        **child,
        "metadata": {name: value for name, value in child["metadata"].items() if name != "finalizers"},
    }
    world.api.update("configmaps", unlocked, world.now)
    world.run(1)
    assert names(world) == []


def test_orphaned_dependents_lose_their_owner_and_stay(world: Cluster) -> None:
    create_config_map(world, "owner")
    create_config_map(world, "child", "owner")
    world.delete("configmaps", "default/owner", propagation="Orphan")
    world.run(1)
    assert names(world) == ["child"]
    assert "ownerReferences" not in world.get("configmaps", "default/child")["metadata"]


def test_an_object_with_one_existing_owner_stays_and_drops_other_references(world: Cluster) -> None:
    create_config_map(world, "one")
    create_config_map(world, "other")
    create_config_map(world, "child", "one", "other")
    world.delete("configmaps", "default/one")
    world.run(1)
    (reference,) = world.get("configmaps", "default/child")["metadata"]["ownerReferences"]
    assert reference["name"] == "other"


def test_an_object_with_a_nonexistent_owner_is_deleted(world: Cluster) -> None:
    ghost = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ghost", "uid": "no-such-uid"}}
    world.create("configmaps", config_map("child", ghost))
    world.run(1)
    assert names(world) == []


def test_deleting_a_deployment_deletes_its_dependents(world: Cluster) -> None:
    world.create("deployments.apps", world.deployment())
    world.run(1)
    world.delete("deployments.apps", "default/web", propagation="Foreground")
    world.run(2)
    assert not world.store.all("deployments.apps")
    assert not world.store.all("replicasets.apps")
    assert not world.pods()
