from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.api.decoding.objects import ParseError, parse_json
from batkube.cluster.kinds import KindTable

CONFIG_MAP = KindTable.builtin().definition_of("", "v1", "ConfigMap")
POD = KindTable.builtin().definition_of("", "v1", "Pod")
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(DOCUMENTS, st.booleans(), st.sampled_from([None, 2]))
def test_valid_json_is_parsed_as_by_json_loads(document: Any, ascii_only: bool, indent: int | None) -> None:  # noqa: ANN401
    text = json.dumps(document, ensure_ascii=ascii_only, indent=indent)

    assert parse_json(text.encode("utf-8", "surrogatepass")) == (json.loads(text), [])


@given(
    st.lists(st.sampled_from(["a", "b", 'c"', "d:", "\\", '":']), min_size=2, max_size=6), st.sampled_from([":", " : "])
)
def test_a_duplicate_key_is_always_detected(keys: list[str], colon: str) -> None:
    body = "{" + ",".join(f"{json.dumps(key)}{colon}{number}" for number, key in enumerate(keys)) + "}"

    value, problems = parse_json(body.encode())

    assert value == {key: number for number, key in enumerate(keys)}
    assert len(problems) == len({key for key in keys if keys.count(key) > 1})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "unexpected end of JSON input"),
        ("{", "unexpected end of JSON input"),
        ("x", "invalid character 'x' looking for beginning of value"),
        ("{'a':1}", "invalid character '\\'' looking for beginning of object key string"),
        ('{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":1 "b"}', "invalid character '\"' after object key:value pair"),
        ("[1 2]", "invalid character '2' after array element"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("{} x", "invalid character 'x' after top-level value"),
        ('{"a":01}', "invalid character '1' after object key:value pair"),
        ('{"a":1.}', "invalid character '}' after decimal point in numeric literal"),
        ('{"a":1e}', "invalid character '}' in exponent of numeric literal"),
        ('{"a":-}', "invalid character '}' in numeric literal"),
        ('{"a":tru}', "invalid character '}' in literal true (expecting 'e')"),
        ('{"a":nul', "invalid character ' ' in literal null (expecting 'l')"),
        ('{"a":"\\x"}', "invalid character 'x' in string escape code"),
        ('{"a":"\\u12g4"}', "invalid character 'g' in \\u hexadecimal character escape"),
        ('{"a":"\n"}', "invalid character '\\n' in string literal"),
        ("é", "invalid character 'Ã' looking for beginning of value"),
        ("[" * 10_001, "invalid character '[' exceeded max depth"),
    ],
)
def test_syntax_errors_have_the_message_of_go(text: str, problem: str) -> None:
    with pytest.raises(ParseError) as raised:
        parse_json(text.encode())
    assert str(raised.value) == problem


def test_nesting_deeper_than_we_support_is_an_error() -> None:
    with pytest.raises(ParseError, match="exceeded max depth"):
        parse_json(b'{"a":' * 5000 + b"1" + b"}" * 5000)


@given(st.binary(max_size=30))
def test_any_bytes_are_parsed_or_rejected(data: bytes) -> None:
    try:
        value, _ = parse_json(data)
    except ParseError:
        return
    assert value == json.loads(data.decode("utf-8", "replace"))


def test_invalid_encodings_become_the_replacement_character() -> None:
    assert parse_json(b'{"a":"\xff","b":"\\ud800x\\ud83d\\ude00\\\\ud800"}') == (
        {"a": "\ufffd", "b": "\ufffdx\U0001f600\\ud800"},
        [],
    )


@pytest.mark.parametrize(
    ("body", "read", "problems"),
    [
        (
            '{"data":{"a":"1","a":"2"},"data":{"b":"3"}}',
            {"data": {"a": "2", "b": "3"}},
            ['duplicate field "data.a"', 'duplicate field "data"'],
        ),
        (
            '{"metadata":{"lables":{}},"data":{"a":"1"},"dta":{},"data":{"a":"2"}}',
            {"metadata": {}, "data": {"a": "2"}},
            ['unknown field "metadata.lables"', 'unknown field "dta"', 'duplicate field "data"'],
        ),
        (
            '{"metadata":{"name":"x"},"metadata":{"labels":{"a":"b"}}}',
            {"metadata": {"name": "x", "labels": {"a": "b"}}},
            ['duplicate field "metadata"'],
        ),
        ('{"data":{"a":"1"},"data":null}', {"data": None}, ['duplicate field "data"']),
    ],
)
def test_duplicate_fields_are_merged_as_in_go(body: str, read: dict[str, Any], problems: list[str]) -> None:
    assert parse_json(body.encode(), CONFIG_MAP) == (read, problems)


def test_a_duplicate_list_replaces_the_first_one_and_structs_are_merged_at_all_levels() -> None:
    body = b'{"spec":{"securityContext":{"runAsUser":1},"containers":[{"name":"a"}]},'
    body += b'"spec":{"securityContext":{"runAsGroup":2},"containers":[{"name":"b"}]}}'

    value, problems = parse_json(body, POD)

    assert value["spec"] == {"securityContext": {"runAsUser": 1, "runAsGroup": 2}, "containers": [{"name": "b"}]}
    assert problems == ['duplicate field "spec"']
