"""The parser of CronJob schedules, compared with robfig/cron.

The messages were recorded from github.com/robfig/cron/v3 v3.0.1.
"""

from __future__ import annotations

import pytest

from batkube.cluster.cron.parser import InvalidSchedule, parse_schedule


@pytest.mark.parametrize("text", ["* * * * *", "*/5 1-3 1,15 jan-mar MON", "@daily", "@every 1h30m", "0 0 ? * 0"])
def test_a_valid_schedule_is_parsed(text: str) -> None:
    parse_schedule(text)
    with pytest.raises(InvalidSchedule):
        parse_schedule(f"{text} and more")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty spec string"),
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("61 * * * *", "end of range (61) above maximum (59): 61"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("5-3 * * * *", "beginning of range (5) beyond end of range (3): 5-3"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
        ("@never", "unrecognized descriptor: @never"),
        ("@every µs", 'failed to parse duration @every µs: time: invalid duration "\\xc2\\xb5s"'),
        ("TZ=Mars/X * * * * *", "provided bad location Mars/X: unknown time zone Mars/X"),
        ("TZ=Europe * * * * *", "provided bad location Europe: is a directory"),
    ],
)
def test_an_invalid_schedule_is_rejected_with_the_message_of_the_library(text: str, problem: str) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        parse_schedule(text)

    assert str(caught.value) == problem


@pytest.mark.parametrize("text", ["", "* * * *", "61 * * * *", "* * * * mond", "*/0 * * * *", "5-1 * * * *"])
def test_a_text_that_is_not_a_schedule_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_schedule(text)
