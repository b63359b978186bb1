from __future__ import annotations

import time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.kernel.instants import (
    Instant,
    duration,
    format_seconds,
    human_duration,
    instant_of,
    rfc3339,
    rfc3339_micro,
    seconds,
)
from batkube.kernel.stopwatch import wall_clock_instant


@pytest.mark.parametrize(
    ("value", "ns"),
    [
        (170, 170_000_000_000),
        (0.1, 100_000_000),
        ("4.709164021244639", 4_709_164_021),
        (Decimal("1e-9"), 1),
        (-1, -1_000_000_000),
        (1e-10, 0),
    ],
)
def test_decimal_seconds_become_exact_nanoseconds(value: float | str | Decimal, ns: int) -> None:
    assert seconds(value) == ns


@pytest.mark.parametrize("value", ["abc", "", float("nan"), float("inf"), 1e30, 10**11, "1e400"])
def test_a_value_that_is_not_a_time_is_rejected(value: float | str) -> None:
    with pytest.raises(ValueError, match=r"number|292 years"):
        seconds(value)


@pytest.mark.parametrize(
    ("text", "expected_s"),
    [
        ("90", 90),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("2d", 172800),
        ("250ms", 0.25),
        ("1w", 604800),
        ("1h 5", None),
        ("1.34.4", None),
    ],
)
def test_durations_are_parsed_in_the_forms_people_use(text: str, expected_s: float | None) -> None:
    if expected_s is None:
        with pytest.raises(ValueError, match="not a duration"):
            duration(text)
    else:
        assert duration(text) == seconds(expected_s)


@given(st.integers(min_value=-(10**15), max_value=10**15))
def test_printed_seconds_are_rounded_to_six_decimals(ns: int) -> None:
    text = format_seconds(ns)

    assert len(text.partition(".")[2]) == 6
    assert abs(seconds(text) - ns) <= 500


@given(st.lists(st.floats(min_value=0, max_value=1e6), max_size=30))
def test_sums_do_not_depend_on_their_order(values: list[float]) -> None:
    lengths = [seconds(value) for value in values]

    assert sum(lengths) == sum(reversed(lengths))


def test_kubernetes_timestamps_count_from_a_fixed_date() -> None:
    assert rfc3339(Instant(0)) == "2000-01-01T00:00:00Z"
    assert rfc3339(Instant(90_999_999_999)) == "2000-01-01T00:01:30Z"


@given(st.integers(0, 10**15))
def test_a_timestamp_in_microseconds_round_trips(micros: int) -> None:
    assert instant_of(rfc3339_micro(Instant(micros * 1000))) == micros * 1000
    assert instant_of(rfc3339(Instant(micros * 1000))) == micros // 10**6 * 10**9


def test_a_timestamp_is_parsed_in_its_own_time_zone() -> None:
    assert instant_of("2000-01-01T02:00:00+02:00") == 0


def test_the_wall_clock_instant_is_the_current_date() -> None:
    assert abs(wall_clock_instant() / 10**9 - (time.time() - 946684800)) < 5


@pytest.mark.parametrize(
    ("value_s", "text"),
    [(1.5, "1.5 s"), (2210, "36 min 50 s"), (3600, "1 h"), (32554, "9 h 2 min"), (29363626, "339 d 20 h")],
)
def test_durations_are_formatted_for_people(value_s: float, text: str) -> None:
    assert human_duration(seconds(value_s)) == text
