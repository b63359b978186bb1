"""Binding and eviction of pods by requests, as kube-apiserver answers them.

`tests/clients/test_kubectl_nodes.py` drains nodes with kubectl.
"""

from __future__ import annotations

from typing import Any

import pytest

from conformance.direct import Answer, Direct

PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
EXCEEDED = "Cannot evict pod as it would violate the pod's disruption budget."


def create_pod(direct: Direct, name: str = "web", node: str = "") -> None:
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "nginx"}], **({"nodeName": node} if node else {})}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "web"}}, "spec": spec}
    assert direct.ask("POST", PODS, pod).status == 201


def create_running_pod(direct: Direct, *, is_ready: bool = True) -> None:
    create_pod(direct, node="node-1")
    condition = {"type": "Ready", "status": "True" if is_ready else "False"}
    set_status(direct, f"{PODS}/web", {"phase": "Running", "conditions": [condition]})


def create_budget(direct: Direct, name: str = "web", policy: str = "", **status: object) -> None:
    """Create a PodDisruptionBudget with this status, which a controller has just written."""
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    if policy:
        spec["unhealthyPodEvictionPolicy"] = policy
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}
    assert direct.ask("POST", BUDGETS, budget).status == 201
    if status:
        counts = {"observedGeneration": 1, "expectedPods": 1, "currentHealthy": 1, "desiredHealthy": 1}
        set_status(direct, f"{BUDGETS}/{name}", {"disruptionsAllowed": 0, **counts, **status})


def set_status(direct: Direct, path: str, status: dict[str, Any]) -> None:
    obj = direct.ask("GET", path).body
    assert direct.ask("PUT", f"{path}/status", {**obj, "status": status}).status == 200


def evict(direct: Direct, pod: str = "web", **delete_options: object) -> Answer:
    options = {"deleteOptions": delete_options} if delete_options else {}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}, **options}
    return direct.ask("POST", f"{PODS}/web/eviction", eviction)


def bind(direct: Direct, node: str = "node-1", **metadata: str) -> Answer:
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "web", **metadata}, "target": target}
    return direct.ask("POST", f"{PODS}/web/binding", binding)


def pod_of(direct: Direct) -> dict[str, Any]:
    pod: dict[str, Any] = direct.ask("GET", f"{PODS}/web").body
    return pod


def test_evicted_pod_is_marked_and_being_deleted(direct: Direct) -> None:
    create_running_pod(direct)

    assert evict(direct).status == 201

    pod = pod_of(direct)
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
    (condition,) = (each for each in pod["status"]["conditions"] if each["type"] == "DisruptionTarget")
    assert (condition["status"], condition["reason"]) == ("True", "EvictionByEvictionAPI")


def test_eviction_consumes_a_disruption_of_the_budget(direct: Direct) -> None:
    create_running_pod(direct)
    create_budget(direct, disruptionsAllowed=1)

    assert evict(direct).status == 201

    status = direct.ask("GET", f"{BUDGETS}/web").body["status"]
    assert status["disruptionsAllowed"] == 0
    assert list(status["disruptedPods"]) == ["web"]
    (condition,) = status["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "InsufficientPods")


def test_exhausted_budget_prevents_the_eviction(direct: Direct) -> None:
    create_running_pod(direct)
    create_budget(direct, disruptionsAllowed=0)

    answer = evict(direct)

    assert (answer.status, answer.body["reason"], answer.body["message"]) == (429, "TooManyRequests", EXCEEDED)
    (cause,) = answer.body["details"]["causes"]
    assert cause["message"] == "The disruption budget web needs 1 healthy pods and has 1 currently"
    assert "deletionTimestamp" not in pod_of(direct)["metadata"]


def test_client_retries_while_the_controller_has_not_seen_the_budget(direct: Direct) -> None:
    create_running_pod(direct)
    create_budget(direct)

    answer = evict(direct)

    assert answer.status == 429
    assert answer.body["details"]["retryAfterSeconds"] == 10


@pytest.mark.parametrize(
    ("policy", "healthy", "status"), [("", 0, 429), ("", 1, 201), ("IfHealthyBudget", 0, 429), ("AlwaysAllow", 0, 201)]
)
def test_unhealthy_pod_needs_no_disruption_if_the_policy_allows_it(
    direct: Direct, policy: str, healthy: int, status: int
) -> None:
    create_running_pod(direct, is_ready=False)
    create_budget(direct, policy=policy, currentHealthy=healthy)

    assert evict(direct).status == status


def test_pending_pod_is_evicted_whatever_its_budget_allows(direct: Direct) -> None:
    create_pod(direct)
    create_budget(direct, disruptionsAllowed=0)

    assert evict(direct).status == 201
    assert direct.ask("GET", f"{PODS}/web").status == 404


def test_pod_with_two_budgets_is_not_evicted(direct: Direct) -> None:
    create_running_pod(direct)
    for name in ("one", "two"):
        create_budget(direct, name, disruptionsAllowed=1)

    answer = evict(direct)

    assert answer.status == 500
    assert "more than one PodDisruptionBudget" in answer.body["message"]


def test_dry_run_of_an_eviction_changes_nothing(direct: Direct) -> None:
    create_running_pod(direct)
    create_budget(direct, disruptionsAllowed=1)

    assert evict(direct, dryRun=["All"]).status == 201

    assert "deletionTimestamp" not in pod_of(direct)["metadata"]
    assert direct.ask("GET", f"{BUDGETS}/web").body["status"]["disruptionsAllowed"] == 1


def test_eviction_of_another_pod_than_that_of_the_path_is_rejected(direct: Direct) -> None:
    create_running_pod(direct)

    assert evict(direct, pod="other").status == 400


def test_eviction_with_the_uid_of_an_earlier_pod_is_a_conflict(direct: Direct) -> None:
    create_running_pod(direct)

    assert evict(direct, preconditions={"uid": "earlier"}).status == 409
    assert "deletionTimestamp" not in pod_of(direct)["metadata"]


def test_bound_pod_has_its_node_and_is_not_bound_again(direct: Direct) -> None:
    create_pod(direct)

    assert bind(direct).status == 201
    again = bind(direct, "node-2")

    assert pod_of(direct)["spec"]["nodeName"] == "node-1"
    assert again.status == 409
    assert again.body["message"].endswith('pod web is already assigned to node "node-1"')


def test_binding_with_the_uid_of_an_earlier_pod_is_a_conflict(direct: Direct) -> None:
    create_pod(direct)

    assert bind(direct, uid="earlier").status == 409
    assert "nodeName" not in pod_of(direct)["spec"]


def test_binding_without_a_node_is_an_internal_error_as_in_kube_apiserver(direct: Direct) -> None:
    create_pod(direct)

    answer = bind(direct, "")

    assert answer.status == 500
    assert answer.body["message"].endswith("target.name: Required value")
