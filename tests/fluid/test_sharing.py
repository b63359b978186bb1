"""The rates of tasks that share resources."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.fluid.sharing import compute_rates
from batkube.fluid.tasks import FluidResource, Task

#: The tolerance relative to a capacity, for floating point and SimGrid's precision.
CLOSE = 1e-9

System = list[Task]


@st.composite
def systems(draw: st.DrawFn) -> System:
    """Draw up to six tasks on up to five resources."""
    resources = [
        FluidResource(f"r{number}", draw(st.floats(1e3, 1e9)))
        for number in range(draw(st.integers(min_value=1, max_value=5)))
    ]
    tasks = []
    for number in range(draw(st.integers(min_value=1, max_value=6))):
        some = draw(st.lists(st.sampled_from(resources), min_size=1, max_size=4))
        uses = [(resource, draw(st.floats(1.0, 1e6))) for resource in some]
        bound = draw(st.one_of(st.just(math.inf), st.floats(1e-3, 1e4)))
        tasks.append(Task(f"t{number}", uses, bound=bound))
    return tasks


def load(resource: FluidResource, tasks: System, rates: list[float]) -> float:
    return math.fsum(
        weight * rate for task, rate in zip(tasks, rates, strict=True) for used, weight in task.uses if used is resource
    )


def resources_of(tasks: System) -> list[FluidResource]:
    return list(dict.fromkeys(resource for task in tasks for resource, _ in task.uses))


@pytest.mark.parametrize("charges_once", [False, True])
@given(tasks=systems())
def test_no_resource_is_overcommitted_and_no_bound_exceeded(tasks: System, charges_once: bool) -> None:
    rates = compute_rates(tasks, charges_once=charges_once)

    for resource in resources_of(tasks):
        assert load(resource, tasks, rates) <= resource.capacity * (1 + CLOSE)
    assert all(0 < rate <= task.bound * (1 + CLOSE) for task, rate in zip(tasks, rates, strict=True))


@given(tasks=systems())
def test_if_increments_are_charged_once_no_task_could_be_faster_without_slowing_another(tasks: System) -> None:
    rates = compute_rates(tasks, charges_once=True)

    for task, rate in zip(tasks, rates, strict=True):
        exhausted = [r for r, _ in task.uses if load(r, tasks, rates) >= r.capacity * (1 - CLOSE) - 1e-4]
        assert exhausted or rate == pytest.approx(task.bound)


@given(tasks=systems())
def test_the_order_of_tasks_does_not_matter(tasks: System) -> None:
    assert compute_rates(tasks[::-1]) == compute_rates(tasks)[::-1]


@given(capacity=st.floats(1e3, 1e9), weights=st.lists(st.floats(1.0, 1e6), min_size=1, max_size=8))
def test_tasks_that_share_only_one_resource_get_equal_parts_of_it(capacity: float, weights: list[float]) -> None:
    shared = FluidResource("r", capacity)
    tasks = [Task(str(number), [(shared, weight)]) for number, weight in enumerate(weights)]

    rates = compute_rates(tasks)

    shares = [weight * rate for weight, rate in zip(weights, rates, strict=True)]
    assert shares == pytest.approx([capacity / len(weights)] * len(weights))


def test_a_task_that_has_stopped_growing_is_charged_in_later_rounds_as_in_simgrid() -> None:
    """Task a is at its bound in round one. Resource y limits c, and halves its offer in each round, so there are many
    rounds. In each of them a is charged again, so b gets less than what is left."""
    x, y = FluidResource("x", 30.0), FluidResource("y", 8.0)
    a = Task("a", [(x, 1.0)], bound=1.0)
    b = Task("b", [(x, 1.0), (y, 1e-3)])
    c = Task("c", [(x, 1.0), (y, 1.0)])

    as_in_simgrid, charged_once = compute_rates([a, b, c]), compute_rates([a, b, c], charges_once=True)

    assert math.fsum(charged_once) == pytest.approx(30.0, abs=1e-4)
    assert math.fsum(as_in_simgrid) < 30.0 - 1e-3
