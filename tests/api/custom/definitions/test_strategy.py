"""CustomResourceDefinitions: defaults, validation and error messages."""

from __future__ import annotations

import contextlib
import copy
import json
from typing import Any

import pytest

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

FREE_FORM = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def version(name: str = "v1", schema: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    schema = FREE_FORM if schema is None else schema
    return {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}, **more}


def definition(*versions: dict[str, Any], **spec: Any) -> dict[str, Any]:  # noqa: ANN401
    value = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": list(versions) or [version()],
            **spec,
        },
    }
    set_definition_defaults(value)
    prepare_definition_create(value)
    return value


def problems(*properties: tuple[str, dict[str, Any]]) -> list[tuple[str, str]]:
    """Return the paths (below the schema) and messages of the errors in a schema with these properties."""
    value = definition(version(schema={"type": "object", "properties": dict(properties)}))
    prefix = "spec.validation.openAPIV3Schema."
    return [(error.field.removeprefix(prefix), error.message) for error in validate_definition(value, None)]


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


def test_errors_name_shared_fields_at_the_top_and_others_at_their_version() -> None:
    bad = {"type": "object", "properties": {"a": {"type": "bogus"}}}

    shared = validate_definition(definition(version(schema=bad), version("v2", schema=bad)), None)
    own = validate_definition(definition(version(), version("v2", schema=bad)), None)

    assert [error.field for error in shared] == ["spec.validation.openAPIV3Schema.properties[a].type"]
    assert [error.field for error in own] == ["spec.versions[1].schema.openAPIV3Schema.properties[a].type"]


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


def test_keys_of_a_map_list_must_be_required_or_have_defaults() -> None:
    items = {"type": "object", "properties": {"k": {"type": "string"}}}
    listed = {
        "type": "array",
        "items": items,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
    }

    assert [field for field, _ in problems(("a", listed))] == ["properties[a].items.properties[k].default"]
    assert problems(("a", {**listed, "items": {**items, "required": ["k"]}})) == []


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


def test_community_groups_need_an_approval() -> None:
    value = definition(group="x.k8s.io")
    value["metadata"]["name"] = "widgets.x.k8s.io"

    refused = validate_definition(value, None)
    value["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, just a test"}

    assert [error.reason for error in refused] == ["FieldValueRequired"]
    assert validate_definition(value, None) == []


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
