"""Amounts held and offered over time."""

from __future__ import annotations

import pytest

from batkube.cluster.nodes.resource_usage import AmountSteps, ResourceUsage
from batkube.kernel.errors import Bug
from batkube.kernel.instants import Instant
from batkube.kernel.quantities import CPU


def test_steps_are_integrated_over_any_window() -> None:
    steps = AmountSteps()
    for at, amount in ((10, 3), (20, 1), (20, 2), (40, 0)):
        steps.set(amount, Instant(at))

    assert steps.integral(Instant(0), Instant(100)) == 3 * 10 + 2 * 20
    assert steps.integral(Instant(15), Instant(25)) == 3 * 5 + 2 * 5
    assert steps.integral(Instant(50), Instant(60)) == 0


def test_more_held_than_offered_is_a_bug_of_ours() -> None:
    usage = ResourceUsage()
    usage.offer({CPU: 1000})
    usage.hold(((CPU, 1001),), 1)

    with pytest.raises(Bug, match="pods hold 1001 of the 1000 cpu"):
        usage.record(Instant(0))
