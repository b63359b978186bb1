"""Definitions, objects and namespaces are created and deleted repeatedly without leaking memory."""

from __future__ import annotations

import gc

from conformance.client import Client
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
#: Who wrote what, and what is reset, is remembered by text, up to a bound: about 15 objects a round. A definition that
#: stayed would be hundreds, and what its documents hold thousands.
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
