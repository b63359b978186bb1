"""A program's garbage collections depend on its work only."""

from __future__ import annotations

import itertools

import pytest
from tests.timing.conftest import OtherSide

from batkube.timing.pages.clock_page import ClockPage
from batkube.timing.pages.garbage_collection import GarbageCollection

MEBI = 1 << 20
NOW, HEAP, WRITTEN, READ, LIVE = 1, 13, 16, 17, 18


def collections(page: ClockPage, program: OtherSide, noise: int) -> list[int]:
    """Return after which exchanges of 300 kB a program collects garbage, for an approximate size of its live heap."""
    garbage, moments = GarbageCollection(page), []
    for number in range(1, 200):
        program[READ], program[WRITTEN] = number * 280_000, number * 20_000
        program[LIVE] += 16 * 300_000
        program[LIVE] += noise if number % 2 else -noise
        if garbage.is_due():
            moments.append(number)
            program[HEAP] = program[LIVE] = 12_000_000 + noise
    return moments


def test_a_few_kilobytes_do_not_change_the_collections(page: ClockPage, program: OtherSide) -> None:
    moments = collections(page, program, noise=0)
    program[HEAP] = program[LIVE] = 0

    assert moments == collections(page, program, noise=20_000)
    assert [later - earlier for earlier, later in zip([0, *moments], moments, strict=False)] == [28] * 7


@pytest.mark.parametrize(
    ("left", "traffic", "is_due"),
    [
        (12 * MEBI, 8 * MEBI - 1, False),
        (12 * MEBI, 8 * MEBI, True),
        (512 * MEBI, 40 * MEBI - 1, False),
        (512 * MEBI, 40 * MEBI, True),
    ],
)
def test_a_large_heap_is_collected_less_often(
    page: ClockPage, program: OtherSide, left: int, traffic: int, is_due: bool
) -> None:
    program[HEAP], program[READ] = left, traffic

    assert GarbageCollection(page).is_due() is is_due


def test_a_silent_program_collects_once_it_has_left_much_garbage(page: ClockPage, program: OtherSide) -> None:
    garbage = GarbageCollection(page)
    program[LIVE] = 2048 * MEBI - 1
    assert not garbage.is_due()

    program[LIVE] = 2048 * MEBI
    assert garbage.is_due()


def test_a_program_with_much_garbage_per_byte_collects_before_it_grows(page: ClockPage, program: OtherSide) -> None:
    garbage = GarbageCollection(page)
    program[LIVE] = 1024 * MEBI
    program[READ] = MEBI - 1
    assert not garbage.is_due()

    program[READ] = MEBI
    assert garbage.is_due()


def beats(page: ClockPage, program: OtherSide, rate: int, minutes: int, noise: int = 0) -> list[int]:
    """Return after which minutes a silent program collects garbage if it produces this many bytes in each."""
    program[HEAP] = program[LIVE] = 20 * MEBI
    garbage, moments, began = GarbageCollection(page), [], program[NOW]
    for minute in range(1, minutes + 1):
        program[NOW] = began + minute * 60 * 10**9
        program[LIVE] += rate + (noise if minute % 2 else -noise)
        if garbage.is_due():
            moments.append(minute)
            program[LIVE] = program[HEAP]
    return moments


def test_a_program_with_a_constant_garbage_rate_collects_at_a_constant_interval(
    page: ClockPage, program: OtherSide
) -> None:
    moments = beats(page, program, rate=7 * MEBI, minutes=600)

    assert moments[0] * 7 <= 3 * 180, "less than three times what is worth a collection"
    assert {later - earlier for earlier, later in itertools.pairwise(moments[1:])} == {32}
    assert beats(page, program, rate=7 * MEBI, minutes=600, noise=20_000) == moments


def test_the_interval_is_halved_when_it_leaves_too_much_garbage(page: ClockPage, program: OtherSide) -> None:
    quiet = beats(page, program, rate=MEBI, minutes=2_000)
    assert 60 <= quiet[1] - quiet[0] <= 540

    garbage, program[LIVE] = GarbageCollection(page), program[HEAP] + 600 * MEBI
    program[NOW] += 60 * 10**9
    assert garbage.is_due()
    program[NOW] += 30 * 10**9
    assert garbage.is_due()


def test_a_program_that_leaves_little_garbage_does_not_collect(page: ClockPage, program: OtherSide) -> None:
    assert not beats(page, program, rate=1_000, minutes=100_000)
