"""Resource allocations of nodes, as their kubelets count them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.cluster.mapping import NODE
from batkube.cluster.store import Key, KubeObject, Store
from batkube.execution.nodes.allocations import NodeAllocations
from batkube.kernel.errors import Bug
from batkube.kernel.instants import START

ONE_CPU = (("cpu", 1000), ("pods", 1))


def a_node(cpu: str) -> KubeObject:
    return {"metadata": {}, "spec": {}, "status": {"allocatable": {"cpu": cpu, "pods": "10"}}}


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def accounts(store: Store) -> NodeAllocations:
    """Return the allocations of two nodes with two cpus each."""
    accounts = NodeAllocations(store)
    store.create(NODE, [Key("a"), Key("b")], [a_node("2"), a_node("2")], START)
    return accounts


def test_pods_that_do_not_all_fit_allocate_nothing_and_the_reason_is_returned(accounts: NodeAllocations) -> None:
    shortage = accounts.allocate(["a", "a", "b", "a"], ONE_CPU)

    assert shortage is not None
    assert str(shortage) == "Node didn't have enough resource: cpu, requested: 1000, used: 2000, capacity: 2000"
    assert accounts.busy_node_count == 0
    assert accounts.allocate(["a", "a", "b", "b"], ONE_CPU) is None
    assert accounts.busy_node_count == 2


def test_a_node_that_grows_has_room_for_more_and_one_that_shrinks_for_less(
    store: Store, accounts: NodeAllocations
) -> None:
    accounts.allocate(["a", "b"], ONE_CPU)
    store.replace(NODE, [Key("a"), Key("b")], [a_node("3"), a_node("1")], START)

    assert accounts.allocate(["a", "a"], ONE_CPU) is None
    assert accounts.allocate(["b"], ONE_CPU) is not None


def test_a_release_on_a_deleted_node_is_ignored(store: Store, accounts: NodeAllocations) -> None:
    accounts.allocate(["a"], ONE_CPU)
    store.delete(NODE, [Key("a")], START)
    assert (accounts.busy_node_count, "a" in accounts, "b" in accounts) == (0, False, True)

    accounts.release(["a"], ONE_CPU)
    store.create(NODE, [Key("a")], [a_node("2")], START)

    assert accounts.allocate(["a", "a"], ONE_CPU) is None


def test_a_system_pod_takes_resources_and_does_not_make_its_node_busy(accounts: NodeAllocations) -> None:
    accounts.reserve("a", ONE_CPU)

    assert accounts.busy_node_count == 0
    assert accounts.allocate(["a", "a"], ONE_CPU) is not None


def test_releasing_more_than_was_allocated_is_a_bug(accounts: NodeAllocations) -> None:
    accounts.allocate(["a"], (("cpu", 500),))

    accounts.release(["a"], ONE_CPU)

    with pytest.raises(Bug, match="pods hold -500 of the 4000 cpu"):
        accounts.record_usage(START)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 2500)), max_size=30))
def test_no_node_allocates_more_than_it_offers(wishes: list[tuple[str, int]]) -> None:
    store = Store()
    accounts = NodeAllocations(store)
    store.create(NODE, [Key("a"), Key("b")], [a_node("2"), a_node("2")], START)
    held: list[tuple[str, int]] = []

    for number, (node, cpu) in enumerate(wishes):
        fits = sum(taken for place, taken in held if place == node) + cpu <= 2000
        assert (accounts.allocate([node], (("cpu", cpu),)) is None) == fits
        if fits:
            held.append((node, cpu))
        if number % 3 == 2 and held:
            place, taken = held.pop(0)
            accounts.release([place], (("cpu", taken),))
        assert accounts.busy_node_count == len({place for place, _ in held})
