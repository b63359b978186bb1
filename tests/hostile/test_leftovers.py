"""What is gone is gone: nothing that somebody made and deleted stays in a table of the server's."""

from __future__ import annotations

import gc

from batkube.cluster.kinds import Resource
from conformance.direct import MERGE, Direct

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
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
