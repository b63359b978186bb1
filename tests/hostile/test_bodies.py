"""Request bodies that are small to send and expensive to parse, and large ones that cost more than their size.

Each of these once took tens of seconds or crashed the server. Time limits are in seconds of processor time, ten times
what the fixed versions take, so that they also hold on a loaded machine.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from batkube.api.decoding.json_syntax import ParseError
from batkube.api.decoding.yaml_parser import parse_yaml
from batkube.api.requests.messages import Request, Response
from conformance.direct import ADMIN, APPLY, JSON_PATCH, MERGE, STRATEGIC, Answer, Direct
from conformance.placeholders import Json

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


@pytest.fixture(autouse=True)
def _no_crash(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Check that the server logs nothing: it logs only its own failures."""
    with caplog.at_level(logging.ERROR):
        yield
    assert not caplog.records, caplog.records[-1].exc_text


@contextmanager
def soon(seconds: float = 5) -> Iterator[None]:
    """Check that the block takes at most this many seconds of processor time."""
    start = time.process_time()
    yield
    assert time.process_time() - start < seconds


def send(direct: Direct, method: str, path: str, body: bytes, content_type: str = "application/json") -> Answer:
    response = direct.api.handle(Request(method, path, {}, {**ADMIN, "content-type": content_type}, body))
    assert isinstance(response, Response)
    return Answer(response.status, json.loads(response.body))


def config_map(name: str, data: Json = None) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data or {}}


# YAML


def merges(levels: int) -> bytes:
    """Return YAML in which each level merges ten times as many empty mappings as the level before."""
    lines = ["a0: &a0 {}"]
    lines += [f"a{level}: &a{level}\n  <<: [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, levels)]
    return "\n".join(lines).encode()


def test_merge_keys_that_multiply_are_rejected_at_once() -> None:
    assert len(merges(10)) < 700
    with soon(1), pytest.raises(ParseError, match="excessive aliasing"):
        parse_yaml(merges(10))


def test_a_body_of_merge_keys_is_rejected_at_once() -> None:
    with soon():
        answer = send(Direct(), "POST", CONFIG_MAPS, merges(12), "application/yaml")

    assert answer.status == 400
    assert "yaml: document contains excessive aliasing" in answer.body["message"]


def test_as_many_aliases_are_accepted_as_by_go_yaml() -> None:
    value, _ = parse_yaml(b"a: &a [" + b"x, " * 1000 + b"]\nb: [" + b"*a, " * 90 + b"]")

    assert len(value["b"]) == 90
    assert value["b"][0] == value["a"]
    assert value["b"][0] is not value["b"][1]


def test_the_depth_of_an_alias_includes_its_value() -> None:
    deep = b"[" * 200 + b"x" + b"]" * 200

    with pytest.raises(ParseError, match="exceeded max depth"):
        parse_yaml(b"a: &a " + deep + b"\nb: " + deep.replace(b"x", b"*a"))


@pytest.mark.parametrize("text", [b"a: " + b"9" * 3_000_000, b"a: 0." + b"9" * 3_000_000, b"a: 1e" + b"9" * 3_000_000])
def test_a_yaml_number_of_millions_of_digits_is_parsed_quickly(text: bytes) -> None:
    with soon(2):
        parse_yaml(text)


def test_thousands_of_tag_directives_are_rejected() -> None:
    text = b"".join(b"%%TAG !a%d! tag:x\n" % number for number in range(50_000)) + b"--- a"

    with soon(1), pytest.raises(ParseError, match="TAG"):
        parse_yaml(text)


# JSON


@pytest.mark.parametrize("digits", [b"9" * 3_000_000, b"0." + b"9" * 3_000_000, b"1e" + b"9" * 3_000_000])
def test_a_json_number_of_millions_of_digits_is_rejected_quickly(digits: bytes) -> None:
    body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","generation":' + digits + b"}}"

    with soon():
        assert send(Direct(), "POST", CONFIG_MAPS, body).status == 400


@pytest.mark.parametrize("text", [b"[" * 1_000_000, b'{"a":' * 500_000, b'{"a":' * 900 + b"1" + b"}" * 900])
@pytest.mark.parametrize("content_type", ["application/json", MERGE])
def test_nesting_beyond_the_limit_is_rejected(text: bytes, content_type: str) -> None:
    direct = Direct()
    direct.ask("POST", CONFIG_MAPS, config_map("a"))

    with soon():
        if content_type == MERGE:
            assert send(direct, "PATCH", f"{CONFIG_MAPS}/a", text, MERGE).status == 400
        else:
            assert send(direct, "POST", CONFIG_MAPS, text).status in (400, 422)


def endless(*_: object) -> None:
    raise RecursionError


def test_a_patch_that_exceeds_the_recursion_limit_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeated patches may nest an object more deeply than one body can."""
    direct = Direct()
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": "x.io", "scope": "Namespaced", "names": {"plural": "deeps", "kind": "Deep"}, "versions": [version]}
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}
    direct.ask(
        "POST", f"/apis/{kind['apiVersion']}/customresourcedefinitions", kind | {"metadata": {"name": "deeps.x.io"}}
    )
    nested = b'{"a":' * 150 + b"1" + b"}" * 150
    body = b'{"apiVersion":"x.io/v1","kind":"Deep","metadata":{"name":"a"},"spec":' + nested + b"}"
    path = "/apis/x.io/v1/namespaces/default/deeps"

    assert send(direct, "POST", path, body).status == 201
    monkeypatch.setattr("batkube.api.verbs.handlers.patching.Patcher.patch", endless)
    answer = send(direct, "PATCH", f"{path}/a", b'[{"op":"add","path":"/spec/b","value":1}]', JSON_PATCH)

    assert (answer.status, answer.body["message"]) == (400, "the request is nested too deeply")


@pytest.mark.parametrize("place", ["before", "after"])
def test_a_recursion_error_outside_a_patch_is_not_blamed_on_the_request(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    direct = Direct()
    if place == "before":
        monkeypatch.setattr("batkube.api.verbs.storage.registry.Registry.create", endless)
    else:
        direct.store.subscribe("configmaps", endless)

    with pytest.raises(RecursionError):
        send(direct, "POST", CONFIG_MAPS, b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}')


def test_thousands_of_owner_references_are_deduplicated_quickly() -> None:
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": str(number)} for number in range(20_000)]
    body = config_map("a")
    body["metadata"]["ownerReferences"] = [*owners, owners[0]]

    with soon(10):
        answer = Direct().ask("POST", CONFIG_MAPS, body)

    assert answer.status == 201
    assert len(answer.body["metadata"]["ownerReferences"]) == 20_000


def test_the_error_message_for_thousands_of_errors_is_bounded() -> None:
    with soon(10):
        answer = Direct().ask("POST", CONFIG_MAPS, config_map("a", {f"/{number}": "" for number in range(60_000)}))

    assert answer.status == 422
    assert len(answer.body["message"]) < 6_000_000


# Patches


def test_ten_thousand_patch_operations_on_a_large_map_are_fast() -> None:
    direct = Direct()
    direct.ask("POST", CONFIG_MAPS, config_map("a", {f"k{number}": "v" for number in range(20_000)}))
    patch = [{"op": "add", "path": f"/data/n{number}", "value": "x"} for number in range(9_999)]

    with soon(10):
        answer = direct.ask("PATCH", f"{CONFIG_MAPS}/a", patch, content_type=JSON_PATCH)

    assert answer.status == 200
    assert len(answer.body["data"]) == 29_999


@pytest.mark.parametrize("index", ["9" * 5000, "-" + "9" * 5000])
def test_a_patch_index_of_thousands_of_digits_is_out_of_bounds(index: str) -> None:
    direct = Direct()
    direct.ask("POST", CONFIG_MAPS, config_map("a"))
    patch = [{"op": "add", "path": "/metadata/finalizers", "value": []}]
    patch += [{"op": "add", "path": f"/metadata/finalizers/{index}", "value": "a/b"}]

    assert direct.ask("PATCH", f"{CONFIG_MAPS}/a", patch, content_type=JSON_PATCH).status == 422


def deployment(variables: int) -> Json:
    env = [{"name": f"E{number}", "value": "v"} for number in range(variables)]
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i", "env": env}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec}


def test_thousands_of_deletions_from_a_long_list_are_fast() -> None:
    direct = Direct()
    assert direct.ask("POST", DEPLOYMENTS, deployment(8_000)).status == 201
    env = [{"$patch": "delete", "name": f"E{number}"} for number in range(1, 8_000)]
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "c", "env": env}]}}}}

    with soon(10):
        answer = direct.ask("PATCH", f"{DEPLOYMENTS}/a", patch, content_type=STRATEGIC)

    assert [each["name"] for each in answer.body["spec"]["template"]["spec"]["containers"][0]["env"]] == ["E0"]


def test_applying_a_long_list_again_is_fast() -> None:
    direct = Direct()
    direct.ask("POST", DEPLOYMENTS, deployment(4_000))
    query = {"fieldManager": "other", "force": "true"}

    with soon(10):
        answer = direct.ask("PATCH", f"{DEPLOYMENTS}/a", deployment(4_000), content_type=APPLY, query=query)

    assert answer.status == 200


@pytest.mark.parametrize("wrong", [5, 1.5, {}, ["v1"]])
def test_a_patch_to_an_api_version_that_is_not_a_string_is_rejected(wrong: Json) -> None:
    direct = Direct()
    direct.ask("POST", CONFIG_MAPS, config_map("a"))
    patch = [{"op": "replace", "path": "/apiVersion", "value": wrong}]

    answer = direct.ask("PATCH", f"{CONFIG_MAPS}/a", patch, content_type=JSON_PATCH)

    assert answer.status == 422
    assert "into Go struct field .apiVersion of type string" in answer.body["message"]


def test_protobuf_with_invalid_field_sets_is_rejected() -> None:
    fields_v1 = b'\n\x08{"f:\x95":{'
    entry = b"\n\x01a" + b":" + bytes([len(fields_v1)]) + fields_v1
    metadata = b"\n\x01a" + b"\x8a\x01" + bytes([len(entry)]) + entry
    raw = b"\n" + bytes([len(metadata)]) + metadata
    kind = b"\n\x02v1\x12\x09ConfigMap"
    body = b"k8s\0\n" + bytes([len(kind)]) + kind + b"\x12" + bytes([len(raw)]) + raw

    assert send(Direct(), "POST", CONFIG_MAPS, body, "application/vnd.kubernetes.protobuf").status == 400


# Queries and quantities


@pytest.mark.parametrize("name", ["limit", "timeoutSeconds", "resourceVersion"])
def test_a_query_number_of_thousands_of_digits_is_rejected_with_the_error_of_go(name: str) -> None:
    answer = Direct().ask("GET", CONFIG_MAPS, query={name: "9" * 5000})

    assert answer.status == 400
    assert answer.body["message"].endswith("value out of range")


@pytest.mark.parametrize(
    ("quantity", "status"), [("1e999", 201), ("1e-999", 201), ("0" * 5000 + "1", 201), ("9" * 9999, 400)]
)
def test_extreme_quantities_are_accepted_or_rejected(quantity: str, status: int) -> None:
    resources = {"requests": {"cpu": quantity, "memory": quantity}, "limits": {"cpu": quantity, "memory": quantity}}
    container = {"name": "c", "image": "i", "resources": resources}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [container]}}

    assert Direct().ask("POST", "/api/v1/namespaces/default/pods", pod).status == status


def test_long_label_selectors_are_fast() -> None:
    direct = Direct()
    for number in range(100):
        direct.ask("POST", CONFIG_MAPS, config_map(f"a{number}"))
    text = "a notin (" + ",".join(f"v{number}" for number in range(50_000)) + ")"

    with soon(10):
        assert len(direct.ask("GET", CONFIG_MAPS, query={"labelSelector": text}).body["items"]) == 100
