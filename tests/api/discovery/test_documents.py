from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from batkube.api.discovery import documents
from batkube.cluster.kinds import KindTable, Resource, SubResource
from batkube.cluster.schemas import Schema, Shape
from conformance import CASES

TABLE = KindTable.builtin()


def recorded() -> Iterator[tuple[str, bool, dict[str, Any]]]:
    """Yield the recorded discovery requests: path, whether aggregated, and the response."""
    for case in ("aggregated", "legacy"):
        text = (CASES / "discovery" / f"{case}.json").read_text(encoding="utf-8")
        for step in json.loads(text)["steps"]:
            if step["response"]["status"] == 200:
                answer = step["response"]["body"]
                yield step["request"]["path"], answer["kind"] == "APIGroupDiscoveryList", answer


def answered(path: str, aggregated: bool) -> dict[str, Any] | None:
    root, *rest = path.strip("/").split("/")
    if aggregated:
        return documents.aggregated_discovery(TABLE, core=root == "api")
    if not rest:
        return documents.api_versions("127.0.0.1:1") if root == "api" else documents.group_list(TABLE)
    if root == "api":
        return documents.resource_list(TABLE, "", rest[0])
    return documents.api_group(TABLE, rest[0]) if len(rest) == 1 else documents.resource_list(TABLE, rest[0], rest[1])


def comparable(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return a document without the parts that differ between servers."""
    if isinstance(value, dict):
        kept = {key: item for key, item in value.items() if key not in ("storageVersionHash", "serverAddress")}
        return {key: comparable(item) for key, item in kept.items()}
    return [comparable(item) for item in value] if isinstance(value, list) else value


def test_discovery_matches_the_recorded_documents() -> None:
    compared = 0
    for path, aggregated, answer in recorded():
        assert comparable(answered(path, aggregated)) == comparable(answer), path
        compared += 1
    assert compared > 20


def test_unserved_groups_have_no_document() -> None:
    assert documents.api_group(TABLE, "bogus") is None
    assert documents.api_group(TABLE, "") is None
    assert documents.resource_list(TABLE, "apps", "v2") is None


def test_custom_kinds_are_listed_with_their_group() -> None:
    table = KindTable.builtin()
    status = SubResource("status", "Widget", ("get",))
    scale = SubResource("scale", "Scale", ("get",), "autoscaling", "v1")
    table.add(
        Resource(
            *("example.com", "v1", "Widget", "widgets", "widget", True, ("get", "list")),
            Schema(Shape.STRUCT),
            short_names=("wd",),
            subresources={"status": status, "scale": scale},
            custom=True,
        )
    )

    last = documents.aggregated_discovery(table, core=False)["items"][-1]

    assert last["metadata"] == {"name": "example.com"}
    (item,) = last["versions"][0]["resources"]
    assert item["responseKind"] == {"group": "example.com", "version": "v1", "kind": "Widget"}
    assert [below["responseKind"]["group"] for below in item["subresources"]] == ["example.com", "autoscaling"]
    listed = documents.resource_list(table, "example.com", "v1", verbs=lambda resource: ("get",))
    assert listed is not None
    assert [entry["name"] for entry in listed["resources"]] == ["widgets", "widgets/status", "widgets/scale"]
    assert listed["resources"][0]["verbs"] == ["get"]
