"""Patch requests: from the bytes of a patch to the patched object, and errors of invalid patches."""

from __future__ import annotations

from typing import Any

import pytest

from batkube.api.decoding.objects import decode
from batkube.api.patches.patched_documents import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, apply_patch
from batkube.api.requests.statuses import Failure
from batkube.cluster.kinds import KindTable
from batkube.cluster.store import KubeObject

KINDS = KindTable.builtin()


def patch(kind: str, body: bytes, plural: str = "configmaps", group: str = "", checks: bool = True) -> tuple[Any, Any]:
    resource = KINDS.resource(group, "v1", plural)
    assert resource is not None
    live: KubeObject = {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        "metadata": {"name": "a", "creationTimestamp": None},
    }
    document = apply_patch(kind, live, body, resource, checks)
    return document.decode(resource, lambda value: tuple(decode(value, resource.schema)))


def refusal_of(*arguments: Any, **options: Any) -> Failure:  # noqa: ANN401 - passed on
    with pytest.raises(Failure) as refusal:
        patch(*arguments, **options)
    return refusal.value


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (JSON_PATCH, b'[{"op":"add","path":"/data","value":{"k":"v"}},{"op":"remove","path":"/kind"}]'),
        (MERGE_PATCH, b'{"data":{"k":"v","gone":null},"kind":null}'),
        (STRATEGIC_PATCH, b'{"data":{"k":"v"},"kind":"Secret","apiVersion":"v9"}'),
    ],
)
def test_every_patch_type_yields_an_object_of_the_same_kind(kind: str, body: bytes) -> None:
    value, problems = patch(kind, body)

    assert (value["kind"], value["apiVersion"], value["data"]) == ("ConfigMap", "v1", {"k": "v"})
    assert problems == []


def test_a_strategic_patch_accepts_integral_floats() -> None:
    value, _ = patch(STRATEGIC_PATCH, b'{"spec":{"replicas":2.0}}', "deployments", "apps")

    assert value["spec"]["replicas"] == 2
    assert type(value["spec"]["replicas"]) is int


@pytest.mark.parametrize(
    ("kind", "body", "problems"),
    [
        (
            JSON_PATCH,
            b'[{"op":"add","path":"/x","value":1,"y":2}]',
            ['json patch unknown field "[0].y"', 'unknown field "x"'],
        ),
        (MERGE_PATCH, b'{"x":1,"x":2}', ['duplicate field "x"', 'unknown field "x"']),
        (
            STRATEGIC_PATCH,
            b'{"x":1,"metadata":{"b":1}}',
            ['unknown field "metadata.b"', 'unknown field "x"'],
        ),
    ],
)
def test_unknown_fields_of_a_patch_are_reported(kind: str, body: bytes, problems: list[str]) -> None:
    assert patch(kind, body)[1] == problems


@pytest.mark.parametrize(
    ("kind", "body", "checks", "message"),
    [
        (JSON_PATCH, b"[", True, "error decoding patch: unexpected end of JSON input"),
        (JSON_PATCH, b"[", False, "unexpected end of JSON input"),
        (MERGE_PATCH, b"{", True, "error decoding patch: unexpected end of JSON input"),
        (MERGE_PATCH, b"{", False, "Invalid JSON Patch"),
        (STRATEGIC_PATCH, b"{", True, "unexpected end of JSON input"),
        (STRATEGIC_PATCH, b"[]", True, "json: cannot unmarshal array into Go value of type map[string]interface {}"),
    ],
)
def test_a_malformed_patch_is_a_bad_request(kind: str, body: bytes, checks: bool, message: str) -> None:
    refusal = refusal_of(kind, body, checks=checks)

    assert (refusal.code, refusal.message) == (400, message)


@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        (
            MERGE_PATCH,
            b'{"data":{"k":5}}',
            r'"{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\",\"creationTimestamp\":null},'
            r'\"data\":{\"k\":5}}": json: cannot unmarshal number into Go struct field ConfigMap.data of type string',
        ),
        (STRATEGIC_PATCH, b'{"data":{"k":5}}', '"map[data:map[k:5]]": cannot convert int64 to string'),
        (
            STRATEGIC_PATCH,
            b'{"binaryData":{"a":"!"}}',
            '"map[binaryData:map[a:!]]": error decoding from json: illegal base64 data at input byte 0',
        ),
        (
            JSON_PATCH,
            b'[{"op":"replace","path":"","value":[]}]',
            '"[]": couldn\'t get version/kind; json parse error: json: cannot unmarshal array into Go value of type '
            r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }',
        ),
    ],
)
def test_a_patch_whose_result_does_not_decode_is_invalid(kind: str, body: bytes, message: str) -> None:
    refusal = refusal_of(kind, body)

    assert (refusal.code, refusal.reason) == (422, "Invalid")
    assert refusal.message == f' "" is invalid: patch: Invalid value: {message}'
    assert refusal.details == {
        "causes": [{"reason": "FieldValueInvalid", "field": "patch", "message": f"Invalid value: {message}"}]
    }


def test_strict_decoding_rejects_unknown_fields() -> None:
    resource = KINDS.resource("", "v1", "configmaps")
    assert resource is not None
    document = apply_patch(STRATEGIC_PATCH, {"metadata": {}}, b'{"x":1}', resource, checks=True)

    document.reject_strict_problems([])
    with pytest.raises(Failure, match=r'"map\[x:1\]": strict decoding error: unknown field "x"'):
        document.reject_strict_problems(['unknown field "x"'])


def test_a_patch_that_does_not_apply_is_rejected_without_a_reason() -> None:
    refusal = refusal_of(JSON_PATCH, b'[{"op":"remove","path":"/data/k"}]')

    assert refusal.status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "the server rejected our request due to an error in our request",
        "reason": "Invalid",
        "details": {},
        "code": 422,
    }


def test_invalid_directives_are_an_internal_error() -> None:
    refusal = refusal_of(STRATEGIC_PATCH, b'{"metadata":{"$patch":"bogus"}}')

    assert (refusal.code, refusal.message) == (500, "unknown patch type: bogus in map: map[$patch:bogus]")
