"""Time modes on the command line and in scenario files."""

from __future__ import annotations

import pytest

from batkube.kernel.instants import seconds
from batkube.timing.paced import PUBLISHED, Pacing
from batkube.timing.time_rules import EXACT, InvalidTimeRules, TimeMode, TimeRules, parse_time


@pytest.mark.parametrize(
    ("given", "rules"),
    [
        ("exact", EXACT),
        ({"mode": "exact"}, EXACT),
        ("paced", TimeRules(TimeMode.PACED, PUBLISHED)),
        (
            "paced:timeout=50ms, max-step=1000s",
            TimeRules(TimeMode.PACED, Pacing(timeout=seconds("0.05"), max_step=seconds(1000))),
        ),
        (
            {"mode": "paced", "timeout": "50ms", "max-step": 1000},
            TimeRules(TimeMode.PACED, Pacing(timeout=seconds("0.05"), max_step=seconds(1000))),
        ),
        (
            {"mode": "paced", "fast-forward": False, "multiplier": 3, "timeout": 0},
            TimeRules(TimeMode.PACED, Pacing(fast_forward=False, multiplier=3.0, timeout=seconds(0))),
        ),
        ("paced:fast-forward=off,admission=on", TimeRules(TimeMode.PACED, Pacing(fast_forward=False, admission=True))),
        ("paced:replay=on", TimeRules(TimeMode.PACED, Pacing(replay=True))),
        ("realtime", TimeRules(TimeMode.REALTIME)),
        ("realtime:speed=2.5", TimeRules(TimeMode.REALTIME, speed=2.5)),
    ],
)
def test_a_text_and_a_mapping_are_equivalent(given: object, rules: TimeRules) -> None:
    assert parse_time(given) == rules


@pytest.mark.parametrize("text", ["exact", "realtime:speed=7", "paced:timeout=1ms,min-delay=2ms,crash-timeout=1m"])
def test_described_rules_parse_to_the_same_rules(text: str) -> None:
    rules = parse_time(text)

    assert parse_time(rules.describe()) == rules


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("fast", "'fast' is not a time mode"),
        ("", "'' is not a time mode"),
        ({}, "has no mode"),
        ("exact:timeout=1s", "'timeout' is not a parameter of exact"),
        ("paced:speed=2", "'speed' is not a parameter of paced"),
        ("paced:timeout", "'timeout' is not of the form name=value"),
        ("paced:timeout=soon", "'soon' is not a duration"),
        ("paced:base-step=0", "base-step is 0"),
        ("paced:multiplier=0.5", "multiplier cannot be 0.5"),
        ("paced:multiplier=nan", "multiplier cannot be nan"),
        ("paced:admission=perhaps", "neither on nor off"),
        ("realtime:speed=0", "speed cannot be 0"),
        ("realtime:speed=x", "'x' is not a number"),
    ],
)
def test_invalid_rules_are_rejected_with_a_remedy(given: object, problem: str) -> None:
    with pytest.raises(InvalidTimeRules, match=problem) as caught:
        parse_time(given)

    assert caught.value.remedy


def test_only_the_prototypes_nodes_admit_every_pod() -> None:
    assert EXACT.enforces_admission
    assert parse_time("realtime").enforces_admission
    assert parse_time("paced:admission=on").enforces_admission
    assert not parse_time("paced").enforces_admission
