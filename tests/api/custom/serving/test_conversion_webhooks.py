"""Conversion by a webhook that listens on a socket, as in the conformance suite."""

from __future__ import annotations

import contextlib
import http.client
import json
import urllib.parse
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from conformance.client import Client
from conformance.serving import Serving
from conformance.webhook import Hook

Json = dict[str, Any]
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
V1, V2 = (f"/apis/example.com/{version}/namespaces/default/widgets" for version in ("v1", "v2"))


def converted(review: Json) -> Json:
    """Split `hostPort` of v1 into `host` and `port` of v2, or join them."""
    request = review["request"]
    objects = []
    for obj in request["objects"]:
        if request["desiredAPIVersion"] == "example.com/v2":
            host, _, port = obj.pop("hostPort", "").partition(":")
            obj |= {"host": host, "port": port}
        else:
            obj["hostPort"] = f"{obj.pop('host', '')}:{obj.pop('port', '')}"
        objects.append({**obj, "apiVersion": request["desiredAPIVersion"]})
    return answered(review, convertedObjects=objects, result={"status": "Success"})


def answered(review: Json, **response: Any) -> Json:  # noqa: ANN401 - of any answer
    return {
        "apiVersion": review["apiVersion"],
        "kind": "ConversionReview",
        "response": {"uid": review["request"]["uid"], **response},
    }


def definition(hook: Hook) -> Json:
    def version(name: str, *fields: str) -> Json:
        properties = {field: {"type": "string"} for field in fields}
        return {
            "name": name,
            "served": True,
            "storage": name == "v1",
            "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
            "selectableFields": [{"jsonPath": f".{field}"} for field in fields],
        }

    client = {"url": f"https://127.0.0.1:{hook.port}/convert", "caBundle": hook.authority}
    webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version("v1", "hostPort"), version("v2", "host", "port")],
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        },
    }


def widget(name: str, version: str = "v2", **fields: str) -> Json:
    return {"apiVersion": f"example.com/{version}", "kind": "Widget", "metadata": {"name": name}, **fields}


@pytest.fixture
def client(server: Serving) -> Iterator[Client]:
    with contextlib.closing(Client(server.url)) as connected:
        yield connected


@pytest.fixture
def hook(client: Client) -> Iterator[Hook]:
    with Hook(converted).listening() as listening:
        assert client.ask("POST", DEFINITIONS, definition(listening))["status"] == 201
        yield listening


def test_an_object_is_stored_in_one_version_and_read_in_both(client: Client, hook: Hook) -> None:
    created = client.ask("POST", V2, widget("a", host="host1", port="80"))

    assert (created["status"], created["body"]["host"]) == (201, "host1")
    old = client.ask("GET", f"{V1}/a")["body"]
    assert (old["hostPort"], "host" in old) == ("host1:80", False)
    changed = client.ask("PATCH", f"{V2}/a", {"port": "8080"})
    assert (changed["status"], changed["body"]["host"], changed["body"]["port"]) == (200, "host1", "8080")
    assert client.ask("GET", f"{V1}/a")["body"]["hostPort"] == "host1:8080"
    assert changed["body"]["metadata"]["uid"] == created["body"]["metadata"]["uid"]
    assert hook.paths[0] == "/convert?timeout=30s"
    deleted = client.ask("DELETE", f"{V2}/a")
    assert deleted["status"] == 200


def test_a_list_is_converted_in_one_request_to_the_requested_version(client: Client, hook: Hook) -> None:
    for name, host, port in (("a", "host1", "80"), ("b", "host1", "8080"), ("c", "host2", "80")):
        assert client.ask("POST", V1, widget(name, "v1", hostPort=f"{host}:{port}"))["status"] == 201
    hook.reviews.clear()
    # Another definition of the same versions, which is not cached.
    client.ask("PATCH", f"{DEFINITIONS}/widgets.example.com", {"spec": {"names": {"shortNames": ["w"]}}})

    chosen = client.ask("GET", V2, fieldSelector="host=host1")["body"]["items"]

    assert [each["metadata"]["name"] for each in chosen] == ["a", "b"]
    assert [each["port"] for each in chosen] == ["80", "8080"]
    assert [len(review["request"]["objects"]) for review in hook.reviews] == [3]
    one = client.ask("GET", V1, fieldSelector="hostPort=host1:80")["body"]["items"]
    assert [each["metadata"]["name"] for each in one] == ["a"]


def test_a_watch_reports_objects_in_its_own_version(client: Client, server: Serving, hook: Hook) -> None:
    client.ask("POST", V2, widget("a", host="host1", port="80"))

    def change() -> None:
        with contextlib.closing(Client(server.url)) as other:
            other.ask("PATCH", f"{V1}/a", {"hostPort": "host9:90"})
            other.ask("POST", V1, widget("b", "v1", hostPort="host1:81"))
            other.ask("DELETE", f"{V1}/b")

    events = watched(server, f"{V2}?watch=true&fieldSelector=host%3Dhost1&timeoutSeconds=3", change)

    reported = [(event["type"], event["object"]["metadata"]["name"], event["object"]["port"]) for event in events]
    # An object that is no longer selected is reported with its last selected state.
    assert reported == [("ADDED", "a", "80"), ("DELETED", "a", "80"), ("ADDED", "b", "81"), ("DELETED", "b", "81")]


def watched(server: Serving, target: str, during: Callable[[], None]) -> list[Json]:
    parts = urllib.parse.urlsplit(server.url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 0, timeout=20)
    connection.request("GET", target, headers={"Authorization": "Bearer admin-token"})
    response = connection.getresponse()
    first = response.readline()
    during()
    lines = [first, *response.read().splitlines()]
    connection.close()
    return [json.loads(line) for line in lines if line.strip()]


@pytest.mark.parametrize(
    ("response", "problem"),
    [
        ({"result": {"status": "Failed", "message": "no idea"}}, "failed: no idea"),
        ({"result": {"status": "Success"}, "convertedObjects": []}, "returned 0 objects, expected 1"),
        (
            {"result": {"status": "Success"}, "convertedObjects": [widget("other", "v1")]},
            "returned invalid object: must have the same name: a != other",
        ),
    ],
)
def test_an_object_whose_conversion_fails_is_not_stored(
    client: Client, hook: Hook, response: Json, problem: str
) -> None:
    hook.answer = lambda review: answered(review, **response)

    answer = client.ask("POST", V2, widget("a", host="host1", port="80"))

    assert answer["status"] == 500
    assert answer["body"]["message"] == f"conversion webhook for example.com/v2, Kind=Widget {problem}"
    hook.answer = converted
    assert client.ask("GET", f"{V2}/a")["status"] == 404
