"""Marks of the best points, which never contradict the marks of differences."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from batkube.experiments.report.differences import signs_of
from batkube.experiments.report.grid_points import (
    BEST,
    CONTRARY,
    TIED,
    GridPoint,
    difference_between,
    marks_of_best,
)
from batkube.outputs.measures.intervals import sample_of
from batkube.outputs.measures.metric_columns import MAIN_COLUMNS, column_of

MAKESPAN = column_of("makespan")


def point(name: str, makespans: Sequence[float]) -> GridPoint:
    """Return a point with a completed run per seed."""
    numbers = {"nb_violations": 0, "nb_jobs": 9, "nb_jobs_finished": 9, "overallocations": 0, "digest": ""}
    rows = {(seed, 0): pd.Series({"makespan": span, **numbers}) for seed, span in enumerate(makespans)}
    samples = {"makespan": sample_of(makespans)}
    return GridPoint({"scheduler": name}, len(makespans), [], 0, "task", samples, rows)


# Small whole numbers make ties, agreeing pairs and outliers likely.
SEEDS = st.tuples(st.integers(1, 12), st.integers(1, 12), st.sampled_from([1, 2, 90]))
MAKESPANS = st.lists(SEEDS, min_size=2, max_size=12)


@given(MAKESPANS)
@settings(max_examples=60, deadline=None)
def test_no_clear_difference_to_the_best_is_never_a_clear_one_in_the_table_of_differences(
    seeds: list[tuple[int, int, int]],
) -> None:
    points = [point(name, [float(seed[number]) for seed in seeds]) for number, name in enumerate("abc")]
    marks = marks_of_best(points, MAKESPAN)
    for other, mark in zip(points, marks, strict=True):
        for best, best_mark in zip(points, marks, strict=True):
            difference = difference_between(best, other, MAKESPAN)
            assert difference is not None
            shown = signs_of(difference, 3) + "bold" * difference.is_clear
            if best_mark == BEST and mark == TIED:
                assert not shown
            if best_mark == BEST and mark in ("", CONTRARY):
                assert shown


def test_agreeing_pairs_that_one_huge_difference_hides_from_the_interval_are_not_tied() -> None:
    first, second = [100.0] * 10, [101.0] * 9 + [200.0]

    assert marks_of_best([point("a", first), point("b", second)], MAKESPAN) == [BEST, ""]


def test_a_point_that_is_better_in_most_pairs_than_the_best_mean_is_marked_as_contrary() -> None:
    first, second = [100.0] * 10, [99.0] * 9 + [300.0]

    assert marks_of_best([point("a", first), point("b", second)], MAKESPAN) == [BEST, CONTRARY]


def test_differences_by_chance_are_tied() -> None:
    assert marks_of_best([point("a", [1.0, 5.0, 3.0]), point("b", [2.0, 4.0, 4.0])], MAKESPAN) == [BEST, TIED]


def test_no_measure_of_fairness_has_a_best_value() -> None:
    assert [name for name in MAIN_COLUMNS if "fair" in name and column_of(name).better] == []
