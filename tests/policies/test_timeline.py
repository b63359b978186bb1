"""A timeline is compared with a list of all reservations."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.policies.conftest import a_job, nodes, whole

from batkube.kernel.instants import Duration, Instant
from batkube.kernel.intervals import lowest
from batkube.policies.machine_room import MachinePlacement, MachineRoom
from batkube.policies.timeline import Slot, Timeline

MACHINES = 6
requests = st.lists(st.tuples(st.integers(1, MACHINES), st.integers(1, 9)), max_size=12)


def plan() -> Timeline[MachineRoom]:
    return Timeline(Instant(0), whole(MACHINES))


def earliest_by_trying(reserved: list[Slot], size: int, length: int) -> tuple[int, int]:
    """Return the earliest start and its machines, found by trying every instant."""
    for start in range(1000):
        busy = 0
        for slot in reserved:
            if slot.start < start + length and start < slot.end:
                busy |= slot.placement.mask
        free = whole(MACHINES).mask & ~busy
        if free.bit_count() >= size:
            return start, lowest(free, size)
    raise AssertionError("everything ends within 1000")


@given(requests)
def test_a_job_gets_the_earliest_start_and_the_lowest_machines_free_throughout(requests: list[tuple[int, int]]) -> None:
    timeline, reserved = plan(), list[Slot]()

    for size, length in requests:
        slot = timeline.earliest(a_job("j", size, 1), Duration(length))

        assert slot is not None
        assert (slot.start, slot.placement.mask) == earliest_by_trying(reserved, size, length)
        timeline.reserve(slot)
        reserved.append(slot)


@given(requests, st.randoms(use_true_random=False))
def test_releasing_everything_in_any_order_leaves_one_empty_slice(
    requests: list[tuple[int, int]], order: random.Random
) -> None:
    timeline, reserved = plan(), list[Slot]()
    for size, length in requests:
        slot = timeline.earliest(a_job("j", size, 1), Duration(length))
        assert slot is not None
        timeline.reserve(slot)
        reserved.append(slot)

    order.shuffle(reserved)
    for slot in reserved:
        timeline.release(slot)

    assert [(at, room.mask) for at, room in timeline.slices] == [(0, 0b111111)]


def test_past_time_is_discarded_and_the_rest_of_a_slot_can_be_released() -> None:
    timeline = plan()
    slot = Slot(Instant(0), Instant(10), MachinePlacement(0b11))
    timeline.reserve(slot)

    timeline.advance(Instant(4))

    assert [(at, room.mask) for at, room in timeline.slices] == [(4, 0b111100), (10, 0b111111)]
    timeline.release(slot)
    assert [(at, room.mask) for at, room in timeline.slices] == [(4, 0b111111)]


def test_releasing_a_slot_that_is_over_changes_nothing() -> None:
    timeline = plan()
    slot = Slot(Instant(0), Instant(10), MachinePlacement(0b11))
    timeline.reserve(slot)
    timeline.advance(Instant(10))

    timeline.release(slot)

    assert [(at, room.mask) for at, room in timeline.slices] == [(10, 0b111111)]


def test_reserved_machines_cannot_be_reserved_again() -> None:
    timeline = plan()
    timeline.reserve(Slot(Instant(5), Instant(10), MachinePlacement(0b11)))

    with pytest.raises(ValueError, match="not free"):
        timeline.reserve(Slot(Instant(0), Instant(6), MachinePlacement(0b10)))


def test_a_job_larger_than_the_cluster_never_gets_a_slot() -> None:
    assert plan().earliest(a_job("j", MACHINES + 1, 1), Duration(1)) is None


def test_rooms_by_requests_can_be_planned() -> None:
    timeline = Timeline(Instant(0), nodes({"cpu": 4000}))
    half = a_job("half", 1, 1, requests=(("cpu", 2000),))
    most = a_job("most", 1, 1, requests=(("cpu", 3000),))

    for _ in range(2):
        slot = timeline.earliest(half, Duration(10))
        assert slot is not None
        assert slot.start == 0
        timeline.reserve(slot)
    slot = timeline.earliest(most, Duration(10))

    assert slot is not None
    assert slot.start == 10
