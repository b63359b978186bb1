"""CustomResourceDefinitions: defaults, validation and error messages."""

from __future__ import annotations

import contextlib
import copy
import json
from typing import Any

from tests.api.custom.definitions.definitions import definition, version

from batkube.api.custom.definitions.strategy import (
    prepare_definition_create,
    prepare_definition_update,
    set_definition_defaults,
    validate_definition,
)
from batkube.api.validation.field_errors import FieldError
from conformance import CASES
from conformance.client import Client
from conformance.serving import Serving


def established(value: dict[str, Any]) -> dict[str, Any]:
    conditions = [{"type": "Established", "status": "True"}]
    return {**value, "status": {**value["status"], "conditions": conditions}}


def test_rejects_recorded_definitions_with_recorded_errors() -> None:
    case = json.loads((CASES / "crd/invalid.json").read_text(encoding="utf-8"))
    checked = 0
    for step in case["steps"]:
        body, response = copy.deepcopy(step["request"].get("body")), step["response"]
        if step["request"]["method"] != "POST" or body["apiVersion"] != "apiextensions.k8s.io/v1":
            continue
        set_definition_defaults(body)
        prepare_definition_create(body)

        errors = validate_definition(body, None)

        causes = response["body"]["details"]["causes"] if response["status"] == 422 else []
        assert errors == [FieldError(cause["reason"], cause["field"], cause["message"]) for cause in causes]
        checked += 1
    assert checked > 20


def test_names_conversion_and_stored_versions_have_defaults() -> None:
    value = definition(version("v1beta1", storage=False), version("v1"))

    assert value["spec"]["names"] == {
        "plural": "widgets",
        "kind": "Widget",
        "singular": "widget",
        "listKind": "WidgetList",
    }
    assert value["spec"]["conversion"] == {"strategy": "None"}
    assert value["status"]["storedVersions"] == ["v1"]
    assert value["metadata"]["generation"] == 1


def test_group_and_plural_are_immutable_and_scope_and_kind_once_established() -> None:
    old = definition()
    new = definition(
        group="other.example.com", scope="Cluster", names={**old["spec"]["names"], "plural": "other", "kind": "Other"}
    )

    before = [error.field for error in validate_definition(new, old)]
    after = [error.field for error in validate_definition(new, established(old))]

    assert before == ["spec.group", "spec.names.plural"]
    assert after == ["spec.scope", "spec.names.kind", "spec.group", "spec.names.plural"]


def test_a_stored_version_cannot_be_removed() -> None:
    old = established(definition())
    new = definition(version("v2", storage=True))
    prepare_definition_update(new, old)

    assert new["status"]["storedVersions"] == ["v1", "v2"]
    assert new["metadata"]["generation"] == 2
    assert [error.field for error in validate_definition(new, old)] == ["status.storedVersions[0]"]


def test_a_stored_object_is_read_with_defaults_added_to_its_schema_later(server: Serving) -> None:
    """Tested by the conformance suite: in the storage version and others, by get, list and watch."""
    path, objects = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/apis/example.com/v1/widgets"
    properties: dict[str, Any] = {"a": {"type": "string"}, "b": {"type": "string"}}
    body = definition(version(schema={"type": "object", "properties": properties}), scope="Cluster")
    with contextlib.closing(Client(server.url)) as client:
        client.request({"method": "POST", "path": path, "body": body})
        widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
        assert "a" not in client.request({"method": "POST", "path": objects, "body": widget})["body"]
        client.request(
            {
                "method": "PATCH",
                "path": f"{path}/widgets.example.com",
                "headers": {"Content-Type": "application/json-patch+json"},
                "body": [
                    {"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/a/default", "value": "A"}
                ],
            }
        )
        widget_ = client.request({"method": "GET", "path": f"{objects}/w"})["body"]
        listed = client.request({"method": "GET", "path": objects})["body"]["items"][0]
        labelled = client.request(
            {
                "method": "PATCH",
                "path": f"{objects}/w",
                "headers": {"Content-Type": "application/merge-patch+json"},
                "body": {"b": "B"},
            }
        )["body"]

    assert [obj.get("a") for obj in (widget_, listed, labelled)] == ["A", "A", "A"]


def test_a_new_unrecognized_format_causes_a_warning(server: Serving) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    schema = {"type": "object", "properties": {"a": {"type": "string", "format": "bogus"}}}
    body = definition(version(schema=schema))

    with contextlib.closing(Client(server.url)) as client:
        new = client.request({"method": "POST", "path": path, "body": body})
        schema["properties"]["b"] = {"type": "string", "format": "uuid"}
        changed = client.request(
            {
                "method": "PATCH",
                "path": f"{path}/widgets.example.com",
                "headers": {"Content-Type": "application/merge-patch+json"},
                "body": {"spec": {"versions": body["spec"]["versions"]}},
            }
        )

    assert (new["status"], new["warnings"]) == (201, ['299 - "unrecognized format \\"bogus\\""'])
    assert (changed["status"], changed.get("warnings")) == (200, None)
