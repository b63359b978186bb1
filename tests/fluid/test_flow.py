"""Tasks that come and go."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.fluid import flow as flows
from batkube.fluid.flow import Flow
from batkube.fluid.tasks import FluidResource, Task
from batkube.kernel.instants import Duration, Instant

SECOND = 1_000_000_000


def play(flow: Flow, arrivals: Sequence[tuple[int, Task]]) -> dict[str, int]:
    """Let tasks begin at their times, and return when each ended."""
    coming = sorted(arrivals, key=lambda arrival: arrival[0])
    ends: dict[str, int] = {}
    while True:
        dates = [date for date in (flow.due(), coming[0][0] if coming else None) if date is not None]
        if not dates:
            return ends
        now = Instant(min(dates))
        ends.update((task.name, now) for task in flow.advance(now))
        while coming and coming[0][0] == now:
            flow.begin(coming.pop(0)[1], now)
        flow.update_rates(now)


def test_a_task_alone_takes_its_work_divided_by_the_scarcest_capacity_after_its_latency() -> None:
    cores, link = FluidResource("cores", 100.0), FluidResource("link", 10.0)
    task = Task("t", [(cores, 200.0), (link, 50.0)], latency=Duration(7))

    assert play(Flow(), [(3, task)]) == {"t": 10 + 5 * SECOND}


def test_what_is_rounded_off_one_task_is_handed_on_to_the_next() -> None:
    """Three thirds of a second are a second, though each ends at a whole nanosecond, and one of them slows down."""
    flow, cores, now, lag = Flow(), FluidResource("cores", 3.0), Instant(0), 0.0
    for rate in (3.0, 2.0, 3.0):
        task = Task("third", [(cores, 1.0)])
        task.lag = lag
        flow.begin(task, now)
        flow.set_capacity(cores, rate, now)
        flow.update_rates(now)
        now = flow.due() or now
        assert flow.advance(now) == [task]
        lag = task.lag

    assert now + lag == pytest.approx((1 / 3 + 1 / 2 + 1 / 3) * SECOND, abs=1e-6)
    assert now == 1_166_666_667


def test_tasks_on_one_host_share_it_and_go_faster_once_others_are_through() -> None:
    """The figures of four tasks of 20 s that begin 5 s apart: the run `sharing` of the real Batsim."""
    cores = FluidResource("cores", 1.0)
    arrivals = [(start * SECOND, Task(str(start), [(cores, 20.0)])) for start in (0, 5, 10, 15)]

    ends = play(Flow(), arrivals)

    assert [end / SECOND for end in ends.values()] == pytest.approx([58.333333333, 73.333333333, 78.333333333, 80.0])


def test_an_empty_task_is_through_at_once_and_a_resource_without_capacity_holds_for_ever() -> None:
    flow, nothing = Flow(), FluidResource("nothing", 0.0)

    assert play(flow, [(5, Task("empty", [])), (5, Task("stuck", [(nothing, 1.0)]))]) == {"empty": 5}


def test_another_capacity_is_felt_at_once() -> None:
    flow, cores = Flow(), FluidResource("cores", 10.0)
    task = Task("t", [(cores, 100.0)])
    flow.begin(task, Instant(0))
    flow.update_rates(Instant(0))

    flow.set_capacity(cores, 5.0, Instant(4 * SECOND))
    flow.update_rates(Instant(4 * SECOND))

    assert task.progress(Instant(4 * SECOND)) == pytest.approx(0.4)
    assert flow.due() == 16 * SECOND


def test_a_task_that_is_taken_away_leaves_its_share_to_others() -> None:
    flow, cores = Flow(), FluidResource("cores", 10.0)
    tasks = [Task(name, [(cores, 100.0)]) for name in "ab"]
    for task in tasks:
        flow.begin(task, Instant(0))
    flow.update_rates(Instant(0))

    flow.cancel(tasks[0], Instant(10 * SECOND))
    flow.update_rates(Instant(10 * SECOND))

    assert tasks[0].progress(Instant(10 * SECOND)) == pytest.approx(0.5)
    assert flow.due() == 15 * SECOND


@st.composite
def arrivals(draw: st.DrawFn) -> list[tuple[int, str, list[tuple[int, float]], int]]:
    """Draw tasks: when they come, what they use of five resources, their latency."""
    return [
        (
            draw(st.sampled_from([0, 0, SECOND, 3 * SECOND])),
            f"t{number}",
            draw(st.lists(st.tuples(st.integers(0, 4), st.floats(0.1, 50.0)), min_size=1, max_size=4)),
            draw(st.sampled_from([0, 0, SECOND // 2])),
        )
        for number in range(draw(st.integers(min_value=1, max_value=7)))
    ]


def built(entries: Sequence[tuple[int, str, list[tuple[int, float]], int]]) -> list[tuple[int, Task]]:
    resources = [FluidResource(str(number), 1e5 * (number + 1)) for number in range(5)]
    return [
        (at, Task(name, [(resources[n], weight * 1e5) for n, weight in uses], latency=Duration(wait)))
        for at, name, uses, wait in entries
    ]


@given(entries=arrivals(), order=st.randoms(use_true_random=False))
def test_the_order_of_arrival_in_one_instant_does_not_matter(
    entries: list[tuple[int, str, list[tuple[int, float]], int]], order: object
) -> None:
    mixed = list(entries)
    order.shuffle(mixed)  # type: ignore[attr-defined]

    assert play(Flow(), built(entries)) == play(Flow(), built(mixed))


@given(entries=arrivals())
def test_work_is_conserved(entries: list[tuple[int, str, list[tuple[int, float]], int]]) -> None:
    """What resources gave until all tasks were through is what the tasks asked of them."""
    flow, coming = Flow(), sorted(built(entries), key=lambda arrival: arrival[0])
    resources = list(dict.fromkeys(resource for _, task in coming for resource, _ in task.uses))
    asked = {r: math.fsum(w for _, task in coming for used, w in task.uses if used is r) for r in resources}
    gave, last = dict.fromkeys(resources, 0.0), 0
    while True:
        dates = [date for date in (flow.due(), coming[0][0] if coming else None) if date is not None]
        if not dates:
            break
        now = Instant(min(dates))
        for resource in resources:
            assert resource.load <= resource.capacity * (1 + 1e-9)
            gave[resource] += resource.load * (now - last) / SECOND
        last = now
        flow.advance(now)
        while coming and coming[0][0] == now:
            flow.begin(coming.pop(0)[1], now)
        flow.update_rates(now)

    assert gave == pytest.approx(asked, rel=1e-6)


def test_a_change_is_computed_only_where_it_is_felt(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[int] = []
    real = flows.compute_rates

    def counting(tasks: Sequence[Task]) -> list[float]:
        computed.append(len(tasks))
        return real(tasks)

    monkeypatch.setattr(flows, "compute_rates", counting)
    flow = Flow()
    hosts = [FluidResource(str(number), 1.0) for number in range(1000)]
    for host in hosts[:500]:
        flow.begin(Task("far", [(host, 100.0)]), Instant(0))
    flow.update_rates(Instant(0))
    computed.clear()

    flow.begin(Task("near", [(hosts[0], 1.0), (hosts[700], 1.0)]), Instant(0))
    flow.update_rates(Instant(0))

    assert computed == [2]
