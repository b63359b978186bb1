"""Times and durations as Go reads and prints them; checked against Kubernetes' own types."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.text.go_times import InvalidTime, normalize_duration, normalize_micro_time, normalize_time


def test_times_are_stored_in_utc() -> None:
    assert normalize_time("2024-01-02T03:04:05.987+02:00") == "2024-01-02T01:04:05Z"
    assert normalize_micro_time("2024-01-02T03:04:05.123456-00:30") == "2024-01-02T03:34:05.123456Z"
    assert normalize_time("0001-01-01T00:00:00Z") is None


SECONDS = '"2006-01-02T15:04:05Z07:00"'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x", f'parsing time "x" as {SECONDS}: cannot parse "x" as "2006"'),
        ("2024-13-02T03:04:05Z", 'parsing time "2024-13-02T03:04:05Z": month out of range'),
        ("2024-02-30T03:04:05Z", 'parsing time "2024-02-30T03:04:05Z": day out of range'),
        (
            "2024-02-10 03:04:05Z",
            f'parsing time "2024-02-10 03:04:05Z" as {SECONDS}: cannot parse " 03:04:05Z" as "T"',
        ),
        ("2024-02-10T03:04:05", f'parsing time "2024-02-10T03:04:05" as {SECONDS}: cannot parse "" as "Z07:00"'),
        ("2024-02-10T03:04:05Zx", 'parsing time "2024-02-10T03:04:05Zx": extra text: "x"'),
    ],
)
def test_an_invalid_time_is_reported(text: str, problem: str) -> None:
    with pytest.raises(InvalidTime) as raised:
        normalize_time(text)
    assert str(raised.value) == problem


def test_a_micro_time_has_six_decimals() -> None:
    with pytest.raises(InvalidTime, match=r'cannot parse "Z" as "\.000000"'):
        normalize_micro_time("2024-02-10T03:04:05Z")


@given(st.integers(0, 2**50))
def test_a_duration_survives_a_round_trip(ns: int) -> None:
    stored = normalize_duration(f"{ns}ns")

    assert normalize_duration(stored) == stored


@pytest.mark.parametrize(
    ("text", "stored"), [("90s", "1m30s"), ("1.5h", "1h30m0s"), ("100ms", "100ms"), ("1500us", "1.5ms"), ("-1s", "-1s")]
)
def test_durations_are_printed_as_go_prints_them(text: str, stored: str) -> None:
    assert normalize_duration(text) == stored


@pytest.mark.parametrize(
    ("text", "problem"), [("5", "missing unit"), ("1x", "unknown unit"), ("", "invalid"), ("s", "invalid")]
)
def test_an_invalid_duration_is_reported(text: str, problem: str) -> None:
    with pytest.raises(InvalidTime, match=problem):
        normalize_duration(text)
