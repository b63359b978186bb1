"""Claims of ephemeral volumes are created for their pods."""

from __future__ import annotations

from typing import Any

from tests.controllers.volumes.manifests import CLAIM, VOLUME, claim, volume
from tests.simulated_cluster import Cluster


def ephemeral(world: Cluster, name: str = "a") -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    source = {"volumeClaimTemplate": {"metadata": {"labels": {"l": "1"}, "annotations": {"a": "2"}}, "spec": spec}}
    return world.pod(name, volumes=[{"name": "scratch", "ephemeral": source}])


def test_an_ephemeral_volume_has_a_claim_owned_by_its_pod(world: Cluster) -> None:
    world.create(VOLUME, volume("disk"))
    world.create("pods", ephemeral(world))
    world.run(1)
    claim_object, owner = world.get(CLAIM, "default/a-scratch"), world.get("pods", "default/a")
    assert claim_object["status"]["phase"] == "Bound"
    assert claim_object["metadata"]["labels"] == {"l": "1"}
    assert claim_object["metadata"]["annotations"]["a"] == "2"
    assert [one["uid"] for one in claim_object["metadata"]["ownerReferences"]] == [owner["metadata"]["uid"]]

    world.delete("pods", "default/a", grace_s=0)
    world.run(1)
    assert not world.store.all(CLAIM)


def test_a_deleted_ephemeral_claim_is_recreated_for_its_pod(world: Cluster) -> None:
    world.create("pods", {**ephemeral(world), "status": {"phase": "Pending"}})
    world.run(1)
    before = world.get(CLAIM, "default/a-scratch")["metadata"]["uid"]
    world.api.update(CLAIM, without_finalizers(world.get(CLAIM, "default/a-scratch")), world.now)
    world.delete(CLAIM, "default/a-scratch")
    world.run(1)
    assert world.get(CLAIM, "default/a-scratch")["metadata"]["uid"] != before


def without_finalizers(obj: dict[str, Any]) -> dict[str, Any]:
    return {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key != "finalizers"}}


def test_a_claim_owned_by_another_object_is_not_used(world: Cluster) -> None:
    world.create(CLAIM, claim("a-scratch"))
    world.create("pods", ephemeral(world))
    world.run(1)
    problem = "PVC default/a-scratch was not created for pod default/a (pod is not owner)"
    assert f"ephemeral volume scratch: {problem}" in world.events("FailedBinding")

    world.run(200)
    world.api.update(CLAIM, without_finalizers(world.get(CLAIM, "default/a-scratch")), world.now)
    world.delete(CLAIM, "default/a-scratch")
    world.run(1)
    assert "ownerReferences" in world.get(CLAIM, "default/a-scratch")["metadata"], "created as soon as the name is free"
