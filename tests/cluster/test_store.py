from __future__ import annotations

import weakref

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


#: Steps of (names, value): objects that do not exist are created, others get the value, or are deleted for None.
rounds = st.lists(st.tuples(st.sets(st.sampled_from("abcd"), min_size=1), st.none() | st.integers(0, 9)), max_size=12)
Plan = list[tuple[set[str], int | None]]


def write_all(store: Store, plan: Plan) -> list[tuple[int, dict[Key, KubeObject]]]:
    """Apply a plan and return each version reached with the state at that version, according to a dictionary."""
    model: dict[Key, KubeObject] = {}
    states = [(0, dict(model))]
    for names, value in plan:
        existing = [key for key in keys("".join(sorted(names))) if key in model]
        new = [key for key in keys("".join(sorted(names))) if key not in model]
        objects: list[KubeObject] = [{"value": value}] * 4
        if value is None and existing:
            store.delete(POD, existing, NOW)
            for key in existing:
                del model[key]
        elif value is not None:
            if existing:
                store.replace(POD, existing, objects[: len(existing)], NOW)
            if new:
                store.create(POD, new, objects[: len(new)], NOW)
            model |= dict.fromkeys(existing + new, objects[0])
        assert store.all(POD) == model
        states.append((store.version, dict(model)))
    return states


@given(rounds)
def test_the_store_has_the_same_objects_as_a_dictionary(plan: Plan) -> None:
    store = Store()

    version, state = write_all(store, plan)[-1]

    assert (store.version, store.all(POD)) == (version, state)


@given(rounds)
def test_replaying_the_history_from_any_version_gives_the_current_state(plan: Plan) -> None:
    store = Store()
    states = write_all(store, plan)

    for version, state in states:
        assert replay(state, changes_since(store, version)) == store.all(POD)


@given(rounds)
def test_versions_are_consecutive_and_an_object_has_the_version_of_its_latest_change(plan: Plan) -> None:
    store = Store()
    write_all(store, plan)

    changes = changes_since(store, 0)

    assert [change.version for change in changes] == list(range(1, store.version + 1))
    latest = {change.key: change.version for change in changes}
    assert all(store.version_of(POD, key) == latest[key] for key in store.all(POD))


def test_a_version_older_than_the_history_is_compacted() -> None:
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


def test_setting_a_status_keeps_the_other_fields_and_does_not_change_the_old_object() -> None:
    store = Store()
    old = {"spec": {"nodeName": "n"}, "status": {"phase": "Pending"}}
    store.create(POD, keys("a"), [old], NOW)

    store.set_statuses(POD, keys("a"), {"phase": "Running"}, NOW)

    assert store.get(POD, keys("a")[0]) == {"spec": {"nodeName": "n"}, "status": {"phase": "Running"}}
    assert old["status"] == {"phase": "Pending"}


def test_a_deletion_has_the_last_state_of_the_object() -> None:
    store = Store()
    batches: list[Batch] = []
    store.create(POD, keys("ab"), [{"value": 1}, {"value": 2}], NOW)
    store.subscribe(POD, lambda batch, now: batches.append(batch))

    store.delete(POD, keys("b"), NOW)

    [batch] = batches
    assert (batch.type, batch.keys, batch.objects) == (ChangeType.DELETED, keys("b"), [{"value": 2}])
    assert store.get(POD, keys("b")[0]) is None


def test_listeners_get_each_batch_of_their_kind_once_in_the_order_of_their_subscriptions() -> None:
    store = Store()
    calls: list[str] = []
    store.subscribe_all(lambda batch, now: calls.append(f"any {batch.kind}"))
    store.subscribe(POD, lambda batch, now: calls.append(f"first {len(batch.keys)}"))
    store.subscribe(POD, lambda batch, now: calls.append(f"second {len(batch.keys)}"))

    store.create(POD, keys("ab"), [{}, {}], NOW)
    store.replace(POD, keys("a"), [{}], NOW)
    store.create("Node", [Key("n")], [{}], NOW)

    assert calls == ["first 2", "second 2", f"any {POD}", "first 1", "second 1", f"any {POD}", "any Node"]


def test_a_listener_that_writes_is_a_bug() -> None:
    store = Store()
    store.subscribe(POD, lambda batch, now: store.create(POD, keys("b"), [{}], now))

    with pytest.raises(Bug, match="a listener wrote"):
        store.create(POD, keys("a"), [{}], NOW)


def test_creating_an_object_twice_or_changing_a_missing_one_is_a_bug() -> None:
    store = Store()
    store.create(POD, keys("a"), [{}], NOW)

    with pytest.raises(Bug, match="exists already"):
        store.create(POD, keys("ba"), [{}, {}], NOW)
    with pytest.raises(Bug, match="there is no Pod"):
        Store().replace(POD, keys("a"), [{}], NOW)
    with pytest.raises(Bug, match="there is no Pod"):
        Store().delete(POD, keys("a"), NOW)


def test_the_history_is_limited_in_size() -> None:
    store = Store(history_limit=1000, history_bytes=10_000)
    store.create(POD, keys("a"), [{"value": "x" * 1000}], NOW)
    for number in range(100):
        store.replace(POD, keys("a"), [{"value": f"{number}" + "x" * 1000}], NOW)

    history = changes_since(store, store.oldest_version)
    assert 5 <= len(history) <= 10
    with pytest.raises(Compacted):
        changes_since(store, store.oldest_version - 1)


def test_the_size_of_the_history_is_limited_when_only_a_sample_is_measured() -> None:
    store = Store(history_limit=100_000, history_bytes=1_000_000, sampling_interval=8)
    store.create(POD, keys("a"), [{"value": "x" * 1000}], NOW)
    for number in range(5_000):
        store.replace(POD, keys("a"), [{"value": f"{number}" + "x" * 1000}], NOW)

    # About 1,000 changes, of which some 120 are measured: the bounds are more than five standard deviations away.
    assert 500 <= len(changes_since(store, store.oldest_version)) <= 1500


def test_large_objects_cannot_be_hidden_between_small_ones() -> None:
    store = Store(history_limit=100_000, history_bytes=1_000_000, sampling_interval=8)
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


def test_the_history_can_be_compacted_up_to_a_version() -> None:
    store = Store()
    for name in "abcd":
        store.create(POD, keys(name), [{}], NOW)

    store.compact(2)

    assert store.oldest_version == 2
    assert [change.key for change in changes_since(store, 2)] == keys("cd")


@given(rounds)
def test_a_view_has_the_objects_of_any_version_in_order(plan: Plan) -> None:
    store = Store()
    store.view(POD)

    for version, expected in write_all(store, plan):
        view = store.view(POD, version)

        assert [(key, entry[0]) for key, entry in view.between("", None)] == sorted(expected.items())
        inner = [key for key in sorted(expected) if "default/b" <= key < "default/d"]
        assert [key for key, _ in view.between("default/b", "default/d")] == inner
        assert view.count("default/b", "default/d") == len(inner)
        for key in keys("abcd"):
            entry = view.get(key)
            assert (entry and entry[0]) == expected.get(key)


def test_a_watch_far_behind_reads_only_the_changes_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """It resumes for each piece that its client has read, so reading all newer changes each time is quadratic."""
    store = Store(history_limit=100_000)
    for number in range(20_000):
        store.create(POD, [Key(f"default/{number}")], [{}], NOW)
    reads = 0

    def last_version(batch: Batch) -> int:
        nonlocal reads
        reads += 1
        return batch.last_version

    monkeypatch.setattr("batkube.cluster.store._LAST_VERSION", last_version)
    versions = [next(store.batches_since(version)).first_version for version in range(0, 20_000, 1_000)]

    assert versions == [version + 1 for version in range(0, 20_000, 1_000)]
    assert reads < 20 * 16


def test_changes_beyond_the_history_are_released() -> None:
    class Value(dict[str, object]):
        """A dictionary that can be referenced weakly."""

    store, value = Store(history_limit=1), Value()
    released = weakref.ref(value)
    store.create(POD, [Key("default/a")], [value], NOW)
    del value
    store.replace(POD, [Key("default/a")], [{}], NOW)
    assert released() is not None
    store.replace(POD, [Key("default/a")], [{}], NOW)

    assert released() is None


def test_the_history_is_the_same_after_many_changes() -> None:
    """The list of the history is cut from time to time."""
    store = Store(history_limit=10)
    store.create(POD, [Key("default/a")], [{}], NOW)
    for number in range(5_000):
        store.replace(POD, [Key("default/a")], [{"value": number}], NOW)
        oldest = max(0, store.version - 10)
        assert store.oldest_version == oldest
        assert [change.version for change in changes_since(store, oldest)] == [*range(oldest + 1, store.version + 1)]
