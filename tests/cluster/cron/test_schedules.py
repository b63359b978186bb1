"""Activation times of CronJob schedules, compared with robfig/cron.

The activation times were recorded from github.com/robfig/cron/v3 v3.0.1.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.api.groups.batch.cron_schedules import check_schedule
from batkube.api.validation.problems import Problems
from batkube.cluster.cron.parser import InvalidSchedule, parse_schedule
from batkube.kernel.instants import Instant, instant_of, rfc3339, seconds


@pytest.mark.parametrize(
    ("schedule", "after", "expected"),
    [
        ("*/15 * * * *", "2024-03-01T10:07:30Z", "2024-03-01T10:15:00Z"),
        ("0 2 * * *", "2024-03-01T02:00:00Z", "2024-03-02T02:00:00Z"),
        ("30 8 * * MON-FRI", "2024-03-01T09:00:00Z", "2024-03-04T08:30:00Z"),
        ("0 0 1 jan ?", "2024-03-01T09:00:00Z", "2025-01-01T00:00:00Z"),
        ("0 0 13 * 5", "2024-03-01T00:00:00Z", "2024-03-08T00:00:00Z"),
        ("0 0 29 2 *", "2024-03-01T00:00:00Z", "2028-02-29T00:00:00Z"),
        ("5,10-12/2 3 * * *", "2024-03-01T03:10:00Z", "2024-03-01T03:12:00Z"),
        ("@daily", "2024-12-31T12:00:00Z", "2025-01-01T00:00:00Z"),
        ("@every 90s", "2024-03-01T00:00:00Z", "2024-03-01T00:01:30Z"),
        ("TZ=Europe/Paris 30 2 * * *", "2024-03-30T12:00:00Z", "2024-04-01T00:30:00Z"),
        ("TZ=Europe/Paris 30 2 * * *", "2024-10-26T12:00:00Z", "2024-10-27T00:30:00Z"),
        ("TZ=Europe/Paris 30 2 * * *", "2024-10-27T00:30:00Z", "2024-10-27T01:30:00Z"),
        ("TZ=America/Sao_Paulo 0 0 * * 0", "2018-11-03T12:00:00Z", "2018-11-11T02:00:00Z"),
        ("TZ=Australia/Lord_Howe */20 2 * * *", "2024-10-05T15:00:00Z", "2024-10-05T15:40:00Z"),
        ("0 0 */2 * 1", "2024-03-01T00:00:00Z", "2024-03-03T00:00:00Z"),
        ("0 0 1,* * 1", "2024-03-01T00:00:00Z", "2024-03-04T00:00:00Z"),
        ("1,,2 * * * *", "2024-03-01T00:01:00Z", "2024-03-01T00:02:00Z"),
        ("@every 1µs", "2024-03-01T00:00:00Z", "2024-03-01T00:00:01Z"),
        ("@every -1h", "2024-03-01T00:00:00Z", "2024-03-01T00:00:01Z"),
        ("@every 1m1.9s", "2024-03-01T00:00:00Z", "2024-03-01T00:01:01Z"),
        ("CRON_TZ=Asia/Kathmandu @hourly", "2024-03-01T00:00:00Z", "2024-03-01T00:15:00Z"),
    ],
)
def test_the_next_activation_is_that_of_the_library(schedule: str, after: str, expected: str) -> None:
    due = parse_schedule(schedule).next_after(instant_of(after))
    assert due is not None
    assert rfc3339(due) == expected


def test_a_time_zone_shifts_the_activation() -> None:
    due = parse_schedule("TZ=Europe/Paris 0 9 * * *").next_after(instant_of("2024-07-01T00:00:00Z"))
    assert due == instant_of("2024-07-01T07:00:00Z")


def test_a_date_that_does_not_exist_never_activates() -> None:
    assert parse_schedule("0 0 31 2 *").next_after(Instant(0)) is None


@given(st.integers(0, 59), st.integers(0, 23), st.integers(0, 4_000_000))
def test_the_next_activation_of_a_daily_schedule_is_within_a_day(minute: int, hour: int, now_s: int) -> None:
    now = Instant(seconds(now_s))
    due = parse_schedule(f"{minute} {hour} * * *").next_after(now)
    assert due is not None
    assert now < due <= now + seconds(86400)
    assert rfc3339(due)[11:] == f"{hour:02d}:{minute:02d}:00Z"


def test_a_day_skipped_by_a_time_zone_does_not_block_the_search() -> None:
    """The library itself loops forever on Samoa's 30 December 2011."""
    due = parse_schedule("TZ=Pacific/Apia 55 5 * * mon").next_after(instant_of("2011-12-29T15:00:00Z"))
    assert due == instant_of("2012-01-01T15:55:00Z")


def test_a_time_beyond_the_calendar_never_activates() -> None:
    assert parse_schedule("0 0 1 1 *").next_after(instant_of("9999-06-01T00:00:00Z")) is None


PIECES = st.sampled_from(["*", "?", "*/2", "*/7", "1", "3-5", "2/3", "1-6/2", "", "+4", "6", "0", "mon", "FEB", "*-3"])
FIELDS = st.lists(PIECES, min_size=1, max_size=3).map(lambda pieces: ",".join(pieces) or ",")
DURATIONS = st.sampled_from(["1µs", "-1h", "1.5s", "0", "90s", "1h30m", "+5m", "-0.5ns"])
SCHEDULES = st.one_of(
    st.lists(FIELDS, min_size=5, max_size=5).map(" ".join),
    DURATIONS.map("@every {}".format),
    st.sampled_from(["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"]),
)


ZONES = st.sampled_from([None, "Europe/Paris", "America/Sao_Paulo", "Pacific/Apia", "Asia/Kathmandu"])


@given(SCHEDULES, ZONES, st.integers(0, 20 * 366 * 86400))
def test_the_controller_understands_every_schedule_that_passes_validation(
    text: str, zone: str | None, now_s: int
) -> None:
    problems = Problems()
    check_schedule(text, "spec.schedule", problems, zone, None)
    if problems:
        with pytest.raises(InvalidSchedule):
            parse_schedule(text)
        return
    now = Instant(seconds(now_s))
    due = parse_schedule(f"TZ={zone} {text}" if zone else text).next_after(now)
    assert due is None or (due > now and due % seconds(1) == 0)
    if text.startswith("@"):
        assert due is not None
