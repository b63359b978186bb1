"""PodGroups and Workloads, the gangs of Kubernetes 1.37."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.direct import Direct

BETA = "scheduling.k8s.io/v1beta1"
GROUPS = f"/apis/{BETA}/namespaces/default/podgroups"
WORKLOADS = f"/apis/{BETA}/namespaces/default/workloads"


@pytest.fixture
def server() -> Direct:
    return Direct(kubernetes="1.37", more_versions=[BETA])


def group(policy: dict[str, Any], **spec: Any) -> dict[str, Any]:  # noqa: ANN401 - any field
    fields = {"schedulingPolicy": policy, **spec}
    return {"apiVersion": BETA, "kind": "PodGroup", "metadata": {"name": "gang"}, "spec": fields}


def test_a_pod_group_gets_the_priority_of_its_class(server: Direct) -> None:
    metadata = {"name": "high"}
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata, "value": 7}
    server.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", high)

    created = server.ask("POST", GROUPS, group({"gang": {"minCount": 3}}, priorityClassName="high"))
    refused = server.ask("POST", GROUPS, group({"gang": {"minCount": 3}}, priorityClassName="high", priority=8))

    assert (created.status, created.body["spec"]["priority"]) == (201, 7)
    assert refused.status == 403
    assert "must match the priority computed (7)" in refused.body["message"]


def test_the_status_of_a_pod_group_is_a_subresource(server: Direct) -> None:
    scheduled = {
        "type": "PodGroupInitiallyScheduled",
        "status": "True",
        "reason": "Scheduled",
        "message": "",
        "lastTransitionTime": "2026-11-15T20:00:00Z",
    }
    value = group({"gang": {"minCount": 3}}) | {"status": {"conditions": [scheduled]}}

    created = server.ask("POST", GROUPS, value)
    written = server.ask("PUT", f"{GROUPS}/gang/status", created.body | {"status": {"conditions": [scheduled]}})

    assert "status" not in created.body or not created.body["status"]
    assert [condition["type"] for condition in written.body["status"]["conditions"]] == ["PodGroupInitiallyScheduled"]


@pytest.mark.parametrize(
    ("policy", "field"),
    [
        ({}, "spec.schedulingPolicy"),
        ({"basic": {}, "gang": {"minCount": 2}}, "spec.schedulingPolicy"),
        ({"gang": {}}, "spec.schedulingPolicy.gang.minCount"),
        ({"gang": {"minCount": -1}}, "spec.schedulingPolicy.gang.minCount"),
    ],
)
def test_a_pod_group_has_one_valid_policy(server: Direct, policy: dict[str, Any], field: str) -> None:
    refused = server.ask("POST", GROUPS, group(policy))

    assert refused.status == 422
    assert [cause["field"] for cause in refused.body["details"]["causes"]] == [field]


def test_the_templates_of_a_workload_have_different_names(server: Direct) -> None:
    template = {"name": "workers", "schedulingPolicy": {"gang": {"minCount": 2}}}
    value = {"apiVersion": BETA, "kind": "Workload", "metadata": {"name": "w"}, "spec": {"podGroupTemplates": []}}

    one = server.ask("POST", WORKLOADS, value | {"spec": {"podGroupTemplates": [template]}})
    two = server.ask("POST", WORKLOADS, value | {"spec": {"podGroupTemplates": [template, template]}})

    assert one.status == 201
    assert [cause["reason"] for cause in two.body["details"]["causes"]] == ["FieldValueDuplicate"]


def test_a_pod_names_its_group_only_where_the_api_has_that_field(server: Direct) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}], "schedulingGroup": {"podGroupName": "gang"}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    path, strict = "/api/v1/namespaces/default/pods", {"fieldValidation": "Strict"}

    created = server.ask("POST", path, pod, query=strict)
    older = Direct().ask("POST", path, pod, query=strict)

    assert created.body["spec"]["schedulingGroup"] == {"podGroupName": "gang"}
    assert older.status == 400
    assert 'unknown field "spec.schedulingGroup"' in older.body["message"]
