"""JSONPath, as in client-go."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.api.printing.json_paths import BadJsonPath, JsonPath, PathNotApplicable


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".a[0:3:2].n", [1, 3]),
        (".a[1:].n", [2, 3]),
        (".a[:-1].n", [1, 2]),
        (".a[0,2].n", [1, 3]),
        ("..n", [1, 2, 3]),
        (".a[?(@.n>1)].n", [2, 3]),
        (".a[?(@.m)].n", [3]),
        (".*", [[{"n": 1}, {"n": 2}, {"n": 3, "m": 0}], "t"]),
        ("$.b", ["t"]),
    ],
)
def test_paths_yield_the_same_values_as_in_client_go(path: str, found: list[Any]) -> None:
    assert JsonPath(path).evaluate({"a": [{"n": 1}, {"n": 2}, {"n": 3, "m": 0}], "b": "t"}) == found


@given(st.text("ab.[]?()@*,:'\"=-01 \\", max_size=12))
def test_any_path_is_valid_or_raises_a_documented_error(path: str) -> None:
    try:
        values = JsonPath(path).evaluate({"a": [{"b": 1}], "b": "t"})
    except (BadJsonPath, PathNotApplicable):
        return
    assert isinstance(values, list)
