"""Claims are bound to volumes."""

from __future__ import annotations

import pytest
from tests.controllers.volumes.manifests import CLAIM, CLASS, VOLUME, claim, phases, storage_class, user, volume
from tests.simulated_cluster import Cluster


def test_a_claim_is_bound_to_the_smallest_matching_volume(world: Cluster) -> None:
    for name, size in (("large", "9Gi"), ("small", "1Gi"), ("middle", "3Gi")):
        world.create(VOLUME, volume(name, size))
    world.create(VOLUME, volume("other-class", "2Gi", storageClassName="slow"))
    world.create(VOLUME, volume("block", "2Gi", volumeMode="Block"))
    world.run(1)
    assert set(phases(world).values()) == {"Available"}
    world.create(CLAIM, claim(size="2Gi"))
    world.run(1)
    bound = world.get(CLAIM, "default/data")
    assert bound["spec"]["volumeName"] == "middle"
    assert bound["status"] == {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "3Gi"}}
    assert bound["metadata"]["annotations"] == {
        "pv.kubernetes.io/bind-completed": "yes",
        "pv.kubernetes.io/bound-by-controller": "yes",
    }
    assert world.get(VOLUME, "middle")["spec"]["claimRef"]["uid"] == bound["metadata"]["uid"]
    assert phases(world)["middle"] == "Bound"


def test_a_claim_without_a_matching_volume_is_reported_and_bound_later(world: Cluster) -> None:
    world.create(CLAIM, claim(size="2Gi"))
    world.run(1)
    assert world.get(CLAIM, "default/data")["status"]["phase"] == "Pending"
    assert world.events("FailedBinding") == [
        "no persistent volumes available for this claim and no storage class is set"
    ]
    world.create(VOLUME, volume("late", "2Gi"))
    world.run(1)
    assert world.get(CLAIM, "default/data")["status"]["phase"] == "Bound"


def test_a_reserved_volume_is_bound_to_no_other_claim(world: Cluster) -> None:
    world.create(VOLUME, volume("reserved", claimRef={"namespace": "default", "name": "mine"}))
    world.create(CLAIM, claim("other"))
    world.run(1)
    assert world.get(CLAIM, "default/other")["status"]["phase"] == "Pending"
    world.create(CLAIM, claim("mine"))
    world.run(1)
    mine = world.get(CLAIM, "default/mine")
    assert mine["status"]["phase"] == "Bound"
    assert world.get(VOLUME, "reserved")["spec"]["claimRef"]["uid"] == mine["metadata"]["uid"]


def test_a_mismatch_with_a_named_volume_is_reported(world: Cluster) -> None:
    world.create(VOLUME, volume("tiny", "1Mi"))
    world.create(CLAIM, claim(volumeName="tiny"))
    world.run(1)
    assert world.events("VolumeMismatch") == ['Cannot bind to requested volume "tiny": requested PV is too small']


def test_a_provisioned_volume_is_deleted_with_its_claim(world: Cluster) -> None:
    world.create(CLASS, storage_class())
    world.create(CLAIM, claim(storageClassName="fast"))
    world.run(1)
    bound = world.get(CLAIM, "default/data")
    name = f"pvc-{bound['metadata']['uid']}"
    assert (bound["spec"]["volumeName"], bound["status"]["phase"]) == (name, "Bound")
    assert world.get(VOLUME, name)["spec"]["csi"] == {"driver": "disks.example.com", "volumeHandle": name}

    world.delete(CLAIM, "default/data")
    world.run(1)
    assert not world.store.all(CLAIM)
    assert not world.store.all(VOLUME)


@pytest.mark.parametrize("provisioner", ["rancher.io/local-path", "disks.example.com"])
def test_a_provisioned_volume_is_valid(world: Cluster, provisioner: str) -> None:
    world.create(CLASS, storage_class(provisioner=provisioner))
    world.create(CLAIM, claim(storageClassName="fast"))
    world.run(1)
    (volume_object,) = world.store.all(VOLUME).values()
    assert volume_object["spec"].get("csi", {"driver": "none"})["driver"].count("/") == 0
    assert ("hostPath" in volume_object["spec"]) == ("/" in provisioner)


def test_an_older_claim_gets_the_default_class_unless_it_disables_it(world: Cluster) -> None:
    world.create(CLAIM, claim())
    world.create(CLAIM, claim("without", storageClassName=""))
    world.run(1)
    default = storage_class()
    default["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
    world.create(CLASS, default)
    world.run(1)
    assert world.get(CLAIM, "default/data")["spec"]["storageClassName"] == "fast"
    assert world.get(CLAIM, "default/data")["status"]["phase"] == "Bound"
    assert world.get(CLAIM, "default/without")["status"]["phase"] == "Pending"


def test_a_retained_volume_outlives_its_claim(world: Cluster) -> None:
    world.create(CLASS, storage_class(reclaimPolicy="Retain"))
    world.create(CLAIM, claim(storageClassName="fast"))
    world.run(1)
    world.delete(CLAIM, "default/data")
    world.run(1)
    assert list(phases(world).values()) == ["Released"]


@pytest.mark.parametrize("selected_by", ["annotation", "pod"])
def test_with_wait_for_first_consumer_a_volume_is_provisioned_once_a_node_is_selected(
    world: Cluster, selected_by: str
) -> None:
    world.create(CLASS, storage_class("WaitForFirstConsumer"))
    key = world.create(CLAIM, claim(storageClassName="fast"))
    world.run(1)
    assert world.events("WaitForFirstConsumer") == ["waiting for first consumer to be created before binding"]
    if selected_by == "pod":
        world.create("pods", user(world))
    else:
        node = next(iter(world.store.all("nodes")))
        waiting = world.get(CLAIM, key)
        metadata = {**waiting["metadata"], "annotations": {"volume.kubernetes.io/selected-node": node}}
        world.api.update(CLAIM, {**waiting, "metadata": metadata}, world.now)
    world.run(1)
    assert world.get(CLAIM, key)["status"]["phase"] == "Bound"


def test_a_waiting_claim_is_bound_to_a_volume_accessible_from_its_node(world: Cluster) -> None:
    world.create(CLASS, storage_class("WaitForFirstConsumer", provisioner="kubernetes.io/no-provisioner"))
    nodes = list(world.store.all("nodes"))
    for node in nodes:
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        affinity = {"required": {"nodeSelectorTerms": [term]}}
        world.create(VOLUME, volume(f"on-{node}", storageClassName="fast", nodeAffinity=affinity))
    world.create(CLAIM, claim(storageClassName="fast"))
    world.create("pods", {**user(world), "spec": {**user(world)["spec"], "nodeName": nodes[2]}})
    world.run(1)
    assert world.get(CLAIM, "default/data")["spec"]["volumeName"] == f"on-{nodes[2]}"


def test_a_claim_whose_volume_was_deleted_is_lost(world: Cluster) -> None:
    world.create(VOLUME, volume("disk"))
    world.create(CLAIM, claim())
    world.run(1)
    assert phases(world) == {"disk": "Bound"}
    world.store.delete(VOLUME, [*world.store.all(VOLUME)], world.now)
    world.run(1)
    assert world.get(CLAIM, "default/data")["status"]["phase"] == "Lost"


def test_a_provisioned_volume_is_resized_with_its_claim(world: Cluster) -> None:
    world.create(CLASS, storage_class(allowVolumeExpansion=True))
    world.create(CLAIM, claim(storageClassName="fast"))
    world.create(VOLUME, volume("by-hand"))
    world.create(CLAIM, claim("other"))
    world.run(1)
    for name in ("data", "other"):
        world.change(CLAIM, f"default/{name}", resources={"requests": {"storage": "3Gi"}})
    world.run(1)
    sizes = {one["metadata"]["name"]: one["status"]["capacity"]["storage"] for one in world.store.all(CLAIM).values()}
    assert sizes == {"data": "3Gi", "other": "1Gi"}, "a volume that was created by hand cannot be resized"
    volume_object = world.get(VOLUME, world.get(CLAIM, "default/data")["spec"]["volumeName"])
    assert volume_object["spec"]["capacity"]["storage"] == "3Gi"
    assert world.events("VolumeResizeSuccessful") == ["Resize volume succeeded"]
