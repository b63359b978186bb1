"""Garbage collection: background, foreground, orphan, and owners that never were."""

from __future__ import annotations

from typing import Any

from tests.controllers.conftest import Cluster

from batkube.cluster.object_meta import controller_reference


def config_map(name: str, *owners: dict[str, Any], blocks: bool = True) -> dict[str, Any]:
    references = [
        {**controller_reference(owner), "controller": False, "blockOwnerDeletion": blocks} for owner in owners
    ]
    metadata = {"name": name, "namespace": "default", **({"ownerReferences": references} if references else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {}}


def make(world: Cluster, name: str, *owners: str, blocks: bool = True) -> None:
    found = [world.get("configmaps", f"default/{owner}") for owner in owners]
    world.create("configmaps", config_map(name, *found, blocks=blocks))


def names(world: Cluster) -> list[str]:
    every = [one["metadata"]["name"] for one in world.store.all("configmaps").values()]
    return [name for name in every if name != "kube-root-ca.crt"]


def test_in_the_background_the_owner_goes_first_and_the_rest_follows(world: Cluster) -> None:
    make(world, "owner")
    make(world, "child", "owner")
    make(world, "grandchild", "child")
    world.delete("configmaps", "default/owner")
    assert names(world) == ["child", "grandchild"]
    world.run(1)
    assert names(world) == []


def test_in_the_foreground_the_owner_waits_for_what_blocks_it(world: Cluster) -> None:
    make(world, "owner")
    make(world, "child", "owner")
    make(world, "careless", "owner", blocks=False)
    child = world.get("configmaps", "default/child")
    held = {**child, "metadata": {**child["metadata"], "finalizers": ["example.com/hold"]}}
    world.api.update("configmaps", held, world.now)
    world.delete("configmaps", "default/owner", propagation="Foreground")
    world.run(1)
    assert "owner" in names(world)
    assert "deletionTimestamp" in world.get("configmaps", "default/child")["metadata"]
    child = world.get("configmaps", "default/child")
    free = {**child, "metadata": {name: value for name, value in child["metadata"].items() if name != "finalizers"}}
    world.api.update("configmaps", free, world.now)
    world.run(1)
    assert names(world) == []


def test_orphans_forget_their_owner_and_stay(world: Cluster) -> None:
    make(world, "owner")
    make(world, "child", "owner")
    world.delete("configmaps", "default/owner", propagation="Orphan")
    world.run(1)
    assert names(world) == ["child"]
    assert "ownerReferences" not in world.get("configmaps", "default/child")["metadata"]


def test_one_living_owner_is_enough_and_the_dead_are_forgotten(world: Cluster) -> None:
    make(world, "one")
    make(world, "other")
    make(world, "child", "one", "other")
    world.delete("configmaps", "default/one")
    world.run(1)
    (reference,) = world.get("configmaps", "default/child")["metadata"]["ownerReferences"]
    assert reference["name"] == "other"


def test_an_object_whose_owner_never_was_goes(world: Cluster) -> None:
    ghost = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ghost", "uid": "no-such-uid"}}
    world.create("configmaps", config_map("child", ghost))
    world.run(1)
    assert names(world) == []


def test_deleting_a_deployment_leaves_nothing_of_it(world: Cluster) -> None:
    world.create("deployments.apps", world.deployment())
    world.run(1)
    world.delete("deployments.apps", "default/web", propagation="Foreground")
    world.run(2)
    assert not world.store.all("deployments.apps")
    assert not world.store.all("replicasets.apps")
    assert not world.pods()
