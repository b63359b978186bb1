from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.cluster.store import Batch, Change, ChangeType, Compacted, Key, KubeObject, Store
from batkube.kernel.errors import Bug
from batkube.kernel.instants import Instant

NOW = Instant(0)
POD = "Pod"


def keys(names: str) -> list[Key]:
    return [Key(f"default/{name}") for name in names]


def changes_since(store: Store, version: int) -> list[Change]:
    """Return every change after `version`, oldest first."""
    return [change for batch in store.batches_since(version) for change in batch.changes() if change.version > version]


def replay(state: dict[Key, KubeObject], changes: list[Change]) -> dict[Key, KubeObject]:
    state = dict(state)
    for change in changes:
        if change.type is ChangeType.DELETED:
            del state[change.key]
        else:
            state[change.key] = change.object
    return state


#: Rounds of (names, value): what is not there is created, what is there gets the value, or is deleted for None.
rounds = st.lists(st.tuples(st.sets(st.sampled_from("abcd"), min_size=1), st.none() | st.integers(0, 9)), max_size=12)
Plan = list[tuple[set[str], int | None]]


def write_all(store: Store, plan: Plan) -> list[tuple[int, dict[Key, KubeObject]]]:
    """Write a plan and return every version reached with the state then, kept by a plain dictionary beside it."""
    model: dict[Key, KubeObject] = {}
    seen = [(0, dict(model))]
    for names, value in plan:
        here = [key for key in keys("".join(sorted(names))) if key in model]
        new = [key for key in keys("".join(sorted(names))) if key not in model]
        objects: list[KubeObject] = [{"value": value}] * 4
        if value is None and here:
            store.delete(POD, here, NOW)
            for key in here:
                del model[key]
        elif value is not None:
            if here:
                store.replace(POD, here, objects[: len(here)], NOW)
            if new:
                store.create(POD, new, objects[: len(new)], NOW)
            model |= dict.fromkeys(here + new, objects[0])
        assert store.all(POD) == model
        seen.append((store.version, dict(model)))
    return seen


@given(rounds)
def test_the_store_holds_what_a_plain_dictionary_would(plan: Plan) -> None:
    store = Store()

    version, state = write_all(store, plan)[-1]

    assert (store.version, store.all(POD)) == (version, state)


@given(rounds)
def test_replaying_the_history_from_any_version_rebuilds_the_present(plan: Plan) -> None:
    store = Store()
    seen = write_all(store, plan)

    for version, state in seen:
        assert replay(state, changes_since(store, version)) == store.all(POD)


@given(rounds)
def test_versions_ascend_without_a_gap_and_an_object_has_that_of_its_latest_change(plan: Plan) -> None:
    store = Store()
    write_all(store, plan)

    changes = changes_since(store, 0)

    assert [change.version for change in changes] == list(range(1, store.version + 1))
    latest = {change.key: change.version for change in changes}
    assert all(store.version_of(POD, key) == latest[key] for key in store.all(POD))


def test_a_version_older_than_the_history_is_gone() -> None:
    store = Store(history_limit=3)
    for name in "abcde":
        store.create(POD, keys(name), [{}], NOW)

    assert [change.key for change in changes_since(store, 2)] == keys("cde")
    with pytest.raises(Compacted, match="the oldest kept is 2"):
        changes_since(store, 1)


def test_the_history_keeps_whole_batches_and_at_least_its_limit() -> None:
    store = Store(history_limit=3)
    store.create(POD, keys("abcd"), [{}] * 4, NOW)
    store.delete(POD, keys("ab"), NOW)

    assert len(changes_since(store, 0)) == 6
    assert [change.type for change in changes_since(store, 3)] == ["ADDED", "DELETED", "DELETED"]


def test_a_new_status_leaves_the_rest_of_an_object_and_the_old_object_alone() -> None:
    store = Store()
    old = {"spec": {"nodeName": "n"}, "status": {"phase": "Pending"}}
    store.create(POD, keys("a"), [old], NOW)

    store.set_status(POD, keys("a"), {"phase": "Running"}, NOW)

    assert store.get(POD, keys("a")[0]) == {"spec": {"nodeName": "n"}, "status": {"phase": "Running"}}
    assert old["status"] == {"phase": "Pending"}


def test_a_deletion_is_told_with_the_object_as_it_last_was() -> None:
    store = Store()
    heard: list[Batch] = []
    store.create(POD, keys("ab"), [{"value": 1}, {"value": 2}], NOW)
    store.subscribe(POD, lambda batch, now: heard.append(batch))

    store.delete(POD, keys("b"), NOW)

    [batch] = heard
    assert (batch.type, batch.keys, batch.objects) == (ChangeType.DELETED, keys("b"), [{"value": 2}])
    assert store.get(POD, keys("b")[0]) is None


def test_listeners_hear_a_batch_once_of_their_kind_only_and_never_their_own_words() -> None:
    store = Store()
    heard: list[str] = []
    me = object()
    store.subscribe(POD, lambda batch, now: heard.append(f"all {len(batch.keys)}"))
    store.subscribe(POD, lambda batch, now: heard.append("me"), author=me)

    store.create(POD, keys("ab"), [{}, {}], NOW)
    store.replace(POD, keys("a"), [{}], NOW, author=me)
    store.create("Node", [Key("n")], [{}], NOW)

    assert heard == ["all 2", "me", "all 1"]


def test_a_listener_that_writes_is_a_bug() -> None:
    store = Store()
    store.subscribe(POD, lambda batch, now: store.create(POD, keys("b"), [{}], now))

    with pytest.raises(Bug, match="a listener wrote"):
        store.create(POD, keys("a"), [{}], NOW)


def test_creating_twice_or_changing_or_deleting_what_is_not_there_is_a_bug() -> None:
    store = Store()
    store.create(POD, keys("a"), [{}], NOW)

    with pytest.raises(Bug, match="exists already"):
        store.create(POD, keys("ba"), [{}, {}], NOW)
    with pytest.raises(Bug, match="there is no Pod"):
        Store().replace(POD, keys("a"), [{}], NOW)
    with pytest.raises(Bug, match="there is no Pod"):
        Store().delete(POD, keys("a"), NOW)


def test_the_history_is_forgotten_beyond_a_size() -> None:
    store = Store(history_limit=1000, history_bytes=10_000)
    store.create(POD, keys("a"), [{"value": "x" * 1000}], NOW)
    for number in range(100):
        store.replace(POD, keys("a"), [{"value": f"{number}" + "x" * 1000}], NOW)

    kept = changes_since(store, store.oldest_version)
    assert 5 <= len(kept) <= 10
    with pytest.raises(Compacted):
        changes_since(store, store.oldest_version - 1)


def test_the_size_of_the_history_is_kept_when_only_some_changes_are_weighed() -> None:
    store = Store(history_limit=100_000, history_bytes=1_000_000, weighed_one_in=8)
    store.create(POD, keys("a"), [{"value": "x" * 1000}], NOW)
    for number in range(5_000):
        store.replace(POD, keys("a"), [{"value": f"{number}" + "x" * 1000}], NOW)

    # About a thousand, of which some 120 are weighed: it would take more than five standard deviations.
    assert 500 <= len(changes_since(store, store.oldest_version)) <= 1500


def test_large_objects_cannot_be_hidden_between_small_ones() -> None:
    store = Store(history_limit=100_000, history_bytes=1_000_000, weighed_one_in=8)
    store.create(POD, keys("ab"), [{"value": ""}, {"value": ""}], NOW)
    for number in range(2_000):
        store.replace(POD, keys("a"), [{"value": f"{number}"}], NOW)
        for _ in range(7):
            store.replace(POD, keys("b"), [{"value": f"{number}" + "x" * 1000}], NOW)

    assert 500 <= len(changes_since(store, store.oldest_version)) <= 2000


def test_live_objects_do_not_count_as_history() -> None:
    store = Store(history_limit=1000, history_bytes=10_000)
    for name in "abcdefghijklmnopqrst":
        store.create(POD, keys(name), [{"value": "x" * 1000}], NOW)

    assert store.oldest_version == 0


def test_the_history_can_be_forgotten_up_to_a_version() -> None:
    store = Store()
    for name in "abcd":
        store.create(POD, keys(name), [{}], NOW)

    store.compact(2)

    assert store.oldest_version == 2
    assert [change.key for change in changes_since(store, 2)] == keys("cd")
