"""Custom objects: pruning, defaults and validation by the schema of their definition."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.api.cel.functions.regex import BadPattern, compile_pattern
from batkube.api.cel.functions.string_formats import find_format_check
from batkube.api.custom.instances.custom_kind import CustomKind
from batkube.api.custom.instances.defaults import fill_defaults
from batkube.api.custom.instances.embedded_objects import decode_embedded, validate_embedded
from batkube.api.custom.instances.list_types import validate_list_types
from batkube.api.custom.instances.pruning import drop_nulls, prune
from batkube.api.custom.instances.value_validation import validate_value
from batkube.api.custom.schemas.shapes import custom_object_schema
from batkube.api.custom.schemas.structural import parse_structural
from batkube.api.validation.field_errors import FieldError
from batkube.cluster.kinds import KindTable, Resource
from batkube.cluster.schemas import Shape
from conformance import CASES

SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "default": 3},
                "note": {"type": "string", "nullable": True},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "map": {
                    "type": "object",
                    "additionalProperties": {"type": "object", "properties": {"x": {"type": "integer", "default": 9}}},
                },
                "list": {"type": "array", "items": {"type": "object", "properties": {"y": {"type": "string"}}}},
            },
        }
    },
}
METADATA = KindTable.builtin().definition("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "a", "5%"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["size", "note", "free", "map", "list", "x", "y", "z"]), inner, max_size=4)
    ),
    max_leaves=12,
)


def kind(schema: dict[str, Any] = SCHEMA, **version: Any) -> CustomKind:  # noqa: ANN401
    whole = parse_structural(schema)
    resource = Resource(
        "example.com", "v1", "Widget", "widgets", "widget", True, (), custom_object_schema(whole, METADATA), custom=True
    )
    return CustomKind(resource, {"v1": whole}, METADATA, {"served": True, **version}, "", schema_is_original=True)


def widget(**parts: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w", "namespace": "default"},
        **parts,
    }


def messages(schema: dict[str, Any], value: Any) -> list[tuple[str, str]]:  # noqa: ANN401
    return [(error.field, error.message) for error in validate_value(parse_structural(schema), value)]


# Recorded


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


# Pruning and defaults


@given(json_values)
def test_pruning_and_defaulting_twice_equals_once(spec: Any) -> None:  # noqa: ANN401
    custom = kind()
    value = widget(spec=spec)

    custom.prune_and_default(value)
    once = copy.deepcopy(value)
    unknown = custom.prune_and_default(value)

    assert value == once
    assert unknown == []


@given(json_values)
def test_pruning_only_removes_fields_and_reports_each(spec: Any) -> None:  # noqa: ANN401
    value = widget(spec=copy.deepcopy(spec))

    unknown = prune(value, parse_structural(SCHEMA))

    assert unknown == sorted(unknown)
    assert (value["spec"] == spec) == (not unknown)


def test_unknown_fields_are_pruned_except_where_preserved() -> None:
    value = widget(spec={"bogus": 1, "free": {"a": {"b": 1}}, "list": [{"y": "1", "q": 2}], "map": {"k": {"z": 1}}})

    unknown = prune(value, parse_structural(SCHEMA))

    assert unknown == ["spec.bogus", "spec.list[0].q", "spec.map.k.z"]
    assert value["spec"] == {"free": {"a": {"b": 1}}, "list": [{"y": "1"}], "map": {"k": {}}}


def test_a_disallowed_null_is_dropped_or_replaced_by_the_default() -> None:
    schema = parse_structural(SCHEMA)
    value = widget(spec={"size": None, "note": None, "list": None, "map": {"a": {"x": None}}})

    drop_nulls(value, schema)
    fill_defaults(value, schema)

    assert value["spec"] == {"size": 3, "note": None, "map": {"a": {"x": 9}}}


def test_an_object_of_an_unknown_version_loses_all_fields() -> None:
    value = {**widget(spec={"size": 1}), "apiVersion": "example.com/v9"}

    assert kind().decode(value).strict_errors == ['unknown field "spec"']
    assert [error.field for error in kind().validate(value, None, [])] == ["apiVersion"]


# Validation


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


def test_an_update_tolerates_errors_in_unchanged_values() -> None:
    custom = kind(
        {"type": "object", "properties": {"spec": {"type": "object", "additionalProperties": {"type": "integer"}}}}
    )
    old, new = widget(spec={"a": "bad", "b": 1}), widget(spec={"a": "bad", "b": "bad"})

    assert [error.field for error in custom.validate(new, old, [])] == ["spec.b"]
    assert [error.field for error in custom.validate(new, None, [])] == ["spec.a", "spec.b"]


def test_each_duplicate_in_set_and_map_lists_is_reported_once() -> None:
    keyed = {"type": "object", "properties": {"k": {"type": "string"}}}
    schema = parse_structural(
        {
            "type": "object",
            "properties": {
                "set": {"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "set"},
                "map": {
                    "type": "array",
                    "items": keyed,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["k"],
                },
            },
        }
    )

    errors = validate_list_types(schema, {"set": [1, 2, 1, 1], "map": [{"k": "a"}, {"k": "a"}, {"k": "b"}]})

    assert [(error.field, error.message) for error in errors] == [
        ("set[2]", "Duplicate value: 1"),
        ("map[1]", 'Duplicate value: {"k":"a"}'),
    ]


def test_embedded_objects_are_decoded_and_validated() -> None:
    schema = parse_structural(
        {
            "type": "object",
            "properties": {
                "pod": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "x-kubernetes-preserve-unknown-fields": True,
                }
            },
        }
    )
    value = {"pod": {"kind": "Pod", "metadata": {"name": "a", "bogus": 1}, "spec": {"x": 1}}}

    assert decode_embedded(value, schema, METADATA) == ["pod.metadata.bogus"]
    assert value["pod"]["metadata"] == {"name": "a"}
    assert [error.field for error in validate_embedded(value, schema)] == ["pod.apiVersion"]


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


def test_the_schema_defines_how_lists_and_maps_merge() -> None:
    items = {"type": "object", "properties": {"k": {"type": "string"}}}
    schema = {
        "type": "object",
        "properties": {
            "keyed": {
                "type": "array",
                "items": items,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
            },
            "plain": {"type": "array", "items": {"type": "string"}},
            "whole": {
                "type": "object",
                "x-kubernetes-map-type": "atomic",
                "additionalProperties": {"type": "string"},
            },
            "free": {"type": "object"},
        },
    }

    shape = custom_object_schema(parse_structural(schema), METADATA)

    fields = {name: field.schema for name, field in shape.fields.items()}
    assert (fields["keyed"].list_type, fields["keyed"].list_keys) == ("map", ("k",))
    assert fields["plain"].list_type == "atomic"
    assert (fields["whole"].shape, fields["whole"].atomic) == (Shape.MAP, True)
    assert fields["free"].keeps_unknown
    assert fields["metadata"] is METADATA


# Formats and patterns


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date-time", ["2024-01-01T00:00:00Z", "2024-01-01t00:00:00.5+01:00"], ["2024-01-01", "2024-02-30T00:00:00Z"]),
        ("date", ["2024-02-29"], ["2023-02-29", "2024-1-1"]),
        ("duration", ["1h30m", "5 days", "0"], ["1", "2 foo", ""]),
        ("ipv4", ["1.2.3.4", "01.2.3.4"], ["256.1.1.1", "::1"]),
        ("ipv6", ["::1"], ["1.2.3.4", "fe80::1%eth0"]),
        ("cidr", ["10.0.0.0/8", "::/0"], ["10.0.0.0", "10.0.0.0/33"]),
        ("mac", ["01:23:45:67:89:ab", "0123.4567.89ab"], ["01:23:45:67:89"]),
        ("uuid", ["123e4567-e89b-12d3-a456-426614174000"], ["x"]),
        ("isbn13", ["978-0321751041"], ["978-0321751042"]),
        ("creditcard", ["4111 1111 1111 1111"], ["4111111111111112"]),
        ("byte", ["YWJj"], ["YWJ", ""]),
        ("hostname", ["a.b.com", "a"], ["-a", "a_b"]),
        ("email", ["a@b.c", "A B <a@b.c>"], ["a", "a@"]),
        ("uri", ["http://a.b/c", "/x"], ["a", "http://a b"]),
    ],
)
def test_formats_accept_the_same_strings_as_kube_apiserver(name: str, good: list[str], bad: list[str]) -> None:
    check = find_format_check(name)

    assert check is not None
    assert [text for text in good if not check(text)] == []
    assert [text for text in bad if check(text)] == []


def test_an_unknown_format_is_ignored() -> None:
    assert find_format_check("bogus") is None
    assert messages({"type": "string", "format": "bogus"}, "x") == []


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(", "missing closing ): `(`"),
        ("a(?=b)", "invalid or unsupported Perl syntax: `(?=`"),
        ("[a", "missing closing ]: `[a`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a)", "unexpected ): `a)`"),
        ("(a)\\1", "invalid escape sequence: `\\1`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("(?<=a)b", "invalid named capture: `(?<=a)b`"),
    ],
)
def test_an_invalid_pattern_is_rejected_with_the_error_of_go(pattern: str, problem: str) -> None:
    with pytest.raises(BadPattern) as caught:
        compile_pattern(pattern)

    assert str(caught.value) == f"error parsing regexp: {problem}"


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("^a$", "a\n", False),
        (r"^\d+$", "\u0663", False),
        ("^[[:alpha:]_]+$", "ab_", True),
        ("a(?i)b", "aB", True),
        (r"^\p{Greek}+$", "αβγ", True),
        ("^(a+)+$", "a" * 5000 + "b", False),
        (r"^a\z", "a", True),
        (r"\Qa.b\E", "axb", False),
        ("(?P<x>a)(?<y>b)", "ab", True),
    ],
)
def test_patterns_match_as_in_go(pattern: str, text: str, matches: bool) -> None:
    assert (compile_pattern(pattern).search(text) is not None) is matches
