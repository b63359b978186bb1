"""Rules of custom resources in CEL."""

from __future__ import annotations

from typing import Any

import pytest

from batkube.api.cel.programs import CelProgram
from batkube.api.cel.syntax.nodes import Unsupported
from batkube.api.custom.instances.cel_rules import RuleSet
from batkube.api.custom.schemas.cel_types import DYN
from batkube.api.custom.schemas.structural import parse_structural


def broken(schema: dict[str, Any], value: Any, old: Any = None) -> list[tuple[str, str]]:  # noqa: ANN401
    rules = RuleSet(parse_structural({"type": "object", "properties": {"spec": schema}}))
    before = None if old is None else {"spec": old}
    return [(error.field, error.message) for error in rules.validate({"spec": value}, before)]


def test_an_unsupported_cel_function_is_reported() -> None:
    with pytest.raises(Unsupported):
        CelProgram("semver('1.0.0').major() > 0", {"self": DYN})

    rules = RuleSet(parse_structural({"type": "object", "x-kubernetes-validations": [{"rule": "isSemver('1.0')"}]}))

    assert [text.partition(":")[0] for text in rules.unsupported] == ["isSemver('1.0')"]
    assert rules.validate({}, None) == []


def test_a_violation_is_reported_with_message_reason_and_path() -> None:
    schema = {
        "type": "object",
        "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
        "x-kubernetes-validations": [
            {"rule": "self.x < self.y"},
            {"rule": "self.x != 5", "message": "five is taken", "reason": "FieldValueForbidden", "fieldPath": ".x"},
            {"rule": "self.y > 9", "messageExpression": "'y is ' + string(self.y)"},
        ],
    }

    assert broken(schema, {"x": 5, "y": 1}) == [
        ("spec", 'Invalid value: "object": failed rule: self.x < self.y'),
        ("spec.x", "Forbidden: five is taken"),
        ("spec", 'Invalid value: "object": y is 1'),
    ]
    assert broken(schema, {"x": 1, "y": 10}) == []


def test_a_rule_whose_evaluation_fails_is_violated() -> None:
    schema = {
        "type": "object",
        "properties": {"x": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.x > 1"}],
    }

    assert broken(schema, {}) == [("spec", 'Invalid value: "object": no such key: x evaluating rule: self.x > 1')]


def test_transition_rules_run_on_updates_only() -> None:
    schema = {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]}

    assert broken(schema, 1) == []
    assert broken(schema, 1, 1) == []
    assert broken(schema, 1, 2) == [("spec", 'Invalid value: "integer": failed rule: self >= oldSelf')]


def test_a_transition_rule_with_optional_old_self_runs_on_creation_too() -> None:
    rule = {"rule": "oldSelf.hasValue() ? self >= oldSelf.value() : self == 1", "optionalOldSelf": True}
    schema = {"type": "integer", "x-kubernetes-validations": [rule]}

    assert broken(schema, 1) == []
    assert [field for field, _ in broken(schema, 2)] == ["spec"]
    assert broken(schema, 3, 2) == []


def test_a_violation_in_an_unchanged_value_is_tolerated() -> None:
    item = {
        "type": "object",
        "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.v > 0"}],
    }
    schema = {
        "type": "array",
        "items": item,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
    }
    bad, worse = {"k": "a", "v": 0}, {"k": "b", "v": -1}

    assert [field for field, _ in broken(schema, [bad, worse], [bad])] == ["spec[1]"]


def test_values_have_the_types_of_their_schema() -> None:
    timed = {
        "type": "string",
        "format": "date-time",
        "x-kubernetes-validations": [{"rule": "self > timestamp('2020-01-01T00:00:00Z')"}],
    }
    number = {"type": "number", "x-kubernetes-validations": [{"rule": "self / 2.0 == 0.5"}]}
    unordered = {
        "type": "array",
        "items": {"type": "integer"},
        "x-kubernetes-list-type": "set",
        "x-kubernetes-validations": [{"rule": "self == [2, 1]"}],
    }

    assert broken(timed, "2021-01-01T00:00:00Z") == []
    assert [field for field, _ in broken(timed, "2019-01-01T00:00:00Z")] == ["spec"]
    assert broken(number, 1) == []
    assert broken(unordered, [1, 2]) == []
