"""YAML responses; the expected texts were checked against kube-apiserver's converter."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.api.decoding.objects import parse_yaml
from batkube.api.decoding.yaml_emitter import to_yaml
from conformance import CASES

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x85\u2028\u2029\ufeff"), max_size=12)
DOCUMENTS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(DOCUMENTS)
def test_emitted_yaml_parses_to_the_same_value(document: Any) -> None:  # noqa: ANN401
    assert parse_yaml(to_yaml({"a": document})) == ({"a": document}, [])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("", '""'),
        ("yes", '"yes"'),
        ("1", '"1"'),
        ("1:30", '"1:30"'),
        ("2026-11-15T20:34:37Z", '"2026-11-15T20:34:37Z"'),
        ("2026-13-15", "2026-13-15"),
        ("a: b", "'a: b'"),
        ("# x", "'# x'"),
        ("<<", "<<"),
        ("x\ny", "|-\n  x\n  y"),
        ("x\ny\n", "|\n  x\n  y"),
        (None, "null"),
        (True, "true"),
        (2.0, "2"),
        (0.5, "0.5"),
        (1234567.5, "1.2345675e+06"),
        (0.00001, "1e-05"),
        ([], "[]"),
        ({}, "{}"),
        ([{"b": [1]}], "\n- b:\n  - 1"),
    ],
)
def test_values_are_written_as_go_writes_them(value: Any, text: str) -> None:  # noqa: ANN401
    separator = "" if text.startswith("\n") else " "
    assert to_yaml({"k": value}).decode() == f"k:{separator}{text}\n"


def test_numbers_within_keys_sort_as_numbers_and_letters_come_last() -> None:
    keys = ["k10", "k9", "B", "a", "a.b", "a-b", ".", "k09"]

    assert list(parse_keys(to_yaml(dict.fromkeys(keys, 0)).decode())) == [
        ".",
        "B",
        "a",
        "a-b",
        "a.b",
        "k9",
        "k09",
        "k10",
    ]


def parse_keys(text: str) -> list[str]:
    return [line.partition(": ")[0].strip("'\"") for line in text.splitlines()]


def test_long_text_is_folded_at_eighty_columns() -> None:
    assert to_yaml({"a": "word " * 20 + "end"}).decode().splitlines() == [
        "a: word word word word word word word word word word word word word word word word",
        "  word word word word end",
    ]


def test_recorded_yaml_is_reproduced() -> None:
    compared = 0
    for path in sorted(CASES.glob("*/*.json")):
        for step in json.loads(path.read_text(encoding="utf-8"))["steps"]:
            answer = step.get("response", {})
            if "yaml" in str(answer.get("content_type")) and isinstance(answer.get("body"), str):
                value, _ = parse_yaml(answer["body"].encode())
                assert to_yaml(value).decode() == answer["body"], path
                compared += 1
    assert compared > 1
