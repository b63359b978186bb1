"""Measures of fairness between users, on schedules that can be computed by hand."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from tests.outputs.measures.user_runs import simulated

from batkube.kernel.errors import InputError
from batkube.outputs.measures.fairness import gini_coefficient, indices_of, users_frame
from batkube.outputs.measures.metric_columns import column_of


def test_measures_of_users_are_as_computed_by_hand(tmp_path: Path) -> None:
    users = users_frame(simulated(tmp_path, "all"))

    assert users["jobs"].to_dict() == {"1": 2, "2": 1, "3": 1}
    assert users["bounded_slowdown"].to_dict() == pytest.approx({"1": (1 + 2.8) / 2, "2": 1.9, "3": 1.0})
    assert users["wait_s"].to_dict() == pytest.approx({"1": 90, "2": 90, "3": 0})
    # ann is present from 0 to 300 and has the machine for 200 s; bob from 10 to 200, and for 100 s.
    assert users["share"].to_dict() == pytest.approx({"1": 200 / 300, "2": 100 / 190, "3": 1.0})
    # Both are present from 10 to 200, so each is entitled to 95 s of it.
    assert users["share_of_entitled"].to_dict() == pytest.approx({"1": 200 / (10 + 95 + 100), "2": 100 / 95, "3": 1.0})
    assert users["solo_slowdown"].isna().all()


def test_a_solo_run_removes_the_wait_that_a_user_causes(tmp_path: Path) -> None:
    solo = [simulated(tmp_path, f"solo-{user}", user) for user in "12"]
    users = users_frame(simulated(tmp_path, "all"), solo)

    # Alone, ann's second job runs from 100 to 200: turnarounds 100 + 180 instead of 100 + 280.
    assert users.loc["1", "solo_slowdown"] == pytest.approx(380 / 280)
    assert users.loc["2", "solo_slowdown"] == pytest.approx(190 / 100)
    assert users.isna().loc["3", "solo_slowdown"]


def test_a_run_of_several_users_is_not_a_solo_run(tmp_path: Path) -> None:
    everyone = simulated(tmp_path, "all")

    with pytest.raises(InputError, match="of 3 users, but a solo run has those of one"):
        users_frame(everyone, [everyone])


def test_indices_are_those_of_the_literature() -> None:
    values = {"wait_s": [1.0, 2.0, 3.0, 4.0], "bounded_slowdown": [5.0] * 4, "share": [0.0] * 4}
    users = pd.DataFrame({**values, "share_of_entitled": [0.0, 0, 0, 1], "solo_slowdown": [None] * 4})
    indices = {index.measure: index for index in indices_of(users)}

    assert indices["wait_s"].jain == pytest.approx(100 / (4 * 30))
    # The mean absolute difference of all 16 pairs is 1.25; half of it divided by the mean is 0.25.
    assert indices["wait_s"].gini == pytest.approx(0.25)
    assert indices["wait_s"].spread == 4
    assert (indices["bounded_slowdown"].jain, indices["bounded_slowdown"].gini) == pytest.approx((1, 0))
    assert (indices["share"].jain, indices["share"].gini, indices["share"].spread) == (1, 0, None)
    assert (indices["share_of_entitled"].jain, indices["share_of_entitled"].gini) == pytest.approx((0.25, 0.75))
    assert "solo_slowdown" not in indices


def test_equal_misery_has_a_perfect_index_which_no_table_marks_as_best() -> None:
    assert gini_coefficient([86_400.0] * 9) == pytest.approx(0)
    assert column_of("fairness_by_user").better == 0
