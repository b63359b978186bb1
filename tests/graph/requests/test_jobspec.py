"""Jobspecs are parsed as specified in RFC 14; invalid ones are rejected with the place of the error."""

from __future__ import annotations

from pathlib import Path

import pytest

from batkube.graph import CountRange, parse_jobspec
from batkube.graph.requests.jobspec import Jobspec
from batkube.kernel.errors import InputError

PATH = Path("job.yaml")
BASIC = """
version: 9999
resources:
  - type: node
    count: {count}
    with: [{{type: slot, count: 1, label: default, with: [{{type: core, count: 4}}]}}]
tasks: [{{command: [app], slot: default, count: {{per_slot: 1}}}}]
attributes: {attributes}
"""


def jobspec(count: str = "1", attributes: str = "") -> Jobspec:
    return parse_jobspec(PATH, BASIC.format(count=count, attributes=attributes))


@pytest.mark.parametrize(
    ("count", "available", "amount"),
    [
        (CountRange(2, 2), 5, 2),
        (CountRange(2, 2), 1, 0),
        (CountRange(2, 10, "+", 3), 9, 8),
        (CountRange(2, 4, "+", 3), 9, 2),
        (CountRange(2, 16, "*", 2), 15, 8),
        (CountRange(2, 16, "*", 2), 100, 16),
        (CountRange(2, 100, "^", 2), 20, 16),
        (CountRange(2, 100, "^", 3), 9, 8),
        (CountRange(3, 2), 9, 0),
    ],
)
def test_a_count_takes_the_largest_available_member_of_its_series(
    count: CountRange, available: int, amount: int
) -> None:
    assert count.amount(available) == amount


def test_a_range_without_a_maximum_takes_everything_available() -> None:
    assert jobspec("{min: 3}").resources[0].count.amount(17) == 17


def test_durations_are_rounded_up_to_whole_seconds() -> None:
    assert jobspec(attributes="{system: {duration: 0.5}}").duration == 1
    assert jobspec(attributes="{system: {duration: 3600}}").duration == 3600
    assert jobspec().duration == 0


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (BASIC.format(count="-1", attributes=""), "line 5, resources[0].count"),
        (BASIC.format(count="{min: 1, max: 2}", attributes=""), "line 5, resources[0].count"),
        (BASIC.format(count='{min: 1, max: 4, operator: "^", operand: 2}', attributes=""), "resources[0].count.min"),
        (BASIC.format(count="1", attributes="{system: {duration: -1}}"), "attributes.system.duration"),
        (BASIC.format(count="1", attributes="{system: {constraints: {near: [x]}}}"), "constraints.near"),
        (BASIC.format(count="1", attributes="{others: 1}"), "attributes.others"),
        (BASIC.format(count="1", attributes="").replace("label: default, ", ""), "resources[0].with[0]"),
        (BASIC.format(count="1", attributes="").replace("type: core", "kind: core"), "resources[0].with[0].with[0]"),
        (BASIC.format(count="1", attributes="") + "more: 1\n", "line 9, more"),
        (BASIC.format(count="1", attributes="").replace("version: 9999", "version: 10000"), "line 2, version"),
    ],
)
def test_an_invalid_jobspec_is_rejected_with_its_place(text: str, place: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_jobspec(PATH, text)

    assert caught.value.at is not None
    assert place in caught.value.at


def test_exponential_aliases_are_rejected() -> None:
    levels = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]\n" for n in range(1, 9))

    with pytest.raises(InputError, match="aliases stand for more than"):
        parse_jobspec(PATH, f"l0: &l0 x\n{levels}")
