"""Shares of jobs for several schedulers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.kernel.errors import InputError
from batkube.kernel.streams import Streams
from batkube.programs.selection.scheduler_shares import SchedulerShares
from batkube.scenarios.keys import make_scenario


@given(st.lists(st.floats(0, 1), min_size=1, max_size=4), st.integers(0, 1000))
def test_each_scheduler_gets_its_share_of_jobs(weights: list[float], seed: int) -> None:
    total = max(1.0, sum(weights))
    shares = {f"s{number}": weight / total for number, weight in enumerate(weights)}
    scheduler_shares = SchedulerShares(shares, Streams(seed).named("shares"))

    draws = [scheduler_shares.draw() for _ in range(2000)]

    for name, share in shares.items():
        # Five standard deviations of a share of 2,000 draws, at its widest.
        assert abs(draws.count(name) / 2000 - share) < 5 * (0.25 / 2000) ** 0.5


@pytest.mark.parametrize(
    ("shares", "problem"),
    [
        ({"third": 0.5}, "there is no additional scheduler 'third'"),
        ("second", "'' is not a share"),
        ("second=half", "'half' is not a share"),
        ({"second": "120%"}, "'120%' is not a share"),
        ({"second": -1}, "-1 is not a share"),
        ({"second": 0.7, "other": 0.7}, "the sum is 1.4, which is above 1"),
        (3, "3 is not a mapping of names to shares"),
    ],
)
def test_invalid_shares_are_rejected(shares: object, problem: str) -> None:
    schedulers = ["kube-scheduler", "second=kube-scheduler", "other=kube-scheduler"]
    with pytest.raises(InputError) as raised:
        make_scenario({"workload": "w.json", "platform": "1x1", "scheduler": schedulers, "shares": shares}, "s.yaml")

    assert raised.value.problem == problem
