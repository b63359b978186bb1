"""Structural schemas: types, and fields inside allOf and anyOf."""

from __future__ import annotations

from tests.api.custom.definitions.definitions import definition, problems, version

from batkube.api.custom.definitions.strategy import validate_definition


def test_a_schema_needs_a_type_unless_it_preserves_unknown_fields() -> None:
    assert problems(("a", {})) == [
        ("properties[a].type", "Required value: must not be empty for specified object fields")
    ]
    assert problems(("a", {"x-kubernetes-preserve-unknown-fields": True})) == []
    assert problems(("a", {"x-kubernetes-int-or-string": True})) == []


def test_types_inside_any_of_are_rejected_except_for_int_or_string() -> None:
    either = [{"type": "integer"}, {"type": "string"}]

    assert problems(("a", {"x-kubernetes-int-or-string": True, "anyOf": either})) == []
    assert problems(("a", {"type": "string", "anyOf": [{"type": "string"}]})) == [
        ("properties[a].anyOf[0].type", "Forbidden: must be empty to be structural")
    ]


def test_fields_validated_inside_any_of_must_be_specified_outside() -> None:
    schema = {"type": "object", "allOf": [{"properties": {"x": {"minLength": 1}}}]}

    [error] = validate_definition(definition(version(schema=schema)), None)

    assert error.field == "spec.validation.openAPIV3Schema.properties[x]"
    assert error.message == (
        "Required value: because it is defined in spec.validation.openAPIV3Schema.allOf[0].properties[x]"
    )
