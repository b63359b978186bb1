"""A mirror tells what changed while nobody watched, as changes."""

from __future__ import annotations

from batkube.cluster.mapping import POD
from batkube.cluster.store import Batch, KubeObject, Store
from batkube.joining.mirror import ClusterMirror, CollectionUpdate
from batkube.kernel.instants import Instant

NOW = Instant(5)


def a_pod(name: str, uid: str, phase: str = "Pending") -> KubeObject:
    return {"metadata": {"name": name, "namespace": "default", "uid": uid}, "status": {"phase": phase}}


def test_a_list_after_a_lost_watch_is_told_as_what_changed() -> None:
    store = Store()
    mirror = ClusterMirror(store)
    mirror.apply(
        CollectionUpdate(POD, [a_pod("a", "1"), a_pod("b", "2"), a_pod("c", "3"), a_pod("d", "4")], is_list=True), NOW
    )
    told: list[tuple[str, str]] = []

    def hear(batch: Batch, now: Instant) -> None:
        told.extend((batch.type.value, key) for key in batch.keys)

    store.subscribe(POD, hear)
    mirror.apply(
        CollectionUpdate(POD, [a_pod("a", "1"), a_pod("b", "2", "Running"), a_pod("c", "9")], is_list=True), NOW
    )

    assert told == [
        ("DELETED", "default/d"),
        ("MODIFIED", "default/b"),
        ("DELETED", "default/c"),
        ("ADDED", "default/c"),
    ]


def test_news_that_comes_late_does_no_harm() -> None:
    store = Store()
    mirror = ClusterMirror(store)

    mirror.apply(CollectionUpdate(POD, [a_pod("a", "1")], is_deletion=True), NOW)
    mirror.apply(CollectionUpdate(POD, [a_pod("a", "1")]), NOW)
    mirror.apply(CollectionUpdate(POD, [a_pod("a", "1")]), NOW)

    assert list(store.all(POD)) == ["default/a"]
