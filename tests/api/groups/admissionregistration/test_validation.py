"""Validation of webhook configurations (reference/access-authn-authz/extensible-admission-controllers)."""

from __future__ import annotations

import pytest
from tests.api.groups.creation_errors import errors, fields

HOOKS = "ValidatingWebhookConfiguration/vwc"


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("name", "a.b", "name"),
        ("sideEffects", None, "sideEffects"),
        ("sideEffects", "Some", "sideEffects"),
        ("timeoutSeconds", 31, "timeoutSeconds"),
        ("timeoutSeconds", 0, "timeoutSeconds"),
        ("failurePolicy", "Retry", "failurePolicy"),
        ("admissionReviewVersions", [], "admissionReviewVersions"),
        ("rules.0.operations", ["*", "CREATE"], "rules[0].operations"),
        ("rules.0.resources", ["pods/*", "pods/status"], "rules[0].resources[1]"),
        ("rules.0.resources", ["*", "pods"], "rules[0].resources"),
        ("rules.0.scope", "Node", "rules[0].scope"),
        ("matchConditions.0.expression", "1 + 1", "matchConditions[0].expression"),
    ],
)
def test_a_wrong_field_of_a_webhook_is_reported(path: str, value: object, field: str) -> None:
    found = set(fields(HOOKS, {f"webhooks.0.{path}": value}))

    # Without side effects that are known, the field is both missing and unsupported.
    assert found == {f"webhooks[0].{field}"}


def test_a_timeout_of_30_seconds_is_the_longest() -> None:
    assert errors(HOOKS, {"webhooks.0.timeoutSeconds": 30}) == []


def test_names_of_match_conditions_are_unique() -> None:
    condition = {"name": "m", "expression": "true"}

    assert errors(HOOKS, {"webhooks.0.matchConditions": [condition, {**condition, "name": "n"}]}) == []
    assert fields(HOOKS, {"webhooks.0.matchConditions": [condition, condition]}) == [
        "webhooks[0].matchConditions[1].name"
    ]
