"""Limits of scaling: bounds, rates, stabilization windows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.controllers.autoscaling.scale_limits import ReplicaBounds, ScaleHistory
from batkube.kernel.instants import Instant, seconds

BOUNDS = ReplicaBounds(2, 100)


def at(second: int) -> Instant:
    return Instant(seconds(second))


def behaviour(up: dict[str, Any] | None = None, down: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return scaling rules with the defaults of the API server."""
    percent = {"type": "Percent", "value": 100, "periodSeconds": 15}
    ups = {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [percent]}
    return {
        "scaleUp": {**ups, **(up or {})},
        "scaleDown": {"selectPolicy": "Max", "policies": [percent], **(down or {})},
    }


@pytest.mark.parametrize(
    ("size", "desired", "replicas", "reason"),
    [
        (10, 12, 12, "DesiredWithinRange"),
        (10, 50, 20, "ScaleUpLimit"),
        (1, 50, 4, "ScaleUpLimit"),
        (60, 500, 100, "TooManyReplicas"),
        (10, 1, 10, "DesiredWithinRange"),
    ],
)
def test_the_default_limit_is_double_the_size_or_four(size: int, desired: int, replicas: int, reason: str) -> None:
    step = ScaleHistory(size, at(0)).next_step(size, desired, BOUNDS, None, at(15))
    assert (step.replicas, step.scaling_limited[0]) == (replicas, reason)
    assert step.is_limited == (reason != "DesiredWithinRange")


def test_scaling_down_waits_for_five_minutes_of_lower_recommendations() -> None:
    history = ScaleHistory(10, at(0))
    steps = [history.next_step(10, 3, BOUNDS, None, at(second)) for second in range(15, 331, 15)]
    assert [step.replicas for step in steps] == [10] * 20 + [3, 3]
    assert steps[0].able_to_scale[0] == "ScaleDownStabilized"
    assert steps[-1].able_to_scale[0] == "ReadyForNewScale"


def test_a_policy_limits_pods_per_minute() -> None:
    rules = behaviour({"policies": [{"type": "Pods", "value": 4, "periodSeconds": 60}]})
    history, size, sizes = ScaleHistory(4, at(0)), 4, []
    for second in range(15, 151, 15):
        step = history.next_step(size, 50, BOUNDS, rules, at(second))
        if step.replicas != size:
            history.record_change(size, step.replicas, at(second))
        size = step.replicas
        sizes.append(size)
    assert sizes == [8, 8, 8, 8, 12, 12, 12, 12, 16, 16]


@pytest.mark.parametrize(("choice", "replicas"), [("Max", 5), ("Min", 9), ("Disabled", 10)])
def test_the_select_policy_selects_the_largest_or_smallest_change(choice: str, replicas: int) -> None:
    policies = [
        {"type": "Percent", "value": 50, "periodSeconds": 60},
        {"type": "Pods", "value": 1, "periodSeconds": 60},
    ]
    rules = behaviour(down={"policies": policies, "selectPolicy": choice, "stabilizationWindowSeconds": 0})
    step = ScaleHistory(10, at(0)).next_step(10, 2, BOUNDS, rules, at(15))
    assert step.replicas == replicas
    assert step.scaling_limited[0] == "ScaleDownLimit"


def test_a_scale_up_window_applies_the_lowest_recommendation() -> None:
    rules = behaviour({"stabilizationWindowSeconds": 60})
    history = ScaleHistory(10, at(0))
    steps = [history.next_step(10, 15, BOUNDS, rules, at(second)) for second in (15, 30, 45, 60, 75)]
    assert [step.replicas for step in steps] == [10, 10, 10, 15, 15]
    assert steps[0].able_to_scale[0] == "ScaleUpStabilized"


@given(st.integers(1, 120), st.lists(st.integers(0, 500), min_size=1, max_size=40), st.booleans())
def test_the_size_stays_within_its_bounds(size: int, recommendations: list[int], has_rules: bool) -> None:
    size = min(max(size, BOUNDS.min_replicas), BOUNDS.max_replicas)
    history = ScaleHistory(size, at(0))
    for number, desired in enumerate(recommendations, start=1):
        step = history.next_step(size, desired, BOUNDS, behaviour() if has_rules else None, at(15 * number))
        assert BOUNDS.min_replicas <= step.replicas <= BOUNDS.max_replicas
        assert step.replicas <= max(2 * size, 4)
        if step.replicas != size:
            history.record_change(size, step.replicas, at(15 * number))
        size = step.replicas
