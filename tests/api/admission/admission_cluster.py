"""A store with a namespace, an admission chain, and manifests to admit."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

from batkube.api.admission.chain import AdmissionChain
from batkube.api.decoding.objects import decode
from batkube.api.groups.kind_model.context import StrategyContext
from batkube.api.groups.scheme.defaulting import apply_defaults
from batkube.api.groups.scheme.strategies import prepare_create
from batkube.api.requests.statuses import Failure
from batkube.cluster.kinds import KindTable, Resource
from batkube.cluster.store import Key, KubeObject, Store
from batkube.kernel.instants import START

TABLE = KindTable.builtin()
ACTIVE = {"metadata": {"name": "n"}, "status": {"phase": "Active"}}


def resource_of(value: dict[str, Any]) -> Resource:
    group, _, version = value["apiVersion"].rpartition("/")
    found = TABLE.of_kind(group, version, value["kind"])
    assert found is not None
    return found


def made(kind: str, name: str, version: str = "v1", **fields: object) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **fields}


def pod(name: str = "p", requests: dict[str, str] | None = None, **spec: object) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "c", "image": "i:1"}
    if requests:
        container["resources"] = {"requests": requests}
    return made("Pod", name, spec={"containers": [container], **spec})


class Cluster:
    """A store with a namespace, and an admission chain."""

    def __init__(self, service_accounts: random.Random | None = None) -> None:
        self.store = Store()
        self.store.create("namespaces", [Key("n")], [ACTIVE], START)
        self.admission = AdmissionChain(self.store, service_accounts)

    def put(self, value: dict[str, Any]) -> None:
        """Store an object as it is."""
        resource = resource_of(value)
        value["metadata"].setdefault("creationTimestamp", "2000-01-01T00:00:00Z")
        self.store.create(resource.storage, [self.key(resource, value)], [value], START)

    def key(self, resource: Resource, value: KubeObject) -> Key:
        name = value["metadata"]["name"]
        return Key(f"n/{name}" if resource.namespaced else name)

    def write(self, value: dict[str, Any], old: KubeObject | None = None, subresource: str = "") -> dict[str, Any]:
        """Handle a write as the server does, without validation; return the object as it would be stored."""
        resource = resource_of(value)
        obj: dict[str, Any] = decode(copy.deepcopy(value), resource.schema).object
        apply_defaults(resource, obj)
        namespace = "n" if resource.namespaced else ""
        attempt = self.admission.new_request(
            resource, obj, old, START, namespace=namespace, name=value["metadata"]["name"], subresource=subresource
        )
        self.admission.admit(attempt)
        if old is None and not subresource:
            prepare_create(resource, obj, StrategyContext(self.store, START))
        for key, quota in self.admission.validate(attempt):
            self.store.replace("resourcequotas", [key], [quota], START)
        return obj

    def refusal(self, value: dict[str, Any], old: KubeObject | None = None) -> str:
        """Return why a write is refused."""
        with pytest.raises(Failure) as refused:
            self.write(value, old)
        assert refused.value.code == 403
        return refused.value.message
