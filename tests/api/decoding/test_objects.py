"""Decoding of objects; the expected values were checked against Kubernetes' own decoder."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.api.decoding.objects import DecodeError, ParseError, decode, parse_json
from batkube.cluster.kinds import KindTable
from batkube.cluster.schemas import Schema, Shape
from conformance import CASES

TABLE = KindTable.builtin()


def schema_of(kind: str, group: str = "", version: str = "v1") -> Schema:
    return TABLE.definition_of(group, version, kind)


POD = schema_of("Pod")
SHAPES: dict[Shape, st.SearchStrategy[Any]] = {
    Shape.STRING: st.sampled_from(["", "a", "é b"]),
    Shape.INTEGER: st.integers(-(2**31), 2**31 - 1),
    Shape.NUMBER: st.sampled_from([0, 1.5, 2.0]),
    Shape.BOOLEAN: st.booleans(),
    Shape.BYTES: st.binary(max_size=4).map(lambda data: base64.b64encode(data).decode()),
    Shape.QUANTITY: st.sampled_from(["1", "1000m", "1.5Gi", 5, 0.25, "1e3"]),
    Shape.INT_OR_STRING: st.sampled_from([0, 80, "", "50%"]),
    Shape.TIME: st.sampled_from(["2024-01-02T03:04:05Z", "2024-01-02T03:04:05.5+01:00"]),
    Shape.MICRO_TIME: st.sampled_from(["2024-01-02T03:04:05.000001Z"]),
    Shape.DURATION: st.sampled_from(["90s", "0s"]),
    Shape.ANY: st.sampled_from([{}, {"a": {"b": 1}}]),
}


@st.composite
def values(draw: st.DrawFn, schema: Schema, depth: int = 0) -> Any:  # noqa: ANN401 - any JSON
    """Draw a value of `schema`, with fewer fields at greater depth."""
    if schema.shape is Shape.STRUCT:
        chosen = draw(st.lists(st.sampled_from(list(schema.fields)), unique=True, max_size=6 if depth < 6 else 0))
        return {name: draw(values(schema.fields[name].schema, depth + 1)) for name in chosen}
    if schema.items is not None and schema.shape is not Shape.ANY:
        items = values(schema.items, depth + 1)
        few = 2 if depth < 6 else 0
        lists = schema.shape is Shape.LIST
        return draw(
            st.lists(items, max_size=few) if lists else st.dictionaries(st.sampled_from("ab"), items, max_size=few)
        )
    return draw(SHAPES[schema.shape])


@given(values(POD))
def test_the_canonical_form_is_canonical(pod: dict[str, Any]) -> None:
    once = decode(pod, POD)

    assert once.strict_errors == []
    assert decode(once.object, POD) == once


@given(values(POD), st.sampled_from(["bogus", "Spec", "μ"]))
def test_an_unknown_field_is_dropped_and_reported(pod: dict[str, Any], name: str) -> None:
    spec = {**pod.get("spec", {}), name: {"a": [1]}}

    decoded = decode({**pod, "spec": spec}, POD)

    assert decoded.strict_errors == [f'unknown field "spec.{name}"']
    assert name not in decoded.object["spec"]


def test_zero_values_are_written_where_go_writes_them() -> None:
    deployment = decode({"metadata": {"name": "d"}, "spec": {"replicas": 0}}, schema_of("Deployment", "apps"))

    assert deployment.object == {
        "metadata": {"name": "d"},
        "spec": {
            "replicas": 0,  # a pointer: zero is not absent
            "selector": None,
            "template": {"metadata": {}, "spec": {"containers": None}},
            "strategy": {},
        },
        "status": {},
    }


def test_null_becomes_the_zero_object() -> None:
    assert decode(None, POD).object == {"metadata": {}, "spec": {"containers": None}, "status": {}}


def test_nulls_and_empty_values_are_dropped() -> None:
    metadata = {"name": "", "labels": {}, "finalizers": [], "creationTimestamp": None, "generateName": None}

    assert decode({"metadata": metadata}, schema_of("ConfigMap")).object == {"metadata": {}}


def test_null_in_a_list_or_map_is_a_zero_value() -> None:
    container = {"name": "c", "args": ["a", None], "resources": {"requests": {"cpu": None}}}

    decoded = decode({"spec": {"containers": [container, None]}}, POD).object["spec"]["containers"]

    assert decoded == [
        {"name": "c", "args": ["a", ""], "resources": {"requests": {"cpu": "0"}}},
        {"name": "", "resources": {}},
    ]


@pytest.mark.parametrize(
    ("pod", "problem"),
    [
        (
            {"spec": {"containers": "x"}},
            "cannot unmarshal string into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        (
            {"spec": {"containers": [5]}},
            "cannot unmarshal number into Go struct field PodSpec.spec.containers of type v1.Container",
        ),
        (
            {"spec": {"containers": [{"ports": [{"containerPort": "a"}]}]}},
            "cannot unmarshal string into Go struct field "
            "ContainerPort.spec.containers.ports.containerPort of type int32",
        ),
        (
            {"spec": {"priority": 2**31}},
            "cannot unmarshal number 2147483648 into Go struct field PodSpec.spec.priority of type int32",
        ),
        (
            {"spec": {"restartPolicy": {}}},
            "cannot unmarshal object into Go struct field PodSpec.spec.restartPolicy of type v1.RestartPolicy",
        ),
        (
            {"metadata": {"labels": {"a": True}}},
            "cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            {"metadata": {"creationTimestamp": 5}},
            "cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
        ),
        (
            {"spec": {"containers": [{"livenessProbe": {"httpGet": {"port": 1.5}}}]}},
            "cannot unmarshal number 1.5 into Go struct field "
            "HTTPGetAction.spec.containers.livenessProbe.httpGet.port of type int32",
        ),
    ],
)
def test_a_wrong_type_has_the_message_of_go(pod: dict[str, Any], problem: str) -> None:
    with pytest.raises(DecodeError) as raised:
        decode(pod, POD)
    assert str(raised.value) == f"json: {problem}"


def test_the_first_wrong_type_is_reported_unless_a_text_is_invalid() -> None:
    first_wins = {"spec": {"nodeName": 5, "hostname": 6}}
    unreadable_wins = {"spec": {"nodeName": 5}, "metadata": {"creationTimestamp": "x"}}

    with pytest.raises(DecodeError, match=r"spec\.nodeName"):
        decode(first_wins, POD)
    with pytest.raises(DecodeError, match='parsing time "x"'):
        decode(unreadable_wins, POD)


@pytest.mark.parametrize(
    ("text", "position"),
    [("aGk", 0), ("a", 0), ("aGk==", 4), ("!", 0), ("aGkx=", 4), ("aG=k", 2), ("aG=", 3), ("aGkh!", 4), ("=", 0)],
)
def test_the_error_for_invalid_base64_names_the_byte(text: str, position: int) -> None:
    with pytest.raises(DecodeError, match=f"illegal base64 data at input byte {position}$"):
        decode({"binaryData": {"a": text}}, schema_of("ConfigMap"))


def test_base64_loses_its_line_breaks_and_stray_bits() -> None:
    data = {"a": "aGk=", "b": "aG\nk=", "c": "aGl=", "d": [104, 105]}

    decoded = decode({"binaryData": data}, schema_of("ConfigMap")).object

    assert decoded["binaryData"] == dict.fromkeys("abcd", "aGk=")


def test_schema_unions_accept_schemas_booleans_and_lists() -> None:
    props = TABLE.definition("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps")
    value = {
        "additionalProperties": {"type": "string", "bogus": 1},
        "items": [{"type": "string"}],
        "default": {"a": 1},
        "enum": [None, 1],
        "maximum": 2.0,
    }

    decoded = decode(value, props)

    assert decoded.object == {**value, "additionalProperties": {"type": "string"}, "maximum": 2}
    assert decoded.strict_errors == [], "inside, the real server does not look"
    with pytest.raises(DecodeError, match="boolean or JSON schema expected"):
        decode({"additionalProperties": 5}, props)


def test_numbers_in_quantities_are_decoded_from_their_text() -> None:
    body = b'{"spec":{"containers":[{"resources":{"limits":{"a":1e3,"b":1.500,"c":1.50,"d":1.0}}}]}}'

    value, _ = parse_json(body, POD)
    limits = decode(value, POD).object["spec"]["containers"][0]["resources"]["limits"]

    assert limits == {"a": "1e3", "b": "1.500", "c": "1500m", "d": "1"}


@pytest.mark.parametrize("number", ["1.50", "1e3"])
def test_the_text_of_a_number_is_dropped_where_it_does_not_matter(number: str) -> None:
    body = f'{{"metadata":{{"managedFields":[{{"fieldsV1":{{"f:a":{number}}}}}]}}}}'

    value, _ = parse_json(body.encode(), POD)
    (entry,) = decode(value, POD).object["metadata"]["managedFields"]

    assert type(entry["fieldsV1"]["f:a"]) is float


@pytest.mark.parametrize("number", ["1e999", "9" * 5000])
def test_a_number_beyond_all_types_is_rejected(number: str) -> None:
    value, _ = parse_json(f'{{"spec":{{"priority":{number}}}}}'.encode(), POD)

    with pytest.raises(DecodeError, match=rf"cannot unmarshal number {number} into .* of type int32"):
        decode(value, POD)
    with pytest.raises(ParseError, match=f"cannot unmarshal number {number} into Go value of type float64"):
        parse_json(number.encode())


def test_errors_match_the_recorded_ones() -> None:
    checked = 0
    for path in sorted(CASES.glob("*/*.json")):
        for step in json.loads(path.read_text(encoding="utf-8"))["steps"]:
            request, answer = step.get("request", {}), step.get("response", {}).get("body")
            message = answer.get("message", "") if isinstance(answer, dict) else ""
            body = request.get("body")
            if request.get("method") != "POST" or "cannot be handled as a" not in message or not isinstance(body, dict):
                continue
            problem = message.partition("cannot be handled as a ")[2].partition(": ")[2]
            group, _, version = body["apiVersion"].rpartition("/")
            if problem.startswith(("no kind", "converting")) or not TABLE.of_kind(group, version, body["kind"]):
                continue
            checked += 1
            assert decode_error(body, schema_of(body["kind"], group, version)) == problem, path
    assert checked > 10


def decode_error(body: dict[str, Any], schema: Schema) -> str:
    try:
        return "strict decoding error: " + ", ".join(decode(body, schema).strict_errors)
    except DecodeError as problem:
        return str(problem)
