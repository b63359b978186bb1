from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from batkube.execution.jobs.deadlock import PartialGang, find_deadlocked

NODES = ("n0", "n1", "n2")
ROOM = st.fixed_dictionaries(
    {node: st.fixed_dictionaries({"cpu": st.integers(0, 4), "memory": st.integers(0, 4)}) for node in NODES}
)
HALF = st.builds(
    PartialGang,
    demand=st.tuples(st.tuples(st.just("cpu"), st.integers(1, 2)), st.tuples(st.just("memory"), st.integers(0, 2))),
    nodes=st.lists(st.sampled_from(NODES), min_size=1, max_size=2).map(tuple),
    missing=st.integers(1, 3),
)
Free = dict[str, dict[str, int]]


def give(free: Free, half: PartialGang, node: str, sign: int) -> None:
    for resource, amount in half.demand:
        free[node][resource] += sign * amount


def can_place(free: Free, half: PartialGang, missing: int) -> bool:
    """Return whether the missing pods can be placed, by trying every node for every pod."""
    if missing == 0:
        return True
    for node in NODES:
        if all(free[node][resource] >= amount for resource, amount in half.demand):
            give(free, half, node, -1)
            fits = can_place(free, half, missing - 1)
            give(free, half, node, 1)
            if fits:
                return True
    return False


def completed_in(order: tuple[int, ...], halves: list[PartialGang], free: Free) -> list[int]:
    """Return the gangs that can be completed in this order, up to the first that cannot."""
    for position, number in enumerate(order):
        if not can_place(free, halves[number], halves[number].missing):
            return list(order[:position])
        for node in halves[number].nodes:
            give(free, halves[number], node, 1)
    return list(order)


def left_after_all(halves: list[PartialGang], room: Free) -> Free:
    """Return the free resources while all gangs hold their nodes."""
    free = {node: dict(amounts) for node, amounts in room.items()}
    for half in halves:
        for node in half.nodes:
            give(free, half, node, -1)
    return free


@given(st.lists(HALF, max_size=4), ROOM)
def test_a_deadlock_is_found_exactly_when_no_order_of_completion_exists(halves: list[PartialGang], spare: Free) -> None:
    # The capacity of each node is what the gangs hold there, plus spare resources.
    room = {node: dict(amounts) for node, amounts in spare.items()}
    for half in halves:
        for node in half.nodes:
            give(room, half, node, 1)

    stuck = find_deadlocked(halves, room)

    orders = itertools.permutations(range(len(halves)))
    completions = [completed_in(order, halves, left_after_all(halves, room)) for order in orders]
    most = max(completions, key=len)
    assert (stuck == []) == (len(most) == len(halves))
    assert set(stuck) == set(range(len(halves))) - set(most)


def test_four_gangs_of_ten_that_hold_all_sixteen_cpus_are_deadlocked() -> None:
    room = {f"node-{number}": {"cpu": 2000} for number in range(8)}
    nodes = [node for node in room for _ in range(2)]
    halves = [PartialGang((("cpu", 1000),), nodes[gang * 4 : gang * 4 + 4], 6) for gang in range(4)]

    assert find_deadlocked(halves, room) == [0, 1, 2, 3]


def test_one_gang_that_fits_frees_the_others() -> None:
    room = {"a": {"cpu": 2}, "b": {"cpu": 2}}
    one_short, two_short = PartialGang((("cpu", 1),), ("a",), 1), PartialGang((("cpu", 1),), ("a", "b"), 2)

    assert find_deadlocked([two_short, one_short], room) == []


def test_only_gangs_that_can_never_be_completed_are_returned() -> None:
    room = {"a": {"cpu": 2}, "b": {"cpu": 2}, "c": {"gpu": 1, "cpu": 2}}
    first = PartialGang((("cpu", 2),), ("a",), 1)
    second = PartialGang((("cpu", 2),), ("b",), 1)
    other = PartialGang((("gpu", 1),), (), 1)

    assert find_deadlocked([first, other, second], {**room, "c": {"gpu": 1}}) == [0, 2]
    assert find_deadlocked([first, other, second], room) == []
