"""Tasks that begin and end over time."""

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


def end_times(flow: Flow, arrivals: Sequence[tuple[int, Task]]) -> dict[str, int]:
    """Begin tasks at their times, and return when each ends."""
    pending = sorted(arrivals, key=lambda arrival: arrival[0])
    ends: dict[str, int] = {}
    while True:
        dates = [date for date in (flow.due(), pending[0][0] if pending else None) if date is not None]
        if not dates:
            return ends
        now = Instant(min(dates))
        ends.update((task.name, now) for task in flow.advance(now))
        while pending and pending[0][0] == now:
            flow.begin(pending.pop(0)[1], now)
        flow.update_rates(now)


def test_a_task_alone_takes_its_work_divided_by_the_scarcest_capacity_after_its_latency() -> None:
    cores, link = FluidResource("cores", 100.0), FluidResource("link", 10.0)
    task = Task("t", [(cores, 200.0), (link, 50.0)], latency=Duration(7))

    assert end_times(Flow(), [(3, task)]) == {"t": 10 + 5 * SECOND}


def test_the_rounding_error_of_a_task_is_passed_on_to_the_next() -> None:
    """Each of three tasks ends at a whole nanosecond, and their sum is exact, also if the second one slows down."""
    flow, cores, now, lag = Flow(), FluidResource("cores", 3.0), Instant(0), 0.0
    for rate in (3.0, 2.0, 3.0):
        task = Task("third", [(cores, 1.0)])
        task.lag = lag
        flow.begin(task, now)
        flow.set_capacity(cores, rate)
        flow.update_rates(now)
        now = flow.due() or now
        assert flow.advance(now) == [task]
        lag = task.lag

    assert now + lag == pytest.approx((1 / 3 + 1 / 2 + 1 / 3) * SECOND, abs=1e-6)
    assert now == 1_166_666_667


def test_tasks_on_one_host_share_it_and_speed_up_when_others_end() -> None:
    """Four tasks of 20 s begin 5 s apart; the end times are those of the real Batsim in the recorded run `sharing`."""
    cores = FluidResource("cores", 1.0)
    arrivals = [(start * SECOND, Task(str(start), [(cores, 20.0)])) for start in (0, 5, 10, 15)]

    ends = end_times(Flow(), arrivals)

    assert [end / SECOND for end in ends.values()] == pytest.approx([58.333333333, 73.333333333, 78.333333333, 80.0])


def test_an_empty_task_ends_at_once_and_a_task_on_a_resource_without_capacity_never() -> None:
    flow, nothing = Flow(), FluidResource("nothing", 0.0)

    assert end_times(flow, [(5, Task("empty", [])), (5, Task("stuck", [(nothing, 1.0)]))]) == {"empty": 5}


def test_a_new_capacity_takes_effect_at_once() -> None:
    flow, cores = Flow(), FluidResource("cores", 10.0)
    task = Task("t", [(cores, 100.0)])
    flow.begin(task, Instant(0))
    flow.update_rates(Instant(0))

    flow.set_capacity(cores, 5.0)
    flow.update_rates(Instant(4 * SECOND))

    assert task.progress(Instant(4 * SECOND)) == pytest.approx(0.4)
    assert flow.due() == 16 * SECOND


def test_a_cancelled_task_leaves_its_share_to_others() -> None:
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
    """Draw tasks with their start, their uses of five resources, and their latency."""
    return [
        (
            draw(st.sampled_from([0, 0, SECOND, 3 * SECOND])),
            f"t{number}",
            draw(st.lists(st.tuples(st.integers(0, 4), st.floats(0.1, 50.0)), min_size=1, max_size=4)),
            draw(st.sampled_from([0, 0, SECOND // 2])),
        )
        for number in range(draw(st.integers(min_value=1, max_value=7)))
    ]


def build(entries: Sequence[tuple[int, str, list[tuple[int, float]], int]]) -> list[tuple[int, Task]]:
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

    assert end_times(Flow(), build(entries)) == end_times(Flow(), build(mixed))


@given(entries=arrivals())
def test_work_is_conserved(entries: list[tuple[int, str, list[tuple[int, float]], int]]) -> None:
    """Each resource has provided the sum of the work of all tasks on it, and was never overcommitted."""
    flow, pending = Flow(), sorted(build(entries), key=lambda arrival: arrival[0])
    resources = list(dict.fromkeys(resource for _, task in pending for resource, _ in task.uses))
    demanded = {r: math.fsum(w for _, task in pending for used, w in task.uses if used is r) for r in resources}
    provided, last = dict.fromkeys(resources, 0.0), 0
    while True:
        dates = [date for date in (flow.due(), pending[0][0] if pending else None) if date is not None]
        if not dates:
            break
        now = Instant(min(dates))
        for resource in resources:
            assert resource.load <= resource.capacity * (1 + 1e-9)
            provided[resource] += resource.load * (now - last) / SECOND
        last = now
        flow.advance(now)
        while pending and pending[0][0] == now:
            flow.begin(pending.pop(0)[1], now)
        flow.update_rates(now)

    assert provided == pytest.approx(demanded, rel=1e-6)


def test_rates_are_computed_only_for_tasks_that_a_change_affects(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[int] = []
    compute_rates = flows.compute_rates

    def counting(tasks: Sequence[Task]) -> list[float]:
        computed.append(len(tasks))
        return compute_rates(tasks)

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
