"""Defaults in schemas."""

from __future__ import annotations

from tests.api.custom.definitions.definitions import problems


def test_a_default_must_be_valid_and_have_known_fields_only() -> None:
    inner = {"type": "object", "properties": {"x": {"type": "integer"}}}

    assert problems(("a", {**inner, "default": {"y": 1}})) == [
        ("properties[a].default", 'Invalid value: {"y":1}: must not have unknown fields')
    ]
    assert problems(("a", {**inner, "default": {"x": "1"}})) == [
        ("properties[a].default.x", 'Invalid value: "string": x in body must be of type integer: "string"')
    ]
    assert problems(("a", {"type": "integer", "default": 0, "x-kubernetes-validations": [{"rule": "self > 1"}]})) == [
        ("properties[a].default", 'Invalid value: "integer": failed rule: self > 1')
    ]
