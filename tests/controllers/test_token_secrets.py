"""Service account token Secrets are filled in, and deleted with their account."""

from __future__ import annotations

import base64
from typing import Any

from tests.simulated_cluster import Cluster

ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": "default"}}


def secret(name: str = "key", **annotations: str) -> dict[str, Any]:
    all_annotations = {"kubernetes.io/service-account.name": "robot", **annotations}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/service-account-token",
        "metadata": {"name": name, "namespace": "default", "annotations": all_annotations},
    }


def test_a_token_secret_gets_token_certificate_and_namespace(world: Cluster) -> None:
    world.create("serviceaccounts", ACCOUNT)
    world.create("secrets", secret())
    world.run(1)
    filled = world.get("secrets", "default/key")
    content = {key: base64.b64decode(value).decode() for key, value in filled["data"].items()}
    assert content == {"token": "robot by key", "namespace": "default", "ca.crt": "the authority"}
    uid = world.get("serviceaccounts", "default/robot")["metadata"]["uid"]
    assert filled["metadata"]["annotations"]["kubernetes.io/service-account.uid"] == uid


def test_existing_data_is_kept_except_for_the_certificate(world: Cluster) -> None:
    world.create("serviceaccounts", ACCOUNT)
    own = base64.b64encode(b"own").decode()
    world.create("secrets", {**secret(), "data": {"token": own, "ca.crt": own, "other": own}})
    world.run(1)
    data = world.get("secrets", "default/key")["data"]
    assert (data["token"], data["other"]) == (own, own)
    assert base64.b64decode(data["ca.crt"]) == b"the authority"


def test_a_token_secret_is_deleted_with_its_account(world: Cluster) -> None:
    world.create("secrets", secret("too-early"))
    world.run(1)
    world.create("serviceaccounts", ACCOUNT)
    world.create("secrets", secret())
    world.create("secrets", secret("of-another", **{"kubernetes.io/service-account.uid": "another"}))
    world.create("secrets", {**secret("plain"), "type": "Opaque"})
    world.run(1)
    assert set(world.store.all("secrets")) == {"default/key", "default/plain"}

    world.delete("serviceaccounts", "default/robot")
    world.run(1)
    assert set(world.store.all("secrets")) == {"default/plain"}


def test_a_deleted_secret_is_removed_from_its_account(world: Cluster) -> None:
    world.create("serviceaccounts", {**ACCOUNT, "secrets": [{"name": "key"}, {"name": "other"}]})
    another = {**ACCOUNT, "metadata": {"name": "another", "namespace": "default"}, "secrets": [{"name": "key"}]}
    world.create("serviceaccounts", another)
    world.create("secrets", secret())
    world.run(1)
    world.delete("secrets", "default/key")
    world.run(1)
    assert world.get("serviceaccounts", "default/robot")["secrets"] == [{"name": "other"}]
    assert world.get("serviceaccounts", "default/another")["secrets"] == [{"name": "key"}]
