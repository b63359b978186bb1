"""Planners are compared with an array that has one number per instant."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from batkube.graph import MultiPlanner, Planner

HORIZON = 40
TOTAL = 6
times = st.integers(0, HORIZON - 1)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), times, st.integers(1, 15), st.integers(0, TOTAL)),
        st.tuples(st.just("remove"), st.integers(0, 30), st.just(0), st.just(0)),
        st.tuples(st.just("reduce"), st.integers(0, 30), st.just(0), st.integers(0, TOTAL)),
    ),
    max_size=25,
)


class Array:
    """The free units at every instant."""

    def __init__(self) -> None:
        self.spans: dict[int, tuple[int, int, int]] = {}

    def free_at(self, time: int) -> int:
        return TOTAL - sum(units for start, end, units in self.spans.values() if start <= time < end)

    def free_during(self, start: int, duration: int) -> int:
        return min(self.free_at(time) for time in range(start, start + duration))


@given(steps, times, st.integers(1, 12), st.integers(0, TOTAL + 1))
def test_a_planner_equals_an_array(
    history: list[tuple[str, int, int, int]], start: int, duration: int, units: int
) -> None:
    planner, array = Planner(TOTAL), Array()

    for step, first, length, amount in history:
        live = sorted(array.spans)
        if step == "add":
            number = planner.add(first, length, amount)
            assert (number is not None) == (array.free_during(first, length) >= amount)
            if number is not None:
                array.spans[number] = (first, first + length, amount)
        elif live:
            number = live[first % len(live)]
            begin, end, units_held = array.spans[number]
            if step == "remove" or amount >= units_held:
                is_gone = True
                planner.remove(number) if step == "remove" else planner.reduce(number, units_held)
            else:
                is_gone = planner.reduce(number, amount)
                assert not is_gone
            if is_gone:
                del array.spans[number]
            else:
                array.spans[number] = (begin, end, units_held - amount)

    assert [planner.free_at(time) for time in range(HORIZON)] == [array.free_at(time) for time in range(HORIZON)]
    assert planner.free_during(start, duration) == array.free_during(start, duration)
    points = {0, *(time for span in array.spans.values() for time in span[:2])}
    fitting = [t for t in sorted(points) if t >= start and array.free_during(t, duration) >= units]
    assert list(planner.fitting_points(start, duration, units)) == fitting


@given(st.lists(st.tuples(times, st.integers(1, 9), st.integers(0, 4), st.integers(0, 3)), max_size=12))
def test_a_span_takes_units_of_all_types_or_of_none(spans: list[tuple[int, int, int, int]]) -> None:
    both, cores, gpus = MultiPlanner({"core": 4, "gpu": 3}), Planner(4), Planner(3)

    for start, duration, core, gpu in spans:
        fits = cores.fits(start, duration, core) and gpus.fits(start, duration, gpu)
        assert (both.add(start, duration, {"core": core, "gpu": gpu}) is not None) == fits
        if fits:
            cores.add(start, duration, core)
            gpus.add(start, duration, gpu)

    for time in range(HORIZON):
        assert both.planners["core"].free_at(time) == cores.free_at(time)
        assert both.planners["gpu"].free_at(time) == gpus.free_at(time)
