"""Defaults, admission and strategies accept any object with the shape of its kind."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

from batkube.api.admission.chain import AdmissionChain
from batkube.api.decoding.objects import DecodeError, decode
from batkube.api.groups.kind_model.context import StrategyContext
from batkube.api.groups.scheme.defaulting import apply_defaults
from batkube.api.groups.scheme.strategies import prepare_create, prepare_update
from batkube.api.requests.statuses import Failure
from batkube.cluster.kinds import KindTable, Resource
from batkube.cluster.schemas import Schema, Shape
from batkube.cluster.store import Key, Store
from batkube.kernel.instants import START

TABLE = KindTable.builtin()
RESOURCES = [each for each in TABLE.resources() if {"create", "update"} <= set(each.verbs)]
WORDS = [
    "",
    "a",
    "None",
    "x.y/z",
    "10.96.0.9",
    "Always",
    "ClientIP",
    "LoadBalancer",
    "ExternalName",
    "Container",
    "cpu",
]
VALUES: dict[Shape, list[Any]] = {
    Shape.INTEGER: [0, 1, -1, 80],
    Shape.NUMBER: [0, 1.5],
    Shape.BOOLEAN: [False, True],
    Shape.BYTES: ["", "eA=="],
    Shape.QUANTITY: ["0", "1", "100m", "1Gi", "5n"],
    Shape.INT_OR_STRING: [0, "50%", ""],
    Shape.TIME: ["2000-01-01T00:00:00Z"],
    Shape.MICRO_TIME: ["2000-01-01T00:00:00.000000Z"],
    Shape.DURATION: ["1m0s"],
    Shape.ANY: [{}, {"a": 1}],
}


def drawn(schema: Schema, chance: random.Random, depth: int = 0) -> object:
    """Return a random value with the shape of `schema`, smaller at deeper levels."""
    if schema.shape is Shape.STRUCT:
        share = 0.75 if depth < 2 else 0.4
        return {
            name: drawn(field.schema, chance, depth + 1)
            for name, field in schema.fields.items()
            if chance.random() < share and depth < 9
        }
    if schema.items is not None:
        values = [drawn(schema.items, chance, depth + 1) for _ in range(chance.randrange(3))]
        return values if schema.shape is Shape.LIST else dict(zip(WORDS[1:], values, strict=False))
    if schema.shape is Shape.STRING:
        return chance.choice(list(schema.enum) or WORDS)
    return chance.choice(VALUES[schema.shape])


def sent(resource: Resource, chance: random.Random) -> dict[str, Any]:
    """Return an object as a client may send it, with the name of all objects here."""
    value = drawn(resource.schema, chance)
    assert isinstance(value, dict)
    metadata = {name: (value.get("metadata") or {}).get(name) for name in ("labels", "annotations", "finalizers")}
    named = {**metadata, "name": "x", "namespace": "n", "creationTimestamp": "2000-01-01T00:00:00Z"}
    value = {**value, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": named}
    obj: dict[str, Any] = decode(value, resource.schema).object
    apply_defaults(resource, obj)
    return obj


@pytest.mark.parametrize("seed", range(20))
def test_any_object_is_prepared_or_rejected_without_changing_live_objects(seed: int) -> None:
    chance = random.Random(seed)
    store = Store()
    store.create("namespaces", [Key("n")], [{"metadata": {"name": "n"}, "status": {"phase": "Active"}}], START)
    admission, context = AdmissionChain(store, random.Random(seed)), StrategyContext(store, START)
    prepared = 0
    for resource in RESOURCES:
        live: dict[str, Any] | None = None
        for subresource in ("", "", *resource.subresources):
            if subresource not in ("", "status", "resize", "ephemeralcontainers", "finalize", "approval"):
                continue
            before = copy.deepcopy(live)
            try:
                new = sent(resource, chance)
                namespace = "n" if resource.namespaced else ""
                attempt = admission.new_request(
                    resource, new, live, START, namespace=namespace, name="x", subresource=subresource
                )
                admission.admit(attempt)
                if live is None:
                    prepare_create(resource, new, context)
                else:
                    prepare_update(resource, new, live, context, subresource)
                admission.validate(attempt)
            except (Failure, DecodeError):
                continue
            assert live == before, f"{resource.storage}/{subresource} edited the live object"
            live = new
            prepared += 1
    assert prepared > len(RESOURCES)
