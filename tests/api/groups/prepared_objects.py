"""Objects as strategies prepare them on creation and update."""

from __future__ import annotations

import copy
from typing import Any

from batkube.api.decoding.objects import decode
from batkube.api.groups.kind_model.context import StrategyContext
from batkube.api.groups.scheme.defaulting import apply_defaults
from batkube.api.groups.scheme.strategies import prepare_create, prepare_update
from batkube.cluster.kinds import KindTable, Resource
from batkube.cluster.store import Store
from batkube.kernel.instants import START

TABLE = KindTable.builtin()
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}


def resource_of(value: dict[str, Any]) -> Resource:
    group, _, version = value["apiVersion"].rpartition("/")
    match = TABLE.of_kind(group, version, value["kind"])
    assert match is not None
    return match


def filled(value: dict[str, Any]) -> dict[str, Any]:
    obj: dict[str, Any] = decode(copy.deepcopy(value), resource_of(value).schema).object
    apply_defaults(resource_of(value), obj)
    return obj


def created(value: dict[str, Any], store: Store | None = None) -> dict[str, Any]:
    obj = filled(value)
    obj["metadata"]["uid"] = "the-uid"
    prepare_create(resource_of(value), obj, StrategyContext(store or Store(), START, "me", ("us",)))
    return obj


def updated(old: dict[str, Any], change: dict[str, Any], subresource: str = "") -> dict[str, Any]:
    """Update `old` with the fields of `change`, by dotted path (None removes a field)."""
    new = copy.deepcopy(old)
    for path, value in change.items():
        *parents, name = path.split(".")
        place = new
        for parent in parents:
            place = place.setdefault(parent, {})
        if value is None:
            place.pop(name, None)
        else:
            place[name] = value
    apply_defaults(resource_of(new), new)
    before = copy.deepcopy(old)
    prepare_update(resource_of(new), new, old, StrategyContext(Store(), START), subresource)
    assert old == before, "a strategy must not edit the live object"
    return new


def made(kind: str, version: str, **fields: object) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "x", "namespace": "n"}, **fields}


def pod(**spec: object) -> dict[str, Any]:
    return made("Pod", "v1", spec={"containers": [{"name": "c", "image": "i:1"}], **spec})


def deployment() -> dict[str, Any]:
    return made("Deployment", "apps/v1", spec={"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE})
