"""A run's clock under control: it delays a run between two instants and changes nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from batkube.cluster.decisions import Binding
from batkube.cluster.mapping import POD
from batkube.cluster.store import Key
from batkube.cluster.world import World
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import START, Instant, seconds
from batkube.kernel.stopwatch import Stopwatch
from batkube.kernel.streams import Streams
from batkube.timing.loop import Loop, NextEventTime
from batkube.timing.run_clock import PausableClock

_PATIENCE_S = 30.0


class ControlledRun:
    """A run with an event every ten seconds, in a thread of its own. The third and the sixth event bind a pod."""

    def __init__(self, clock: PausableClock) -> None:
        self.world = World(Streams(0))
        self.happened: list[Instant] = []
        for number in range(1, 9):
            self.world.agenda.book(Instant(seconds(10 * number)), Rank.SUBMIT, self._happen)
        loop = Loop(self.world)
        driver = clock.control(NextEventTime(self.world), self.world)
        self._thread = threading.Thread(target=loop.run, args=(driver, lambda: False, lambda now: None), daemon=True)
        self._thread.start()

    def _happen(self, now: Instant) -> None:
        self.happened.append(now)
        if now in (seconds(30), seconds(60)):
            key = Key(f"default/{now}")
            pod = {"metadata": {"namespace": "default", "name": str(now)}, "spec": {}}
            self.world.store.create(POD, [key], [pod], now)
            bound = {**pod, "spec": {"nodeName": "n"}}
            self.world.store.replace(POD, [key], [bound], now, Binding([key], ["n"]))

    def join(self) -> None:
        self._thread.join(_PATIENCE_S)
        assert not self._thread.is_alive()


@pytest.fixture
def clock() -> Iterator[PausableClock]:
    one = PausableClock(is_paused=True)
    yield one
    one.set_speed(None)
    one.resume()


def wait_until(condition: Callable[[], bool]) -> None:
    watch = Stopwatch()
    while not condition():
        assert watch.real_s < _PATIENCE_S
        threading.Event().wait(0.002)


def s(*instants: int) -> list[Instant]:
    return [Instant(seconds(instant)) for instant in instants]


def test_a_run_that_begins_paused_waits_before_its_first_event(clock: PausableClock) -> None:
    run = ControlledRun(clock)
    threading.Event().wait(0.05)

    assert run.happened == []
    assert clock.state().is_paused
    assert clock.state().now == START
    clock.resume()
    run.join()
    assert run.happened == s(10, 20, 30, 40, 50, 60, 70, 80)


def test_a_step_ends_at_the_instant_at_which_pods_were_bound(clock: PausableClock) -> None:
    run = ControlledRun(clock)

    for until in (30, 60):
        clock.step()
        wait_until(lambda: clock.state().is_paused)
        assert clock.state().now == seconds(until)
        assert run.happened[-1] == seconds(until)


def test_a_run_stops_at_an_instant_between_two_events_and_at_one_after_it(clock: PausableClock) -> None:
    run = ControlledRun(clock)

    clock.run_until(Instant(seconds(35)))
    wait_until(lambda: clock.state().is_paused)
    assert (clock.state().now, run.happened) == (seconds(35), s(10, 20, 30))
    clock.run_until(Instant(seconds(40)))
    wait_until(lambda: clock.state().is_paused)
    assert (clock.state().now, run.happened) == (seconds(40), s(10, 20, 30, 40))
    # An instant that has passed.
    clock.run_until(Instant(seconds(5)))
    wait_until(lambda: clock.state().is_paused)
    assert (clock.state().now, run.happened) == (seconds(40), s(10, 20, 30, 40))


def test_a_paced_run_takes_its_time_and_shows_the_instants_between_events(clock: PausableClock) -> None:
    clock.set_speed(50)
    run, watch = ControlledRun(clock), Stopwatch()
    clock.resume()
    wait_until(lambda: len(run.happened) >= 2)
    wait_until(lambda: clock.state().now % seconds(10) > seconds(1))
    clock.pause()
    paused = clock.state()
    threading.Event().wait(0.05)

    assert clock.state() == paused
    assert paused.now > seconds(20)
    clock.resume()
    run.join()
    assert watch.real_s > 80 / 50


def test_a_pace_set_late_counts_from_that_instant(clock: PausableClock) -> None:
    run = ControlledRun(clock)
    clock.run_until(Instant(seconds(60)))
    wait_until(lambda: clock.state().is_paused)
    clock.set_speed(100)
    watch = Stopwatch()
    clock.resume()
    run.join()

    assert 0.15 < watch.real_s < 10


def test_a_paced_run_stops_where_it_is_told(clock: PausableClock) -> None:
    clock.set_speed(200)
    run = ControlledRun(clock)
    clock.run_until(Instant(seconds(25)))
    assert not clock.state().is_paused
    assert clock.state().stop_at == seconds(25)
    wait_until(lambda: clock.state().is_paused)

    assert (clock.state().now, run.happened) == (seconds(25), s(10, 20))
    assert clock.state().stop_at is None
