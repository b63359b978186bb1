"""Statistics of jobs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.outputs.job_statistics import MeasuredJob, jain_index, job_statistics_of, percentile


@given(st.lists(st.floats(1, 1e6), min_size=1, max_size=20))
def test_jains_index_is_between_one_over_n_and_one(values: list[float]) -> None:
    index = jain_index(np.array(values))

    assert 1 / len(values) - 1e-9 <= index <= 1 + 1e-9


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=50), st.floats(0, 100))
def test_percentiles_equal_those_of_numpy(values: list[float], rank: float) -> None:
    assert percentile(sorted(values), rank) == pytest.approx(float(np.percentile(values, rank)), rel=1e-9, abs=1e-9)


def test_mean_waits_are_computed_by_size_and_length() -> None:
    jobs = [
        MeasuredJob(wait, wait + length, length, size, "")
        for wait, length, size in ((10, 3600, 8), (20, 3601, 8), (30, 3600, 9), (40, 3601, 9))
    ]

    columns = job_statistics_of(jobs)

    kinds = ("short_narrow", "long_narrow", "short_wide", "long_wide")
    assert [columns[f"mean_waiting_time_{kind}"] for kind in kinds] == [10, 20, 30, 40]
