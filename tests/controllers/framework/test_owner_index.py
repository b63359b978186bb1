"""The index of owned objects and orphans equals a search through all objects."""

from __future__ import annotations

import random
from typing import Any

import pytest

from batkube.cluster.selectors import selector_of
from batkube.cluster.store import Key, KubeObject, Store
from batkube.controllers.framework.owner_index import OwnerIndex
from batkube.kernel.instants import Instant

NOW = Instant(0)
POD = "pods"
SELECTORS: list[dict[str, Any] | None] = [
    {"matchLabels": {"app": "a"}},
    {"matchLabels": {"app": "b", "tier": "x"}},
    {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a"]}]},
    {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}]},
    {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]},
    {},
    None,
]


def random_pod(rng: random.Random) -> KubeObject:
    metadata: KubeObject = {"labels": {"app": rng.choice("abc")}} if rng.random() < 0.8 else {}
    if metadata and rng.random() < 0.5:
        metadata["labels"]["tier"] = rng.choice("xy")
    if rng.random() < 0.4:
        metadata["ownerReferences"] = [{"uid": rng.choice("12"), "controller": True}]
    return {"metadata": metadata}


@pytest.mark.parametrize("seed", range(5))
def test_orphans_are_those_that_a_search_through_all_objects_finds(seed: int) -> None:
    store, rng = Store(), random.Random(seed)
    index = OwnerIndex(store, POD)
    keys = [Key(f"{namespace}/{name}") for namespace in ("one", "two") for name in "abcdefgh"]

    for _ in range(300):
        key = rng.choice(keys)
        if store.get(POD, key) is None:
            store.create(POD, [key], [random_pod(rng)], NOW)
        elif rng.random() < 0.3:
            store.delete(POD, [key], NOW)
        else:
            store.replace(POD, [key], [random_pod(rng)], NOW)

        for selector in map(selector_of, SELECTORS):
            expected = [
                pod
                for _, pod in store.in_namespace(POD, "one")
                if "ownerReferences" not in pod["metadata"] and selector.matches(pod["metadata"].get("labels"))
            ]
            orphans = index.orphans("one", selector)
            assert sorted(map(id, orphans)) == sorted(map(id, expected))


def test_orphans_with_other_labels_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reconciliation looks for orphans, among thousands of pods that a client may have created itself."""
    store = Store()
    index = OwnerIndex(store, POD)
    pods = [{"metadata": {"labels": {"app": "a" if number < 3 else "b"}}} for number in range(1_000)]
    store.create(POD, [Key(f"one/{number}") for number in range(1_000)], pods, NOW)
    read: list[Key] = []
    objects = store.objects
    monkeypatch.setattr(store, "objects", lambda kind, keys: (read.extend(keys), objects(kind, keys))[1])

    assert len(index.orphans("one", selector_of({"matchLabels": {"app": "a"}}))) == 3
    assert len(read) == 3
