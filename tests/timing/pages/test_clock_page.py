"""The clock page, without a program: coordinator and program use the same slots."""

from __future__ import annotations

import os
import resource
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.timing.conftest import OtherSide

from batkube.kernel.errors import InputError
from batkube.timing.pages.clock_page import ClockPage

INT64 = st.integers(min_value=-(2**63), max_value=2**63 - 1)


def test_a_limit_on_file_sizes_that_is_too_small_is_reported() -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024, limits[1]))
    try:
        with pytest.raises(InputError, match="allows no file of 96 KiB") as refusal:
            ClockPage(0, deterministic=True, seed=0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert "ulimit -f" in str(refusal.value.remedy)


def test_other_users_cannot_open_the_page_and_the_program_cannot_shrink_it(page: ClockPage) -> None:
    path = page.environment["BATKUBE_PAGE"]

    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    for size in (0, 8192):
        with pytest.raises(PermissionError):
            os.truncate(path, size)


def test_a_new_page_has_the_initial_values_of_the_program(page: ClockPage, program: OtherSide) -> None:
    assert [program[slot] for slot in range(8)] == [0x334B4256, 1000, 0, 0, 1, 77, 0, 0]
    assert [program[slot] for slot in range(8, 20)] == [0] * 12


def test_a_probe_is_numbered_and_wakes_the_program(page: ClockPage, program: OtherSide) -> None:
    assert [page.probe(), page.probe()] == [1, 2]

    assert program[2] == 2
    assert os.eventfd_read(int(page.environment["BATKUBE_WAKE"])) == 2


def test_only_an_answer_to_this_or_a_later_probe_counts(page: ClockPage, program: OtherSide) -> None:
    number = page.probe()
    program[8] = number - 1
    assert not page.is_idle_since(number)

    program[8] = number
    assert page.is_idle_since(number)


def test_waiting_ends_with_the_event_and_consumes_it(page: ClockPage) -> None:
    os.eventfd_write(int(page.environment["BATKUBE_IDLE"]), 1)

    assert page.wait(10)
    assert not page.wait(0)


def test_a_grant_records_the_write_count(page: ClockPage, program: OtherSide) -> None:
    program[11] = 5
    page.grant(9000)
    assert (program[3], program[14]) == (9000, 5)

    page.revoke()
    assert program[3] == 0


def test_a_collection_is_requested_until_the_program_has_done_it(page: ClockPage, program: OtherSide) -> None:
    page.request_collection()
    assert program[4] == 3
    assert page.is_collecting

    program[4] = 1
    assert not page.is_collecting


@given(INT64)
def test_every_number_is_read_as_it_was_written(value: int) -> None:
    page = ClockPage(value, deterministic=False, seed=0)
    program = OtherSide(page)
    try:
        assert program[1] == value
        readers = {
            9: "next_timer", 11: "write_count", 12: "jump_count", 13: "heap_bytes",
            15: "connect_count", 16: "bytes_written", 17: "bytes_read", 18: "live_bytes", 19: "pid",
        }  # fmt: skip
        for slot, name in readers.items():
            program[slot] = value - slot if value > 0 else value + slot
            assert getattr(page, name) == program[slot]
    finally:
        program.close()
        page.close()


def test_the_program_inherits_the_descriptors_that_its_environment_names(page: ClockPage) -> None:
    named = {page.environment["BATKUBE_PAGE"].rpartition("/")[2]}
    named |= {page.environment["BATKUBE_WAKE"], page.environment["BATKUBE_IDLE"]}

    assert {str(descriptor) for descriptor in page.descriptors} == named
