"""Versions of definitions: where errors are reported, and selectable fields."""

from __future__ import annotations

import pytest
from tests.api.custom.definitions.definitions import definition, version

from batkube.api.custom.definitions.strategy import validate_definition


def test_errors_name_shared_fields_at_the_top_and_others_at_their_version() -> None:
    bad = {"type": "object", "properties": {"a": {"type": "bogus"}}}

    shared = validate_definition(definition(version(schema=bad), version("v2", schema=bad)), None)
    own = validate_definition(definition(version(), version("v2", schema=bad)), None)

    assert [error.field for error in shared] == ["spec.validation.openAPIV3Schema.properties[a].type"]
    assert [error.field for error in own] == ["spec.versions[1].schema.openAPIV3Schema.properties[a].type"]


@pytest.mark.parametrize(
    ("paths", "problem"),
    [
        ([".spec.color"], ""),
        ([".spec.color", ".spec.color"], 'Duplicate value: ".spec.color"'),
        ([".spec.bogus"], 'Invalid value: ".spec.bogus": is an invalid path: does not refer to a valid field'),
        (["spec"], 'Invalid value: "spec": is an invalid path: expected [ or . but got: spec'),
        ([".spec['color']"], "Invalid value: \".spec['color']\": is an invalid path: array notation is not allowed"),
    ],
)
def test_selectable_fields_must_be_scalars_in_the_schema(paths: list[str], problem: str) -> None:
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"color": {"type": "string"}}}},
    }
    value = definition(version(schema=schema, selectableFields=[{"jsonPath": path} for path in paths]))

    assert [error.message for error in validate_definition(value, None)] == ([problem] if problem else [])
