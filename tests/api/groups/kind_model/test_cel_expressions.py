"""Validation of CEL expressions in built-in kinds."""

from __future__ import annotations

import pytest

from batkube.api.cel.types import DYN, CelType
from batkube.api.groups.kind_model.cel_expressions import check_expression
from batkube.api.validation.problems import Problems


def checked(text: str, *results: str, messages: bool = False) -> tuple[CelType, list[str]]:
    """Return the type of an expression over `object`, and the problems found."""
    problems = Problems()
    kind = check_expression(text, {"object": DYN}, "spec.expression", problems, *results, messages=messages)
    assert all(problem.field == "spec.expression" for problem in problems)
    return kind, [problem.message for problem in problems]


def test_a_valid_expression_has_its_type() -> None:
    assert checked("1 + 1 == 2", "bool") == (CelType("bool"), [])


def test_any_type_is_accepted_without_a_list_of_types() -> None:
    assert checked("'a'") == (CelType("string"), [])


@pytest.mark.parametrize(("results", "expected"), [(("bool",), "bool"), (("bool", "double"), "one of [bool double]")])
def test_another_type_is_a_problem(results: tuple[str, ...], expected: str) -> None:
    kind, problems = checked("'a'", *results)

    assert kind == CelType("string")
    assert [message.endswith(f"must evaluate to {expected} but got string") for message in problems] == [True]


@pytest.mark.parametrize("text", ["1 +", "unknown == 1", "1 + 'a'"])
def test_an_expression_that_does_not_compile_is_a_problem(text: str) -> None:
    kind, problems = checked(text, "bool")

    assert kind == DYN
    assert ["compilation failed: " in message for message in problems] == [True]


def test_messages_are_known_to_mutations_only() -> None:
    text = "Object{spec: Object.spec{replicas: 3}}"

    assert checked(text, messages=True)[1] == []
    assert "undeclared reference" in checked(text)[1][0]
