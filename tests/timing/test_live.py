"""Virtual time that follows the real one, and what happens when something goes wrong in it."""

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


def test_the_clock_begins_at_the_start_and_runs_at_the_speed_asked_for() -> None:
    time, _, _ = live(speed=1_000_000)
    first = time.now()
    second = time.now()
    assert START <= first < second


def test_what_is_due_has_happened_before_anybody_sees_the_present() -> None:
    time, agenda, clock = live(speed=1_000_000)
    happened: list[Instant] = []
    for wait in (3, 1, 2):
        agenda.book(Instant(START + wait), Rank.SUBMIT, happened.append)
    now = time.now()
    assert happened == [START + 1, START + 2, START + 3]
    assert now == clock.now >= START + 3


def test_what_follows_from_what_is_due_happens_too() -> None:
    time, agenda, _ = live(speed=1_000_000)
    happened: list[str] = []

    def first(now: Instant) -> None:
        happened.append("first")
        agenda.book(now, Rank.WAKE, lambda at: happened.append("second"))

    agenda.book(START, Rank.START, first)
    time.now()
    assert happened == ["first", "second"]


def test_a_present_asked_for_while_things_happen_is_theirs() -> None:
    time, agenda, _ = live(speed=1_000_000)
    seen: list[Instant] = []
    agenda.book(Instant(START + 5), Rank.START, lambda now: seen.append(time.now()))
    time.now()
    assert seen == [START + 5]


def test_when_too_much_is_due_time_falls_behind_and_nothing_is_skipped() -> None:
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


def broken(now: Instant) -> None:
    raise ValueError("broken")


def test_what_an_appointment_raises_is_raised_with_its_story() -> None:
    time, agenda, _ = live(speed=1_000_000)
    agenda.book(START, Rank.START, broken)

    with pytest.raises(ValueError, match="broken") as caught:
        time.now()

    assert caught.value.__notes__ == ["while an appointment was kept: broken at 1000.000000 s (rank START)"]


def test_where_bugs_are_reported_the_other_appointments_are_kept() -> None:
    world, reported, kept = World(Streams(0)), list[Exception](), list[Instant]()
    time = LiveTime(world, Loop(world), START, 1_000_000, on_bug=reported.append)
    world.agenda.book(START, Rank.START, broken)
    world.agenda.book(Instant(START + 1), Rank.START, kept.append)

    time.now()

    assert kept == [START + 1]
    assert [str(error) for error in reported] == ["broken"]


def test_what_would_come_after_the_longest_run_does_not_fail_a_cluster_without_an_end() -> None:
    time, agenda, _ = live()

    agenda.book(Instant(LATEST_NS + 1), Rank.START, broken)

    time.now()
    assert agenda.due == LATEST_NS


def test_in_an_event_loop_time_passes_by_itself_and_a_sooner_booking_wakes_it_sooner() -> None:
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
