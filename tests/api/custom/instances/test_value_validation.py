"""Validation of values by their schema."""

from __future__ import annotations

from typing import Any

import pytest

from batkube.api.custom.instances.value_validation import validate_value
from batkube.api.custom.schemas.structural import parse_structural


def messages(schema: dict[str, Any], value: Any) -> list[tuple[str, str]]:  # noqa: ANN401
    return [(error.field, error.message) for error in validate_value(parse_structural(schema), value)]


def test_errors_come_from_the_best_matching_of_several_schemas() -> None:
    schema = {
        "type": "object",
        "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
        "anyOf": [{"required": ["x"]}, {"required": ["y"], "properties": {"y": {"minimum": 5}}}],
    }

    assert messages(schema, {"y": 1}) == [
        ("<nil>", 'Invalid value: "": "" must validate at least one schema (anyOf)'),
        ("y", "Invalid value: 1: y in body should be greater than or equal to 5"),
    ]
    assert messages(schema, {"x": 1}) == []


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        ({"oneOf": [{"minimum": 1}, {"maximum": 5}]}, 3, "(oneOf). Found 2 valid alternatives"),
        ({"oneOf": [{"minimum": 9}, {"maximum": 1}]}, 3, "(oneOf). Found none valid"),
        ({"allOf": [{"minimum": 9}, {"maximum": 9}]}, 3, "(allOf)"),
        ({"not": {"enum": [3]}}, 3, "(not)"),
        ({"multipleOf": 2}, 3, "should be a multiple of 2"),
        ({"minimum": 3, "exclusiveMinimum": True}, 3, "should be greater than 3"),
        ({"enum": [1, "a"]}, 3, 'supported values: "1", "a"'),
    ],
)
def test_errors_of_combined_and_bounded_schemas_equal_those_of_kube_apiserver(
    schema: dict[str, Any], value: int, message: str
) -> None:
    assert any(message in text for _, text in messages(schema, value))
