"""Mutating policies, served on request; the recorded cases `mutating-policies` cover their behaviour."""

from __future__ import annotations

from typing import Any

import pytest

from batkube.cluster.kinds import validate_versions
from batkube.kernel.errors import InputError
from conformance.direct import Direct

BETA = "admissionregistration.k8s.io/v1beta1"
POLICIES = f"/apis/{BETA}/mutatingadmissionpolicies"
BINDINGS = f"/apis/{BETA}/mutatingadmissionpolicybindings"
MAPS = "/api/v1/namespaces/default/configmaps"


def policy(name: str, expression: str, **spec: Any) -> dict[str, Any]:  # noqa: ANN401 - any part of a spec
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    return {
        "apiVersion": BETA,
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
            **spec,
        },
    }


def bind(server: Direct, *policies: dict[str, Any]) -> None:
    for each in policies:
        name = each["metadata"]["name"]
        assert server.ask("POST", POLICIES, each).status == 201
        binding = {
            "apiVersion": BETA,
            "kind": "MutatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {"policyName": name},
        }
        assert server.ask("POST", BINDINGS, binding).status == 201


def created(server: Direct) -> dict[str, str]:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}
    answer = server.ask("POST", MAPS, body)
    assert answer.status == 201, answer.body
    data: dict[str, str] = answer.body["data"]
    return data


def test_optional_versions_are_not_served_by_default() -> None:
    server = Direct()

    assert server.ask("GET", POLICIES).status == 404
    assert [each["version"] for each in server.ask("GET", f"/apis/{BETA[:-8]}").body["versions"]] == ["v1"]


def test_policies_run_in_name_order_and_again_if_reinvocation_is_needed() -> None:
    server = Direct(more_versions=[BETA])
    text = '[JSONPatch{{op: "add", path: "/data/{0}", value: has(object.data.{0}) ? object.data.{0} + "+" : "{0}"}}]'
    bind(server, policy("c", text.format("c")), policy("a", text.format("a"), reinvocationPolicy="IfNeeded"))

    # The second round finds that `c` changed the object after `a`.
    assert created(server) == {"k": "v", "a": "a+", "c": "c"}


def test_objects_may_be_read_and_written_in_both_versions() -> None:
    alpha = BETA.replace("beta", "alpha")
    server = Direct(more_versions=validate_versions([alpha, BETA], "test"))
    old = {**policy("a", '[JSONPatch{op: "add", path: "/data/x", value: "y"}]'), "apiVersion": alpha}

    assert server.ask("POST", f"/apis/{alpha}/mutatingadmissionpolicies", old).status == 201

    shown = server.ask("GET", f"{POLICIES}/a").body
    assert shown["apiVersion"] == BETA
    bind(server)
    assert server.ask("GET", f"/apis/{alpha}/mutatingadmissionpolicies/a").body["apiVersion"] == alpha


def test_the_error_for_an_unavailable_version_lists_the_available_ones() -> None:
    with pytest.raises(InputError, match="off by default") as refusal:
        validate_versions(["apps/v9"], "--api")

    assert BETA in str(refusal.value)
