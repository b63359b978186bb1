"""A mirror applies lists and watch events of a cluster to a store."""

from __future__ import annotations

import msgspec

from batkube.cluster.mapping import POD
from batkube.cluster.store import Batch, KubeObject, Store
from batkube.emulation.client.reflector import CollectionUpdate
from batkube.joining.mirror import ClusterMirror
from batkube.kernel.instants import Instant

NOW = Instant(5)


def pod(name: str, uid: str, phase: str = "Pending") -> KubeObject:
    return {"metadata": {"name": name, "namespace": "default", "uid": uid}, "status": {"phase": phase}}


def update(*pods: KubeObject, is_list: bool = False, is_deletion: bool = False) -> CollectionUpdate:
    return CollectionUpdate([msgspec.Raw(msgspec.json.encode(pod)) for pod in pods], is_list, is_deletion)


def test_a_second_list_is_applied_as_changes() -> None:
    store = Store()
    mirror = ClusterMirror(store)
    mirror.apply(POD, update(pod("a", "1"), pod("b", "2"), pod("c", "3"), pod("d", "4"), is_list=True), NOW)
    changes: list[tuple[str, str]] = []

    def on_batch(batch: Batch, now: Instant) -> None:
        changes.extend((batch.type.value, key) for key in batch.keys)

    store.subscribe(POD, on_batch)
    mirror.apply(POD, update(pod("a", "1"), pod("b", "2", "Running"), pod("c", "9"), is_list=True), NOW)

    assert changes == [
        ("DELETED", "default/d"),
        ("MODIFIED", "default/b"),
        ("DELETED", "default/c"),
        ("ADDED", "default/c"),
    ]


def test_repeated_updates_have_no_effect() -> None:
    store = Store()
    mirror = ClusterMirror(store)

    mirror.apply(POD, update(pod("a", "1"), is_deletion=True), NOW)
    mirror.apply(POD, update(pod("a", "1")), NOW)
    mirror.apply(POD, update(pod("a", "1")), NOW)

    assert list(store.all(POD)) == ["default/a"]
