"""YAML bodies; the expected values were checked against kube-apiserver's converter."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.api.decoding.objects import ParseError, parse_yaml, strict_warnings

WORDS = st.text("abcxyz019 .:-_~{}[]'\"\\#,éß", max_size=8)
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)


@given(DOCUMENTS)
def test_json_is_yaml(document: Any) -> None:  # noqa: ANN401
    assert parse_yaml(json.dumps(document).encode()) == (document, [])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("y", True),
        ("No", False),
        ("on", True),
        ("~", None),
        ("0x10", 16),
        ("010", 8),
        ("0o17", 15),
        ("0b11", 3),
        ("1_000", 1000),
        ("08", 8),
        ("1.0", 1),
        ("1e3", 1000),
        (".5", 0.5),
        ("+5", 5),
        ("2020-01-01", "2020-01-01"),
        ("1:30", "1:30"),
        ("1.2.3", "1.2.3"),
        ("'010'", "010"),
        ("!!str 5", "5"),
        ("!!binary aGk=", "hi"),
        ("-x", "-x"),
        ("=", "="),
        ("18446744073709551615", 18446744073709551615),
        ("|\n  x\n  y\n", "x\ny\n"),
    ],
)
def test_scalars_are_resolved_as_in_yaml_1_1(text: str, value: Any) -> None:  # noqa: ANN401
    assert parse_yaml(f"a: {text}".encode()) == ({"a": value}, [])


def test_keys_are_text_and_sorted() -> None:
    value, _ = parse_yaml(b"b: 1\n2: x\ntrue: w\n1.5: z\na: 0")

    assert list(value.items()) == [("1.5", "z"), ("2", "x"), ("a", 0), ("b", 1), ("true", "w")]


def test_merge_keys_add_fields_that_are_not_set() -> None:
    value, _ = parse_yaml(b"base: &b {a: 1, b: 2}\nuse:\n  <<: *b\n  b: 3\n")

    assert value["use"] == {"a": 1, "b": 3}


def test_duplicate_keys_are_reported_with_their_line() -> None:
    value, problems = parse_yaml(b"kind: ConfigMap\ndata:\n  a: '1'\n  a: '2'\n  3: x\n  3: z\n")

    assert value["data"] == {"3": "z", "a": "2"}
    assert problems == [
        'yaml: unmarshal errors:\n  line 4: key "a" already set in map\n  line 6: key 3 already set in map'
    ]
    assert strict_warnings([*problems, 'unknown field "x"']) == [
        'line 4: key "a" already set in map',
        "line 6: key 3 already set in map",
        'unknown field "x"',
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (":\n- x", "yaml: did not find expected key"),
        ("a: b: c", "yaml: mapping values are not allowed in this context"),
        ("\tx: y", "yaml: found character that cannot start any token"),
        ("a: [1,2\nb: 3", "yaml: line 1: did not find expected ',' or ']'"),
        ("a:\n  - b\n c: d", "yaml: line 2: did not find expected key"),
        ("a: *x", "yaml: unknown anchor 'x' referenced"),
        ("a: &a\n  b: *a", "yaml: anchor 'a' value contains itself"),
        ("{[.]: 1}", 'yaml: invalid map key: ["."]'),
        ("~: d", "yaml: invalid map key: null"),
        ("a: .nan", "json: unsupported value: NaN"),
        ("a: !!int x", "yaml: cannot decode !!str `x` as a !!int"),
    ],
)
def test_yaml_errors_have_the_message_of_go_apart_from_the_text_of_a_key(text: str, problem: str) -> None:
    with pytest.raises(ParseError) as raised:
        parse_yaml(text.encode())
    assert str(raised.value) == problem


def test_nested_aliases_do_not_exhaust_memory() -> None:
    lines = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40))]

    with pytest.raises(ParseError, match="excessive aliasing"):
        parse_yaml("\n".join(lines).encode())


@pytest.mark.parametrize("text", ["[" * 200_000, "- " * 200_000, "{a: " * 10_000, "? " * 10_000])
def test_deep_nesting_is_rejected_at_once(text: str) -> None:
    with pytest.raises(ParseError, match="exceeded max depth"):
        parse_yaml(text.encode())


def test_only_the_first_document_is_parsed() -> None:
    assert parse_yaml(b"a: 1\n---\nb: : c") == ({"a": 1}, [])
    assert parse_yaml(b"") == (None, [])
