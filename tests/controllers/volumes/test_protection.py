"""Claims and volumes are protected while in use."""

from __future__ import annotations

from tests.controllers.volumes.manifests import CLAIM, VOLUME, claim, phases, user, volume
from tests.simulated_cluster import Cluster


def test_a_claim_is_protected_while_a_pod_uses_it(world: Cluster) -> None:
    world.create(VOLUME, volume("disk"))
    world.create(CLAIM, claim())
    world.create("pods", user(world))
    world.run(1)
    world.delete(CLAIM, "default/data")
    world.run(1)
    assert "deletionTimestamp" in world.get(CLAIM, "default/data")["metadata"]
    world.delete("pods", "default/user")
    world.run(1)
    assert not world.store.all(CLAIM)
    assert phases(world) == {"disk": "Released"}


def test_a_bound_volume_is_protected_until_its_claim_is_deleted(world: Cluster) -> None:
    world.create(VOLUME, volume("disk"))
    world.create(CLAIM, claim())
    world.run(1)
    world.delete(VOLUME, "disk")
    world.run(1)
    assert phases(world) == {"disk": "Bound"}
    world.delete(CLAIM, "default/data")
    world.run(1)
    assert not world.store.all(VOLUME)
