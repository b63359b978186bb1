"""JSON syntax errors, also on Python versions with buggy possessive quantifiers (3.11.2)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.api.decoding.json_syntax import ParseError, check_syntax

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
DOCUMENTS = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5), max_leaves=20
)


@given(DOCUMENTS, st.booleans(), st.sampled_from([None, 2]))
def test_valid_json_has_no_syntax_error(document: Any, ascii_only: bool, indent: int | None) -> None:  # noqa: ANN401
    text = json.dumps(document, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogatepass")

    check_syntax(text)
    with pytest.raises(ParseError, match="invalid character ']' after top-level value"):
        check_syntax(text + b"]")


@given(DOCUMENTS.filter(lambda document: isinstance(document, dict | list)), st.data())
def test_a_truncated_text_ends_unexpectedly(document: Any, data: st.DataObject) -> None:  # noqa: ANN401
    text = json.dumps(document).encode()
    end = data.draw(st.integers(1, len(text) - 1))

    with pytest.raises(ParseError, match=r"unexpected end of JSON input|invalid character ' ' (in|after decimal)"):
        check_syntax(text[:end])


@pytest.mark.parametrize("count", [3, 999, 1000, 1001, 2500])
@pytest.mark.parametrize(
    ("begin", "run", "end", "problem"),
    [
        (b'{"a":[0,', b"1,", b"}", "invalid character '}' looking for beginning of value"),
        (b'{"z":1,', b'"k":"v\\n",', b"x", "invalid character 'x' looking for beginning of object key string"),
        (b'{"z":1,"a":"', b"x\\n", b"\x01", "invalid character '\\\\x01' in string literal"),
    ],
)
def test_an_error_after_many_repetitions_is_found(
    begin: bytes, run: bytes, end: bytes, problem: str, count: int
) -> None:
    with pytest.raises(ParseError) as caught:
        check_syntax(begin + run * count + end)

    assert str(caught.value) == problem.replace("\\\\", "\\")
