"""The cost of decisions in virtual time."""

from __future__ import annotations

import pytest

from batkube.kernel.instants import Duration
from batkube.timing.costs import CostModel, MeasuredCost, ModelledCost, parse_cost

MS = 10**6


def test_a_model_charges_per_decision_per_node_and_per_pending_pod() -> None:
    model = CostModel(Duration(5 * MS), Duration(2 * MS), Duration(MS))
    cost = ModelledCost(model, nodes=lambda: 10, pending_pods=lambda: 7)
    assert cost.of(3) == (3 * (5 + 2 * 10) + 7) * MS


def test_writes_that_are_not_about_pods_cost_nothing_in_a_model() -> None:
    cost = ModelledCost(CostModel(Duration(5 * MS)), nodes=lambda: 1, pending_pods=lambda: 1)
    assert cost.of(0) == 0


def test_the_measured_cost_is_the_cpu_time_since_the_last_call() -> None:
    used = iter([100, 250, 250])
    cost = MeasuredCost(lambda: next(used))
    assert [cost.of(1), cost.of(0), cost.of(5)] == [100, 150, 0]


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("zero", None),
        ("measured", None),
        ("model:5ms", CostModel(Duration(5 * MS))),
        ("model:0.005, 10us", CostModel(Duration(5 * MS), Duration(10_000))),
        ("model:1s,1ms,1us", CostModel(Duration(1000 * MS), Duration(MS), Duration(1000))),
    ],
)
def test_costs_are_parsed_from_names_or_durations(text: str, model: CostModel | None) -> None:
    assert parse_cost(text) == model


@pytest.mark.parametrize("text", ["", "free", "model:", "model:5 parsecs", "model:1,2,3,4"])
def test_other_costs_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_cost(text)
