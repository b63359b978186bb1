"""Rules in schemas that do not compile."""

from __future__ import annotations

import pytest
from tests.api.custom.definitions.definitions import problems


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("self > 1", ""),
        (
            "self > 'a'",
            "1:6: found no matching overload for '_>_' applied to '(int, string)'\n | self > 'a'\n | .....^",
        ),
        ("foo > 1", "1:1: undeclared reference to 'foo' (in container '')\n | foo > 1\n | ^"),
        ("self.x", "1:5: type 'int' does not support field selection\n | self.x\n | ....^"),
        ("(self > 1", "1:10: Syntax error: missing ')' at '<EOF>'\n | (self > 1\n | .........^"),
        ("self && true", "1:1: expected type 'bool' but found 'int'\n | self && true\n | ^"),
        ("duration('x') > duration('1s')", "1:10: invalid duration argument\n | duration('x') > duration('1s')\n | "),
    ],
)
def test_an_ill_typed_rule_is_rejected_with_the_error_of_cel_go(rule: str, problem: str) -> None:
    errors = problems(("a", {"type": "integer", "x-kubernetes-validations": [{"rule": rule}]}))

    if not problem:
        assert errors == []
    else:
        [(field, message)] = errors
        assert field == "properties[a].x-kubernetes-validations[0].rule"
        assert f"compilation failed: ERROR: <input>:{problem}" in message
