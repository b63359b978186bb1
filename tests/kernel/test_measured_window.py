"""The part of a run that metrics cover."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.kernel.instants import Instant
from batkube.kernel.measured_window import NO_TRIM, Window, parse_trim, window_of

SECOND = 1_000_000_000
SUBMITS = [number * SECOND for number in range(100, 200)]


def test_without_trims_the_window_is_from_the_first_submission_to_the_end() -> None:
    window = window_of(SUBMITS, NO_TRIM, NO_TRIM)

    assert window == Window(Instant(100 * SECOND), None)
    assert window.usage_end(Instant(500 * SECOND)) == 500 * SECOND


@pytest.mark.parametrize(
    ("warm_up", "cool_down", "first", "last"),
    [("10s", "20s", 110, 179), ("10jobs", "1 job", 110, 198), ("10%", "25.5 %", 110, 174), ("0s", "0", 100, 199)],
)
def test_trims_are_durations_job_counts_or_shares(warm_up: str, cool_down: str, first: int, last: int) -> None:
    window = window_of(SUBMITS, parse_trim(warm_up), parse_trim(cool_down))

    measured = [submit // SECOND for submit in SUBMITS if window.contains(submit)]
    assert (measured[0], measured[-1]) == (first, last)
    assert window.usage_end(Instant(500 * SECOND)) == last * SECOND


@pytest.mark.parametrize(("warm_up", "cool_down"), [("100jobs", "0"), ("0", "101jobs"), ("60%", "60%"), ("1d", "0")])
def test_trims_may_exclude_every_job(warm_up: str, cool_down: str) -> None:
    window = window_of(SUBMITS, parse_trim(warm_up), parse_trim(cool_down))

    assert not any(window.contains(submit) for submit in SUBMITS)


@pytest.mark.parametrize("text", ["100%", "-1s", "ten", "5 %%", "", "3 job s"])
def test_an_invalid_trim_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"trim|whole run"):
        parse_trim(text)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=40), st.integers(0, 60), st.integers(0, 60))
def test_trims_by_job_count_exclude_at_most_that_many(submits: list[int], before: int, after: int) -> None:
    window = window_of(submits, parse_trim(f"{before}jobs"), parse_trim(f"{after}jobs"))

    left_out = [submit for submit in submits if not window.contains(submit)]
    assert len(left_out) <= min(len(submits), before + after)
