from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.cluster.store import Change, ChangeType, Compacted, KubeObject, ObjectKey, Store, Write
from batkube.kernel.errors import Bug
from batkube.kernel.instants import Instant

NOW = Instant(0)


def key(name: str) -> ObjectKey:
    return ObjectKey("Pod", "default", name)


def states_of(store: Store) -> dict[ObjectKey, KubeObject]:
    return {where: change.object for where, change in store.live("Pod").items()}


def replay(state: dict[ObjectKey, KubeObject], changes: list[Change]) -> dict[ObjectKey, KubeObject]:
    state = dict(state)
    for change in changes:
        if change.type is ChangeType.DELETED:
            del state[change.key]
        else:
            state[change.key] = change.object
    return state


#: Batches of (name, value); the value None deletes, and is left out where there is nothing to delete.
batches = st.lists(st.lists(st.tuples(st.sampled_from("abcd"), st.none() | st.integers(0, 9)), max_size=6), max_size=12)


def commit_all(store: Store, plan: list[list[tuple[str, int | None]]]) -> list[tuple[int, dict[ObjectKey, KubeObject]]]:
    """Commit a plan and return every version reached with the state then, beside a plain-dict model."""
    model: dict[ObjectKey, KubeObject] = {}
    seen = [(0, dict(model))]
    for batch in plan:
        writes: list[Write] = []
        for name, value in batch:
            where = key(name)
            if value is None and where not in model:
                continue
            if value is None:
                del model[where]
                writes.append((where, None))
            else:
                model[where] = {"value": value}
                writes.append((where, model[where]))
        store.commit("Pod", writes, NOW)
        assert states_of(store) == model
        seen.append((store.version, dict(model)))
    return seen


@given(batches)
def test_the_store_holds_what_a_plain_dictionary_would(plan: list[list[tuple[str, int | None]]]) -> None:
    commit_all(Store(), plan)


@given(batches)
def test_replaying_the_history_from_any_version_rebuilds_the_present(plan: list[list[tuple[str, int | None]]]) -> None:
    store = Store()
    seen = commit_all(store, plan)

    for version, state in seen:
        assert replay(state, store.changes_since(version)) == states_of(store)


@given(batches)
def test_versions_ascend_without_a_gap(plan: list[list[tuple[str, int | None]]]) -> None:
    store = Store()
    commit_all(store, plan)

    assert [change.version for change in store.changes_since(0)] == list(range(1, store.version + 1))


def test_a_version_older_than_the_history_is_gone() -> None:
    store = Store(history_limit=3)
    for number in range(5):
        store.commit("Pod", [(key(str(number)), {})], NOW)

    assert len(store.changes_since(2)) == 3
    with pytest.raises(Compacted, match="the oldest kept is 2"):
        store.changes_since(1)


def test_a_change_carries_the_object_before_and_after() -> None:
    store = Store()
    before, after = {"phase": "Pending"}, {"phase": "Running"}
    store.commit("Pod", [(key("a"), before)], NOW)

    [modified] = store.commit("Pod", [(key("a"), after)], NOW)
    [deleted] = store.commit("Pod", [(key("a"), None)], NOW)

    assert (modified.type, modified.previous, modified.object) == (ChangeType.MODIFIED, before, after)
    assert (deleted.type, deleted.object) == (ChangeType.DELETED, after)
    assert store.get(key("a")) is None


def test_listeners_hear_a_batch_once_and_only_their_kind() -> None:
    store = Store()
    heard: list[int] = []
    store.listen("Pod", lambda changes, now: heard.append(len(changes)))

    store.commit("Pod", [(key("a"), {}), (key("b"), {})], NOW)
    store.commit("Node", [(ObjectKey("Node", "", "n"), {})], NOW)

    assert heard == [2]


def test_a_listener_that_commits_is_a_bug() -> None:
    store = Store()
    store.listen("Pod", lambda changes, now: store.commit("Pod", [(key("b"), {})], now) and None)

    with pytest.raises(Bug, match="a listener committed"):
        store.commit("Pod", [(key("a"), {})], NOW)


def test_deleting_what_is_not_there_is_a_bug() -> None:
    with pytest.raises(Bug, match="does not exist"):
        Store().commit("Pod", [(key("a"), None)], NOW)
