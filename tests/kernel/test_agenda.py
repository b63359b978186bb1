from __future__ import annotations

import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.kernel.agenda import Agenda, Rank
from batkube.kernel.errors import Bug, RunFailed
from batkube.kernel.instants import LATEST_NS, Instant


def _run_all(agenda: Agenda) -> list[int]:
    numbers = []
    while (appointment := agenda.pop_next()) is not None:
        numbers.append(appointment.number)
    return numbers


def test_at_one_instant_jobs_end_before_others_arrive_and_schedulers_run_last() -> None:
    agenda = Agenda()
    for rank in (Rank.WAKE, Rank.SUBMIT, Rank.START, Rank.FINISH):
        agenda.book(Instant(5), rank, lambda now: None)

    assert _run_all(agenda) == [3, 2, 1, 0]


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(Rank)), max_size=40))
def test_the_order_is_by_time_then_rank_then_booking(entries: list[tuple[int, Rank]]) -> None:
    agenda = Agenda()
    for at, rank in entries:
        agenda.book(Instant(at), rank, lambda now: None)

    expected = sorted(range(len(entries)), key=lambda number: (*entries[number], number))

    assert _run_all(agenda) == expected


def test_a_cancelled_appointment_is_neither_executed_nor_counted() -> None:
    agenda = Agenda()
    first = agenda.book(Instant(1), Rank.FINISH, lambda now: None)
    agenda.book(Instant(2), Rank.FINISH, lambda now: None)

    agenda.cancel(first)

    assert len(agenda) == 1
    assert _run_all(agenda) == [1]


class _Pod:
    def end(self, now: Instant) -> None:
        pass


def test_cancelled_appointments_are_freed_before_they_are_due() -> None:
    agenda, pods = Agenda(), []
    for _ in range(1000):
        pod = _Pod()
        pods.append(weakref.ref(pod))
        agenda.cancel(agenda.book(Instant(LATEST_NS), Rank.FINISH, pod.end))
    agenda.book(Instant(5), Rank.FINISH, lambda now: None)

    assert sum(pod() is not None for pod in pods) < 100
    assert len(agenda) == 1
    assert _run_all(agenda) == [1000]


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(Rank), st.booleans()), max_size=400))
def test_cancelling_many_appointments_keeps_the_order_of_the_others(entries: list[tuple[int, Rank, bool]]) -> None:
    agenda = Agenda()
    for at, rank, _ in entries:
        agenda.book(Instant(at), rank, lambda now: None)
    for number, entry in enumerate(entries):
        if entry[2]:
            agenda.cancel(number)

    remaining = [number for number, entry in enumerate(entries) if not entry[2]]

    assert len(agenda) == len(remaining)
    assert _run_all(agenda) == sorted(remaining, key=lambda number: (*entries[number][:2], number))


def test_booking_in_the_past_is_a_bug() -> None:
    agenda = Agenda()
    agenda.book(Instant(7), Rank.FINISH, lambda now: None)
    agenda.pop_next()

    with pytest.raises(Bug, match="before 7 ns"):
        agenda.book(Instant(6), Rank.FINISH, lambda now: None)


def test_a_run_fails_if_virtual_time_would_overflow() -> None:
    agenda = Agenda()
    agenda.book(Instant(LATEST_NS), Rank.FINISH, lambda now: None)

    with pytest.raises(RunFailed, match="would pass 292 years"):
        agenda.book(Instant(LATEST_NS + 1), Rank.FINISH, lambda now: None)

    assert len(agenda) == 1


def test_the_next_due_instant_ignores_cancelled_appointments() -> None:
    agenda = Agenda()
    assert agenda.due is None
    first = agenda.book(Instant(5), Rank.START, lambda now: None)
    agenda.book(Instant(7), Rank.START, lambda now: None)
    assert agenda.due == 5
    agenda.cancel(first)
    assert agenda.due == 7
    assert len(agenda) == 1
    assert _run_all(agenda) == [1]
    assert agenda.due is None


def test_routine_appointments_are_executed_but_not_counted() -> None:
    agenda = Agenda()
    agenda.book(Instant(1), Rank.START, lambda now: None, is_routine=True)
    agenda.book(Instant(2), Rank.START, lambda now: None)
    assert (len(agenda), agenda.due) == (1, 1)
    assert agenda.pop_next() is not None
    assert (len(agenda), agenda.due) == (1, 2)
