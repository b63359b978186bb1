"""CEL types of schemas."""

from __future__ import annotations

import pytest

from batkube.api.custom.schemas.cel_types import escape_name


@pytest.mark.parametrize(
    ("name", "in_rules"),
    [
        ("a", "a"),
        ("x-y", "x__dash__y"),
        ("a.b/c", "a__dot__b__slash__c"),
        ("in", "__in__"),
        ("1", None),
        ("ä", None),
    ],
)
def test_names_that_are_not_identifiers_are_escaped(name: str, in_rules: str | None) -> None:
    assert escape_name(name) == in_rules
