from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from batkube.api.openapi.documents import OpenApi
from batkube.cluster.kinds import KindTable, Resource
from batkube.cluster.schemas import Schema, Shape

JSON = "application/json"
WIDGET: dict[str, Any] = {
    "type": "object",
    "properties": {"spec": {"type": "object", "nullable": True, "properties": {"default": {"type": "integer"}}}},
}


def with_widgets() -> tuple[KindTable, OpenApi]:
    table = KindTable.builtin()
    verbs = ("get", "list", "create", "update", "patch", "delete")
    shape = Schema(Shape.STRUCT)
    table.add(Resource("example.com", "v1", "Widget", "widgets", "widget", True, verbs, shape, custom=True))
    return table, OpenApi(table, lambda resource: WIDGET)


TABLE, OPEN_API = with_widgets()


def references(document: Any) -> set[str]:  # noqa: ANN401 - any JSON
    return set(
        re.findall(r'"\$ref":"#/(?:components/schemas|definitions)/([^"]+)"', msgspec.json.encode(document).decode())
    )


def documents() -> list[str]:
    return list(OPEN_API.index()["paths"])


@pytest.mark.parametrize("path", documents())
def test_every_reference_has_a_definition_and_none_is_unused(path: str) -> None:
    document = OPEN_API.document(path)

    assert document is not None
    assert references(document) == set(document["components"]["schemas"])


def test_every_reference_of_version_2_has_a_definition() -> None:
    swagger = OPEN_API.version_2_document()

    assert references(swagger) == set(swagger["definitions"])
    assert '"oneOf":[' not in msgspec.json.encode(swagger).decode()


def test_kubectl_finds_the_kind_of_every_resource_and_that_fields_are_validated() -> None:
    """Look them up as kubectl explain and apply do (kubectl: explain/v2; cli-runtime: query_param_verifier_v3.go)."""
    for resource in TABLE.resources():
        root = f"apis/{resource.api_version}" if resource.group else f"api/{resource.version}"
        document = OPEN_API.document(root)
        assert document is not None
        kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        within = f"/{root}/namespaces/{{namespace}}" if resource.namespaced else f"/{root}"
        collection, item = f"{within}/{resource.plural}", f"{within}/{resource.plural}/{{name}}"
        methods = {**document["paths"].get(item, {}), **document["paths"].get(collection, {})}
        actual = [methods[method]["x-kubernetes-group-version-kind"] for method in ("get", "post") if method in methods]
        assert actual, resource.group_resource
        assert all(each == kind for each in actual)
        defined = [
            each.get("x-kubernetes-group-version-kind", []) for each in document["components"]["schemas"].values()
        ]
        assert any(kind in kinds for kinds in defined), resource.group_resource
        if "patch" in resource.verbs:
            parameters = [each["name"] for each in document["paths"][item]["patch"]["parameters"]]
            assert "fieldValidation" in parameters


def test_schemas_contain_merge_keys_enums_and_defaults() -> None:
    document = OPEN_API.document("api/v1")
    assert document is not None
    schemas = document["components"]["schemas"]

    containers = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-list-map-keys"] == ["name"]
    assert containers["items"]["allOf"] == [{"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"}]
    protocol = schemas["io.k8s.api.core.v1.ContainerPort"]["properties"]["protocol"]
    assert protocol == {"type": "string", "enum": ["SCTP", "TCP", "UDP"], "default": "TCP"}
    assert schemas["io.k8s.api.core.v1.PodSpec"]["required"] == ["containers"]


def test_a_custom_kind_is_described_by_its_definition() -> None:
    document = OPEN_API.document("apis/example.com/v1")
    assert document is not None

    widget = document["components"]["schemas"]["com.example.v1.Widget"]

    assert widget["properties"]["spec"] == WIDGET["properties"]["spec"]
    assert set(widget["properties"]) == {"apiVersion", "kind", "metadata", "spec"}
    assert widget["x-kubernetes-group-version-kind"] == [{"group": "example.com", "version": "v1", "kind": "Widget"}]
    simpler = OPEN_API.version_2_document()["definitions"]["com.example.v1.Widget"]["properties"]["spec"]
    assert simpler == {"type": "object", "properties": {"default": {"type": "integer"}}}


def test_a_document_and_its_hash_change_when_a_kind_is_added_or_removed() -> None:
    table, open_api = with_widgets()
    before = open_api.document_at("v3", JSON)
    (widgets,) = [resource for resource in table.resources() if resource.custom]

    table.remove(widgets)
    after = open_api.document_at("v3", JSON)

    assert before is not None
    assert after is not None
    assert before[2] != after[2]
    assert b"example.com" in before[0]
    assert open_api.document_at("v3/apis/example.com/v1", JSON) is None


def test_documents_are_json_if_the_client_accepts_it() -> None:
    found = OPEN_API.document_at("v3/apis/apps/v1", "application/json, */*")

    assert found is not None
    body, media_type, etag = found
    assert media_type == JSON
    assert etag.startswith('"')
    assert msgspec.json.decode(body) == OPEN_API.document("apis/apps/v1")
    assert OPEN_API.document_at("v3/apis/apps/v1", "application/com.github.proto-openapi.spec.v3@v1.0+protobuf") is None
    assert OPEN_API.document_at("v3/apis/bogus", JSON) is None
    assert OPEN_API.document_at("v4", JSON) is None


def test_descriptions_of_types_and_fields_are_included() -> None:
    """Version 3 wraps a reference that has a description, as kube-openapi does; custom kinds share some."""
    pod = "io.k8s.api.core.v1.Pod"
    words = {pod: {"": "A pod.", "spec": "What it should be.", "apiVersion": "The version."}}
    asked: list[str] = []
    table = with_widgets()[0]
    documents = OpenApi(table, lambda resource: WIDGET, lambda version: asked.append(version) or words)
    core, custom = documents.document("api/v1"), documents.document("apis/example.com/v1")

    assert asked == [table.kubernetes_version], "asked once, whatever is written"
    assert core is not None
    assert custom is not None
    described = core["components"]["schemas"][pod]
    assert described["description"] == "A pod."
    assert described["properties"]["spec"] == {
        "allOf": [{"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"}],
        "default": {},
        "description": "What it should be.",
    }
    assert "description" not in described["properties"]["status"]
    widget = custom["components"]["schemas"]["com.example.v1.Widget"]["properties"]
    assert widget["apiVersion"] == {"description": "The version.", "type": "string"}
    assert widget["kind"] == {"type": "string"}
    assert (
        documents.version_2_document()["definitions"][pod]["properties"]["spec"]["description"] == "What it should be."
    )
