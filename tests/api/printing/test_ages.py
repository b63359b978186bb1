"""Ages in tables."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.api.printing.ages import human_duration
from batkube.kernel.instants import NANOSECONDS_PER_SECOND

SECOND = NANOSECONDS_PER_SECOND


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (121, "2m1s"),
        (599, "9m59s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600, "8h"),
        (48 * 3600, "2d"),
        (49 * 3600, "2d1h"),
        (8 * 86400, "8d"),
        (2 * 365 * 86400, "2y"),
        (2 * 365 * 86400 + 86400, "2y1d"),
        (9 * 365 * 86400 + 86400, "9y"),
    ],
)
def test_ages_have_two_or_three_digits(seconds: int, text: str) -> None:
    assert human_duration(seconds * SECOND) == text


@given(st.integers(0, 10**12))
def test_an_age_never_exceeds_the_duration(seconds: int) -> None:
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400, "y": 365 * 86400}

    displayed = sum(
        int(number) * units[unit] for number, unit in re.findall(r"(\d+)([smhdy])", human_duration(seconds * SECOND))
    )

    assert displayed <= seconds < max(displayed * 1.13, displayed + 60)
