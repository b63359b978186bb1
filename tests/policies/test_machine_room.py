"""Room in whole machines."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.policies.conftest import a_job, a_machine, whole

from batkube.kernel.intervals import mask_of
from batkube.policies.machine_room import MachinePlacement, MachineRoom
from batkube.policies.rooms import Choice

MACHINES = 70  # more than a machine word, to test big integers
rooms = st.builds(lambda ids: room_of(ids), st.sets(st.integers(0, MACHINES - 1)))
choices = st.sampled_from([*Choice, "random"])
SHARED = whole(MACHINES)


def room_of(free_ids: set[int]) -> MachineRoom:
    return MachineRoom(mask_of(sorted(free_ids)), SHARED.machines)


def chooser(choice: Choice | str) -> Choice | random.Random:
    return choice if isinstance(choice, Choice) else random.Random(7)


@given(rooms, st.integers(1, MACHINES), choices)
def test_a_job_fits_if_and_only_if_enough_machines_are_free_and_gets_free_ones(
    room: MachineRoom, size: int, choice: Choice | str
) -> None:
    job = a_job("j", size, 1)

    placement = room.fit(job, chooser(choice))

    assert (placement is not None) == room.holds(job) == (room.mask.bit_count() >= size)
    if placement is not None:
        assert len(placement.machine_ids) == size
        assert placement.mask & ~room.mask == 0


@given(rooms, st.integers(1, MACHINES), choices)
def test_taking_and_releasing_a_placement_restores_the_room(room: MachineRoom, size: int, choice: Choice | str) -> None:
    placement = room.fit(a_job("j", size, 1), chooser(choice))

    if placement is not None:
        assert (room - placement) + placement == room
        assert (room - placement).mask.bit_count() == room.mask.bit_count() - size


@given(rooms, rooms, st.integers(1, MACHINES))
def test_the_intersection_of_rooms_is_commutative_idempotent_and_a_lower_bound(
    one: MachineRoom, other: MachineRoom, size: int
) -> None:
    both = one & other

    assert both == other & one
    assert both & both == both
    placement = both.fit(a_job("j", size, 1))
    if placement is not None:
        assert (one - placement) & (other - placement) == both - placement


def test_the_lowest_ids_are_taken_first() -> None:
    room = room_of({3, 5, 6, 9})

    placement = room.fit(a_job("j", 2, 1))

    assert placement is not None
    assert placement.machine_ids == (3, 5)


def test_taking_a_machine_that_is_not_free_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"machines \[4\] are not free"):
        room_of({3, 5}) - MachinePlacement(mask_of([3, 4]))


def test_releasing_a_machine_that_was_not_taken_is_rejected() -> None:
    with pytest.raises(ValueError, match="not all are in use"):
        room_of({3, 5}) + MachinePlacement(mask_of([3]))
    with pytest.raises(ValueError, match="not all are in use"):
        whole(2) + MachinePlacement(mask_of([2]))


def test_a_room_is_full_if_no_machine_is_free() -> None:
    room = whole(2)

    assert not room.is_full
    assert (room - MachinePlacement(0b11)).is_full


def test_requests_restrict_a_job_to_large_enough_machines() -> None:
    room = MachineRoom.whole([a_machine(0, cpu=1000), a_machine(1, cpu=4000), a_machine(2, cpu=8000)])

    placement = room.fit(a_job("j", 2, 1, requests=(("cpu", 2000),)))

    assert placement is not None
    assert placement.machine_ids == (1, 2)
    assert room.fit(a_job("j", 3, 1, requests=(("cpu", 2000),))) is None


def test_a_resource_that_no_machine_has_never_fits() -> None:
    assert whole(3).fit(a_job("j", 1, 1, requests=(("nvidia.com/gpu", 1),))) is None


def test_pack_takes_the_smallest_machines_and_spread_the_largest() -> None:
    room = MachineRoom.whole([a_machine(n, cpu=cpu) for n, cpu in enumerate([8000, 2000, 4000, 2000, 8000])])
    job = a_job("j", 3, 1)

    packed, spread = room.fit(job, Choice.PACK), room.fit(job, Choice.SPREAD)

    assert packed is not None
    assert spread is not None
    assert packed.machine_ids == (1, 2, 3)
    assert spread.machine_ids == (0, 2, 4)


def test_a_random_choice_depends_only_on_the_generator() -> None:
    room = whole(50)
    job = a_job("j", 5, 1)

    draws = [room.fit(job, random.Random(seed)) for seed in (1, 1, 2)]

    assert draws[0] == draws[1] != draws[2]


@given(rooms, st.sets(st.integers(-3, MACHINES + 5)), st.integers(1, MACHINES), choices)
def test_a_room_of_chosen_machines_gives_only_free_ones_among_them(
    room: MachineRoom, chosen: set[int], size: int, choice: Choice | str
) -> None:
    placement = room.only(chosen).fit(a_job("j", size, 1), chooser(choice))
    free = {number for number in chosen if number >= 0 and room.mask >> number & 1}

    assert (placement is not None) == (len(free) >= size)
    if placement is not None:
        assert set(placement.machine_ids) <= free
        assert room - placement + placement == room
