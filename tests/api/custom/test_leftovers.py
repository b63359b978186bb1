"""Definitions, objects and namespaces are created and deleted repeatedly without leaking memory."""

from __future__ import annotations

import gc

from batkube.cluster.kinds import Resource
from conformance.client import Client
from conformance.direct import MERGE, Direct
from conformance.placeholders import Json
from conformance.serving import Serving, serving

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "a": {"type": "string", "maxLength": 20, "x-kubernetes-validations": [{"rule": "self != 'b'"}]},
                "b": {"type": "integer", "default": 3},
            },
        }
    },
}
#: Bounded caches of managed fields and resets grow by about 15 objects a round. A leaked definition would be hundreds
#: of objects, and its documents thousands.
PER_ROUND = 60


def a_round(client: Client, number: int) -> None:
    """Define a kind, create an object of it in a new namespace, request its documents, and delete everything."""
    group, namespace = f"g{number}.example.com", f"n{number}"

    def ask(method: str, path: str, body: Json = None) -> None:
        request = {"method": method, "path": path} | ({} if body is None else {"body": body})
        assert client.request(request)["status"] in (200, 201), path

    names = {"plural": "ws", "singular": "w", "kind": "W"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    ask("POST", "/api/v1/namespaces", space)
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"ws.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }
    ask("POST", DEFINITIONS, definition)
    objects = f"/apis/{group}/v1/namespaces/{namespace}/ws"
    ask("POST", objects, {"apiVersion": f"{group}/v1", "kind": "W", "metadata": {"name": "x"}, "spec": {"a": "q"}})
    for path in (f"/openapi/v3/apis/{group}/v1", "/openapi/v2", f"/apis/{group}/v1"):
        ask("GET", path)
    for path in (f"{objects}/x", f"{DEFINITIONS}/ws.{group}", f"/api/v1/namespaces/{namespace}"):
        ask("DELETE", path)
    ask("PUT", f"/api/v1/namespaces/{namespace}/finalize", space | {"spec": {"finalizers": []}})


def live_objects(server: Serving) -> int:
    """Return the number of Python objects after the history has been dropped."""
    server.inside(lambda: server.store.compact())
    gc.collect()
    return len(gc.get_objects())


def test_deleted_definitions_and_objects_do_not_leak_memory() -> None:
    with serving() as server:
        client = Client(server.url)
        for number in range(10):
            a_round(client, number)
        before = live_objects(server)

        for number in range(10, 30):
            a_round(client, number)
        growth = live_objects(server) - before

        client.close()
    assert growth < 20 * PER_ROUND


LEFTOVERS = "/apis/batkube.io/v1/leftovers"


def definition(plural: str) -> dict[str, object]:
    spec = {"type": "object", "properties": {"size": {"type": "integer"}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": spec}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.batkube.io"},
        "spec": {
            "group": "batkube.io",
            "scope": "Cluster",
            "names": {"plural": plural, "kind": plural.capitalize()},
            "versions": [version],
        },
    }


def kinds_called(plural: str) -> int:
    gc.collect()
    return sum(isinstance(each, Resource) and each.plural == plural for each in gc.get_objects())


def test_nothing_of_a_definition_that_was_deleted_is_kept() -> None:
    server = Direct(history_limit=10)
    thing = {"apiVersion": "batkube.io/v1", "kind": "Leftovers", "metadata": {"name": "a"}, "spec": {"size": 1}}
    created = [
        server.ask("POST", DEFINITIONS, definition("leftovers")).status,
        server.ask("POST", LEFTOVERS, thing).status,
        server.ask("PATCH", f"{LEFTOVERS}/a/status", {"status": {"size": 2}}, content_type=MERGE).status,
    ]
    before = kinds_called("leftovers")
    server.ask("DELETE", f"{DEFINITIONS}/leftovers.batkube.io")
    for number in range(20):  # so that nothing is in the history any more
        server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": f"n{number}"}})

    assert created == [201, 201, 200]
    assert before == 1
    assert kinds_called("leftovers") == 0
