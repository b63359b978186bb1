"""Custom objects: pruning, defaults and validation by the schema of their definition."""

from __future__ import annotations

import copy
import json

import pytest
from tests.api.custom.instances.widgets import kind, widget

from batkube.api.validation.field_errors import FieldError
from conformance import CASES


@pytest.mark.parametrize("case", ["cr-validation", "cr-defaults-pruning", "cr-no-status", "cr-status", "cr-patch"])
def test_recorded_creations_have_the_recorded_outcome(case: str) -> None:
    steps = json.loads((CASES / f"crd/{case}.json").read_text(encoding="utf-8"))["steps"]
    bodies = [(step["request"].get("body"), step) for step in steps if step.get("request", {}).get("method") == "POST"]
    [definition] = [body for body, _ in bodies if isinstance(body, dict) and body["kind"] == "CustomResourceDefinition"]
    version = definition["spec"]["versions"][0]
    custom = kind(version.pop("schema")["openAPIV3Schema"], **version)
    custom.resource.group = definition["spec"]["group"]
    custom.resource.api_version = f"{custom.resource.group}/v1"
    for body, step in bodies:
        response = step["response"]
        if not isinstance(body, dict) or body["kind"] != "Widget" or response["status"] not in (201, 422):
            continue
        value = copy.deepcopy(body)
        value["metadata"]["namespace"] = "default"
        warning_headers = ['299 - "' + text.replace('"', '\\"') + '"' for text in custom.decode(value).strict_errors]
        custom.set_defaults(value)
        custom.prepare_create(value)

        errors = custom.validate(value, None, [])

        causes = response["body"]["details"]["causes"] if response["status"] == 422 else []
        assert errors == [FieldError(cause["reason"], cause["field"], cause["message"]) for cause in causes]
        if not causes:
            assert {**value, "metadata": 0} == {**response["body"], "metadata": 0}
        if step["request"].get("query", {}).get("fieldValidation") != "Ignore":
            assert warning_headers == response.get("warnings", [])


def test_an_object_of_an_unknown_version_loses_all_fields() -> None:
    value = {**widget(spec={"size": 1}), "apiVersion": "example.com/v9"}

    assert kind().decode(value).strict_errors == ['unknown field "spec"']
    assert [error.field for error in kind().validate(value, None, [])] == ["apiVersion"]


def test_an_update_tolerates_errors_in_unchanged_values() -> None:
    custom = kind(
        {"type": "object", "properties": {"spec": {"type": "object", "additionalProperties": {"type": "integer"}}}}
    )
    old, new = widget(spec={"a": "bad", "b": 1}), widget(spec={"a": "bad", "b": "bad"})

    assert [error.field for error in custom.validate(new, old, [])] == ["spec.b"]
    assert [error.field for error in custom.validate(new, None, [])] == ["spec.a", "spec.b"]


def test_a_status_update_changes_only_the_status() -> None:
    custom = kind(subresources={"status": {}})
    old = widget(spec={"size": 1}, status={"phase": "A"})
    new = widget(spec={"size": 2}, status={"phase": "B"})
    new["metadata"]["labels"] = {"a": "b"}

    custom.prepare_status_update(new, old)

    assert new == {**old, "status": {"phase": "B"}}


def test_every_change_outside_metadata_increments_the_generation() -> None:
    custom = kind()
    old = widget(spec={"size": 1})
    old["metadata"]["generation"] = 4
    labelled, changed = copy.deepcopy(old), copy.deepcopy(old)
    labelled["metadata"]["labels"] = {"a": "b"}
    changed["other"] = 1

    custom.prepare_update(labelled, old)
    custom.prepare_update(changed, old)

    assert labelled["metadata"]["generation"] == 4
    assert changed["metadata"]["generation"] == 5
