"""Virtual time that follows real time, and errors of its appointments."""

from __future__ import annotations

import asyncio

import pytest

from batkube.cluster.world import World
from batkube.kernel.agenda import Agenda, Rank
from batkube.kernel.clock import Clock
from batkube.kernel.instants import LATEST_NS, NANOSECONDS_PER_SECOND, Instant, seconds
from batkube.kernel.streams import Streams
from batkube.timing.live import LiveTime
from batkube.timing.loop import Loop

START = Instant(seconds(1000))


def live(speed: float = 1.0) -> tuple[LiveTime, Agenda, Clock]:
    world = World(Streams(0))
    return LiveTime(world, Loop(world), START, speed), world.agenda, world.clock


def test_the_clock_begins_at_the_start_and_runs_at_the_given_speed() -> None:
    time, _, _ = live(speed=1_000_000)
    first = time.now()
    second = time.now()
    assert START <= first < second


def test_due_appointments_are_executed_before_the_current_instant_is_returned() -> None:
    time, agenda, clock = live(speed=1_000_000)
    happened: list[Instant] = []
    for wait in (3, 1, 2):
        agenda.book(Instant(START + wait), Rank.SUBMIT, happened.append)
    now = time.now()
    assert happened == [START + 1, START + 2, START + 3]
    assert now == clock.now >= START + 3


def test_appointments_booked_by_due_appointments_are_executed_too() -> None:
    time, agenda, _ = live(speed=1_000_000)
    happened: list[str] = []

    def first(now: Instant) -> None:
        happened.append("first")
        agenda.book(now, Rank.WAKE, lambda at: happened.append("second"))

    agenda.book(START, Rank.START, first)
    time.now()
    assert happened == ["first", "second"]


def test_the_current_instant_within_an_appointment_is_that_of_the_appointment() -> None:
    time, agenda, _ = live(speed=1_000_000)
    seen: list[Instant] = []
    agenda.book(Instant(START + 5), Rank.START, lambda now: seen.append(time.now()))
    time.now()
    assert seen == [START + 5]


def test_when_too_much_is_due_time_falls_behind_and_no_appointment_is_skipped() -> None:
    time, agenda, clock = live(speed=1e9)
    count = 0

    def again(now: Instant) -> None:
        nonlocal count
        count += 1
        agenda.book(Instant(now + 1), Rank.START, again)

    agenda.book(START, Rank.START, again)
    first = time.now()
    assert agenda.due is not None
    assert clock.now == first < agenda.due + NANOSECONDS_PER_SECOND
    before = count
    assert time.now() > first
    assert count > before > 0


def test_a_long_action_can_check_whether_its_turn_is_over() -> None:
    time, agenda, _ = live()
    turns: list[int] = []

    def work(now: Instant) -> None:
        is_over, steps = agenda.start_turn(), 0
        while not is_over():
            steps += 1
        turns.append(steps)
        agenda.book(now, Rank.START, work)

    agenda.book(START, Rank.START, work)
    time.now()
    time.now()

    assert len(turns) == 2, "each request waits for one turn"
    assert all(turns)
    assert not Agenda().start_turn()(), "runs have no turns"


def broken(now: Instant) -> None:
    raise ValueError("broken")


def test_an_error_of_an_appointment_is_raised_with_a_note() -> None:
    time, agenda, _ = live(speed=1_000_000)
    agenda.book(START, Rank.START, broken)

    with pytest.raises(ValueError, match="broken") as caught:
        time.now()

    assert caught.value.__notes__ == ["while an appointment was executed: broken at 1000.000000 s (rank START)"]


def test_with_a_bug_listener_the_other_appointments_are_executed() -> None:
    world, reported, kept = World(Streams(0)), list[Exception](), list[Instant]()
    time = LiveTime(world, Loop(world, reported.append), START, 1_000_000)
    world.agenda.book(START, Rank.START, broken)
    world.agenda.book(Instant(START + 1), Rank.START, kept.append)

    time.now()

    assert kept == [START + 1]
    assert [str(error) for error in reported] == ["broken"]


def test_an_appointment_beyond_the_longest_run_does_not_fail_a_served_cluster() -> None:
    time, agenda, _ = live()

    agenda.book(Instant(LATEST_NS + 1), Rank.START, broken)

    time.now()
    assert agenda.due == LATEST_NS


def test_in_an_event_loop_time_advances_by_timers_and_an_earlier_booking_wakes_it_earlier() -> None:
    time, agenda, _ = live(speed=100)

    async def scenario() -> list[str]:
        happened: list[str] = []
        done = asyncio.Event()

        def finish(now: Instant) -> None:
            happened.append("sooner")
            done.set()

        agenda.book(Instant(START + seconds(3600)), Rank.START, lambda now: happened.append("later"))
        with time.running():
            agenda.book(Instant(START + seconds(1)), Rank.START, finish)
            await asyncio.wait_for(done.wait(), 5)
        return happened

    assert asyncio.run(scenario()) == ["sooner"]


def test_a_changed_pace_counts_from_the_instant_of_the_change() -> None:
    time, _, _ = live(speed=1_000_000)
    before = time.now()
    time.change_pace(0)
    paused = time.now()

    assert before < paused == time.now()
    time.change_pace(1_000_000)
    assert paused < time.now() < paused + seconds(3600 * 24 * 365)


def test_while_time_stands_still_what_is_due_at_this_instant_is_executed() -> None:
    time, agenda, _ = live(speed=1000)

    async def scenario() -> list[str]:
        happened: list[str] = []
        done = asyncio.Event()

        def finish(now: Instant) -> None:
            happened.append("now")
            done.set()

        with time.running():
            time.change_pace(0)
            now = time.now()
            agenda.book(Instant(now + seconds(1)), Rank.START, lambda at: happened.append("later"))
            agenda.book(now, Rank.START, finish)
            await asyncio.wait_for(done.wait(), 5)
            await asyncio.sleep(0.02)
        return happened

    assert asyncio.run(scenario()) == ["now"]


def test_time_stops_where_it_is_told() -> None:
    time, agenda, _ = live(speed=1)
    stop = Instant(time.now() + seconds(2))
    time.change_pace(1_000_000, stop)

    async def scenario() -> list[str]:
        happened: list[str] = []
        with time.running():
            agenda.book(stop, Rank.START, lambda now: happened.append("at the stop"))
            agenda.book(Instant(stop + 1), Rank.START, lambda now: happened.append("beyond"))
            await asyncio.sleep(0.05)
        return happened

    assert asyncio.run(scenario()) == ["at the stop"]
    assert time.now() == stop
