"""Removed API versions, served again for programs that need them."""

from __future__ import annotations

import pytest

from batkube.api.requests.messages import Request, Response
from batkube.api.requests.negotiation import PROTOBUF
from batkube.api.wire.protobuf import decode_envelope
from batkube.cluster.kinds import KindTable
from batkube.kernel.errors import InputError
from conformance.direct import ADMIN, MERGE, Direct, Watched

OLD, TODAY = "/apis/policy/v1beta1", "/apis/policy/v1"
BUDGETS = "/namespaces/default/poddisruptionbudgets"
BUDGET = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}}


@pytest.fixture
def server() -> Direct:
    return Direct(more_versions=["policy/v1beta1"])


def test_optional_versions_are_not_served_by_default() -> None:
    assert Direct().ask("GET", OLD + "/poddisruptionbudgets").status == 404


def test_an_object_is_served_in_both_versions(server: Direct) -> None:
    assert server.ask("POST", TODAY + BUDGETS, BUDGET).status == 201

    now, old = (server.ask("GET", f"{version}{BUDGETS}/b").body for version in (TODAY, OLD))

    assert (now["apiVersion"], old["apiVersion"]) == ("policy/v1", "policy/v1beta1")
    assert {**old, "apiVersion": "policy/v1"} == now


def test_objects_written_in_the_old_version_are_stored_in_the_current_one(server: Direct) -> None:
    assert server.ask("POST", OLD + BUDGETS, {**BUDGET, "apiVersion": "policy/v1beta1"}).status == 201
    changed = server.ask("PATCH", f"{OLD}{BUDGETS}/b", {"spec": {"minAvailable": 2}}, content_type=MERGE)

    assert changed.body["apiVersion"] == "policy/v1beta1"
    ((stored, _),) = server.store.entries("poddisruptionbudgets.policy").values()
    assert stored["apiVersion"] == "policy/v1"
    assert stored["spec"]["minAvailable"] == 2
    assert server.ask("DELETE", f"{OLD}{BUDGETS}/b").status == 200
    assert server.ask("GET", f"{TODAY}{BUDGETS}/b").status == 404


def test_lists_and_watches_use_the_version_of_the_request(server: Direct) -> None:
    watches = [server.watch(version + BUDGETS) for version in (OLD, TODAY)]
    server.ask("POST", TODAY + BUDGETS, BUDGET)

    versions = [
        [event["object"]["apiVersion"] for event in one.reader.events] for one in watches if isinstance(one, Watched)
    ]
    assert versions == [["policy/v1beta1"], ["policy/v1"]]
    listed = server.ask("GET", OLD + "/poddisruptionbudgets").body
    assert (listed["kind"], listed["apiVersion"]) == ("PodDisruptionBudgetList", "policy/v1beta1")
    assert [item["metadata"]["name"] for item in listed["items"]] == ["b"]


def test_protobuf_lists_are_of_the_old_version_too(server: Direct) -> None:
    server.ask("POST", TODAY + BUDGETS, BUDGET)
    request = Request("GET", OLD + "/poddisruptionbudgets", {}, {**ADMIN, "accept": PROTOBUF}, b"")
    answer = server.api.handle(request)

    assert isinstance(answer, Response)
    schema = KindTable.builtin().definition_of("policy", "v1", "PodDisruptionBudgetList")
    listed = decode_envelope(answer.body, schema)
    assert listed["apiVersion"] == "policy/v1beta1"
    assert [item["spec"]["minAvailable"] for item in listed["items"]] == [1]


def test_discovery_and_openapi_list_the_old_version_after_the_current_one(server: Direct) -> None:
    group = server.ask("GET", "/apis/policy").body

    assert [each["version"] for each in group["versions"]] == ["v1", "v1beta1"]
    assert group["preferredVersion"]["version"] == "v1"
    assert [each["name"] for each in server.ask("GET", OLD).body["resources"]] == [
        "poddisruptionbudgets",
        "poddisruptionbudgets/status",
    ]
    assert "/apis/policy/v1beta1/poddisruptionbudgets" in server.ask("GET", "/openapi/v2").body["paths"]


def test_a_version_that_is_already_served_is_unchanged() -> None:
    server = Direct(more_versions=["policy/v1", "policy/v1"])

    assert [each["version"] for each in server.ask("GET", "/apis/policy").body["versions"]] == ["v1"]


def test_an_unknown_group_is_an_input_error() -> None:
    with pytest.raises(InputError, match="no such group"):
        Direct(more_versions=["batkube.io/v1"])
