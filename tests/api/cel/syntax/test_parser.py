"""Limits of the parser of CEL."""

from __future__ import annotations

import pytest

from batkube.api.cel.programs import CelProgram
from batkube.api.cel.syntax.nodes import SourceError
from batkube.api.cel.types import DYN


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("9" * 5000 + " > 1", "invalid int literal"),
        ("(" * 2000 + "true" + ")" * 2000, "expression recursion limit exceeded: 250"),
        (" + ".join(["1"] * 5000) + " > 0", "max recursion depth exceeded"),
        ("self" + ".a" * 5000 + " == 1", "max recursion depth exceeded"),
        ("'" + "a" * 200_000 + "' == ''", "expression code point size exceeds limit: size: 200008, limit 100000"),
        ("@" * 90_000, "89901 more errors were truncated"),
    ],
    ids=["digits", "parentheses", "sum", "path", "length", "junk"],
)
def test_expressions_beyond_the_limits_of_cel_are_rejected(rule: str, problem: str) -> None:
    with pytest.raises(SourceError) as refused:
        CelProgram(rule, {"self": DYN})
    assert problem in str(refused.value)


def test_alternatives_do_not_count_as_nesting() -> None:
    assert CelProgram(" || ".join(["false"] * 5000 + ["true"]), {})({}) is True
