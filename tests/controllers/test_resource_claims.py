"""ResourceClaims are created for pods, reserved for them, and released."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulated_cluster import Cluster

from batkube.cluster.client import ApiError
from batkube.cluster.object_meta import controller_reference
from batkube.cluster.pods.accessors import is_finished

CLAIM, TEMPLATE = "resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io"
FINALIZER = "resource.kubernetes.io/delete-protection"
SPEC = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
DEVICES = {"devices": {"results": []}}
BY_TEMPLATE, BY_NAME = {"resourceClaimTemplateName": "gpus"}, {"resourceClaimName": "shared"}


@pytest.fixture
def idle() -> Cluster:
    """A cluster without a scheduler."""
    return Cluster("2x4", scheduler=False)


def template(**metadata: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "gpus", "namespace": "default"},
        "spec": {"metadata": metadata, "spec": SPEC},
    }


def shared(**status: Any) -> dict[str, Any]:  # noqa: ANN401
    finalizers = [FINALIZER] if "allocation" in status else []
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "shared", "namespace": "default", "finalizers": finalizers},
        "spec": SPEC,
        "status": status,
    }


def pod(world: Cluster, name: str = "a", claim: dict[str, str] = BY_TEMPLATE, **spec: Any) -> dict[str, Any]:  # noqa: ANN401
    claims = [{"name": "c", **claim}]
    return world.pod(name, {"batkube.io/duration": "10"}, restart="Never", resourceClaims=claims, **spec)


def claims(world: Cluster) -> list[dict[str, Any]]:
    return list(world.store.all(CLAIM).values())


def allocate(world: Cluster, name: str, *consumers: dict[str, Any]) -> None:
    """Allocate a claim, as kube-scheduler does."""
    claim = world.get(CLAIM, f"default/{name}")
    manifest = {**claim, "metadata": {**claim["metadata"], "finalizers": [FINALIZER]}}
    claim = world.api.update(CLAIM, manifest, world.now)
    names = [{key: one["metadata"][key] for key in ("name", "uid")} for one in consumers]
    status = {"allocation": DEVICES, "reservedFor": [{"resource": "pods", **one} for one in names]}
    world.api.update(CLAIM, {**claim, "status": status}, world.now, subresource="status")


def bind(world: Cluster, name: str, node: str = "node-0") -> None:
    binding = {"metadata": {"name": name, "namespace": "default"}, "target": {"name": node}}
    world.api.create("pods", binding, world.now, subresource="binding")


def test_a_claim_is_created_from_the_template_and_recorded_in_the_pod(idle: Cluster) -> None:
    idle.create(TEMPLATE, template(labels={"l": "1"}, annotations={"a": "2"}))
    idle.create("pods", pod(idle))
    idle.run(1)

    (claim,) = claims(idle)
    metadata, owner = claim["metadata"], idle.get("pods", "default/a")
    assert claim["spec"] == SPEC
    assert metadata["name"].startswith("a-c-")
    assert metadata["labels"] == {"l": "1"}
    assert metadata["annotations"] == {"a": "2", "resource.kubernetes.io/pod-claim-name": "c"}
    assert [(one["kind"], one["uid"], one["controller"]) for one in metadata["ownerReferences"]] == [
        ("Pod", owner["metadata"]["uid"], True)
    ]
    assert owner["status"]["resourceClaimStatuses"] == [{"name": "c", "resourceClaimName": metadata["name"]}]


def test_a_claim_is_created_once_its_template_exists(idle: Cluster) -> None:
    idle.create("pods", pod(idle))
    idle.run(1)
    assert not claims(idle)
    problem = 'resource claim template "gpus": resourceclaimtemplate.resource.k8s.io "gpus" not found'
    assert f"PodResourceClaim c: {problem}" in idle.events("FailedResourceClaimCreation")

    idle.create(TEMPLATE, template())
    idle.run(10)
    assert len(claims(idle)) == 1


def test_a_rejected_claim_is_retried(idle: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    create = idle.api.create

    def reject(storage: str, *arguments: Any, **more: Any) -> dict[str, Any]:  # noqa: ANN401
        if storage == CLAIM:
            raise ApiError(403, "Forbidden", "exceeded quota: q")
        return create(storage, *arguments, **more)

    idle.create(TEMPLATE, template())
    idle.create("pods", pod(idle))
    with monkeypatch.context() as patch:
        patch.setattr(idle.api, "create", reject)
        idle.run(1)
    message = "PodResourceClaim c: create ResourceClaim : exceeded quota: q"
    assert message in idle.events("FailedResourceClaimCreation"), "the claim has no name yet"
    idle.run(2)
    assert len(claims(idle)) == 1


def test_a_deleted_claim_or_a_lost_name_is_restored(idle: Cluster) -> None:
    idle.create(TEMPLATE, template())
    idle.create("pods", pod(idle))
    idle.run(1)
    (first,) = claims(idle)
    idle.delete(CLAIM, f"default/{first['metadata']['name']}")
    idle.run(1)
    (second,) = claims(idle)
    assert second["metadata"]["uid"] != first["metadata"]["uid"]

    current = idle.get("pods", "default/a")
    idle.api.update("pods", {**current, "status": {"phase": "Pending"}}, idle.now, subresource="status")
    idle.run(1)
    assert claims(idle) == [second]
    (status,) = idle.get("pods", "default/a")["status"]["resourceClaimStatuses"]
    assert status["resourceClaimName"] == second["metadata"]["name"]


def test_a_finished_pod_releases_its_devices_and_its_claim_is_deleted(idle: Cluster) -> None:
    idle.create(TEMPLATE, template())
    idle.create("pods", pod(idle))
    idle.run(1)
    (claim,) = claims(idle)
    allocate(idle, claim["metadata"]["name"], idle.get("pods", "default/a"))
    bind(idle, "a")
    idle.run(5)
    assert claims(idle)[0]["status"]["allocation"] is not None
    (status,) = idle.get("pods", "default/a")["status"]["resourceClaimStatuses"]
    assert status["resourceClaimName"] == claim["metadata"]["name"], "kept when the kubelet writes the status"

    idle.run(10)
    assert is_finished(idle.get("pods", "default/a"))
    assert not claims(idle)


def test_a_shared_claim_stays_allocated_until_its_last_pod_finishes(idle: Cluster) -> None:
    idle.create(CLAIM, shared())
    pods = [idle.get("pods", idle.create("pods", pod(idle, name, BY_NAME))) for name in ("a", "b")]
    allocate(idle, "shared", *pods)
    bind(idle, "a")
    idle.run(15)
    (claim,) = claims(idle)
    assert [one["name"] for one in claim["status"]["reservedFor"]] == ["b"]
    assert "allocation" in claim["status"]

    idle.delete("pods", "default/b")
    idle.run(1)
    (claim,) = claims(idle)
    assert claim["status"] == {}
    assert FINALIZER not in (claim["metadata"].get("finalizers") or ())


def test_an_allocated_claim_is_reserved_for_a_pod_bound_by_hand(idle: Cluster) -> None:
    idle.create("pods", pod(idle, "a", BY_NAME, nodeName="node-0"))
    idle.run(1)
    idle.create(CLAIM, shared(allocation=DEVICES))
    idle.run(1)
    (claim,) = claims(idle)
    assert [one["name"] for one in claim["status"]["reservedFor"]] == ["a"]


def test_a_claim_of_one_pod_can_be_shared_by_another_that_names_it(idle: Cluster) -> None:
    idle.create(TEMPLATE, template())
    idle.create("pods", pod(idle))
    idle.run(1)
    (claim,) = claims(idle)
    name = claim["metadata"]["name"]
    idle.create("pods", pod(idle, "b", {"resourceClaimName": name}, nodeName="node-0"))
    idle.run(1)
    allocate(idle, name, idle.get("pods", "default/a"))
    idle.run(1)
    (claim,) = claims(idle)
    assert [one["name"] for one in claim["status"]["reservedFor"]] == ["a", "b"]


def test_the_number_of_pods_that_share_a_claim_is_limited(idle: Cluster) -> None:
    others = [
        {"apiGroup": "example.com", "resource": "others", "name": f"{one}", "uid": f"{one}"} for one in range(256)
    ]
    idle.create(CLAIM, shared(allocation=DEVICES, reservedFor=others))
    idle.create("pods", pod(idle, "a", BY_NAME, nodeName="node-0"))
    idle.run(1)
    (claim,) = claims(idle)
    assert claim["status"]["reservedFor"] == others


def test_a_deleted_claim_is_removed_once_unused(idle: Cluster) -> None:
    idle.create(CLAIM, shared(allocation=DEVICES))
    idle.delete(CLAIM, "default/shared")
    idle.run(1)
    assert not claims(idle)


def test_a_claim_of_another_controller_is_ignored(idle: Cluster) -> None:
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}
    owner = controller_reference(idle.get("configmaps", idle.create("configmaps", other)))
    manifest = shared()
    idle.create(CLAIM, {**manifest, "metadata": {**manifest["metadata"], "ownerReferences": [owner]}})
    idle.create("pods", pod(idle, "a", BY_NAME))
    idle.run(1)
    assert len(claims(idle)) == 1


@pytest.mark.parametrize(("claim", "name"), [(BY_NAME, "shared"), (BY_TEMPLATE, "c")])
def test_containers_that_start_without_their_devices_are_noted(claim: dict[str, str], name: str) -> None:
    world = Cluster("2x4")
    world.create(CLAIM, shared())
    world.create("pods", pod(world, "a", claim))
    world.run(5)
    (note,) = world.world.notes.rows()
    assert note["example"] == f"pod default/a, container app: claim {name}", "whether the claim exists or not"


def test_long_names_are_shortened_in_proportion(idle: Cluster) -> None:
    idle.create(TEMPLATE, template())
    manifest = pod(idle, "p" * 60)
    manifest["spec"]["resourceClaims"] = [{"name": "c" * 20, **BY_TEMPLATE}]
    idle.create("pods", manifest)
    idle.run(1)
    (claim,) = claims(idle)
    assert claim["metadata"]["name"].startswith(f"{'p' * 41}-{'c' * 13}")
