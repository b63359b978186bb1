"""Validating admission policies."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from batkube.api.admission.dynamic.expressions import Evaluation
from batkube.api.cel.programs import CelProgram
from batkube.api.requests.messages import Request, Response
from conformance.direct import ADMIN, Direct

GROUP = "/apis/admissionregistration.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"
ON_MAPS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}


@pytest.fixture
def server() -> Direct:
    return Direct()


def policy(server: Direct, *validations: dict[str, str], **spec: Any) -> None:  # noqa: ANN401
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "rule"},
        "spec": {"matchConstraints": {"resourceRules": [ON_MAPS]}, "validations": list(validations), **spec},
    }
    answer = server.ask("POST", f"{GROUP}/validatingadmissionpolicies", body)
    assert answer.status == 201, answer.body


def bind(server: Direct, *actions: str, **spec: Any) -> None:  # noqa: ANN401
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "bound"},
        "spec": {"policyName": "rule", "validationActions": list(actions), **spec},
    }
    answer = server.ask("POST", f"{GROUP}/validatingadmissionpolicybindings", body)
    assert answer.status == 201, answer.body


def config(name: str, labels: dict[str, str] | None = None, **data: str) -> dict[str, Any]:
    metadata = {"name": name, **({"labels": labels} if labels else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def test_a_policy_without_binding_does_nothing(server: Direct) -> None:
    policy(server, {"expression": "false"})
    assert server.ask("POST", MAPS, config("a")).status == 201


def test_violations_are_rejected_with_the_message_of_kube_apiserver(server: Direct) -> None:
    policy(server, {"expression": "object.data.size.startsWith('s')"})
    bind(server, "Deny")
    answer = server.ask("POST", MAPS, config("a", size="large"))
    message = (
        "ValidatingAdmissionPolicy 'rule' with binding 'bound' denied request: "
        "failed expression: object.data.size.startsWith('s')"
    )
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert answer.body["message"] == f'configmaps "a" is forbidden: {message}'
    assert answer.body["details"]["causes"] == [{"message": message}]
    assert server.ask("POST", MAPS, config("a", size="small")).status == 201
    assert server.ask("PUT", f"{MAPS}/a", config("a", size="large")).status == 422
    assert server.ask("POST", "/api/v1/namespaces/default/secrets", {**config("s"), "kind": "Secret"}).status == 201


def test_reason_and_message_come_from_the_policy(server: Direct) -> None:
    told = {"expression": "false", "messageExpression": "'no ' + object.metadata.name", "reason": "Forbidden"}
    policy(server, told)
    bind(server, "Deny")
    answer = server.ask("POST", MAPS, config("a"))
    assert (answer.status, answer.body["reason"]) == (403, "Forbidden")
    assert answer.body["message"].endswith("denied request: no a")


def test_a_policy_may_only_warn(server: Direct) -> None:
    policy(server, {"expression": "false", "message": "better not"})
    bind(server, "Warn")
    body = msgspec.json.encode(config("a"))
    response = server.api.handle(Request("POST", MAPS, {}, {**ADMIN, "content-type": "application/json"}, body))
    assert isinstance(response, Response)
    assert response.status == 201
    warning = "Validation failed for ValidatingAdmissionPolicy 'rule' with binding 'bound': better not"
    assert any(warning in text for _, text in response.headers)


def test_variables_may_use_earlier_ones_and_are_evaluated_lazily(server: Direct) -> None:
    variables = [
        {"name": "size", "expression": "object.data.size"},
        {"name": "isSmall", "expression": "variables.size == 'small'"},
        {"name": "broken", "expression": "object.data.none"},
    ]
    policy(server, {"expression": "variables.isSmall"}, variables=variables)
    bind(server, "Deny")
    assert server.ask("POST", MAPS, config("a", size="small")).status == 201
    assert server.ask("POST", MAPS, config("b", size="large")).status == 422


@pytest.mark.parametrize(("failure", "status"), [("Fail", 422), ("Ignore", 201)])
def test_evaluation_errors_follow_the_failure_policy(server: Direct, failure: str, status: int) -> None:
    policy(server, {"expression": "object.data.none == 'x'"}, failurePolicy=failure)
    bind(server, "Deny")
    assert server.ask("POST", MAPS, config("a", size="1")).status == status


def test_conditions_and_selectors_restrict_a_policy(server: Direct) -> None:
    condition = {"name": "not-mine", "expression": "request.userInfo.username != 'alice'"}
    policy(server, {"expression": "false"}, matchConditions=[condition])
    bind(server, "Deny", matchResources={"objectSelector": {"matchLabels": {"judged": "yes"}}})
    assert server.ask("POST", MAPS, config("a")).status == 201
    assert server.ask("POST", MAPS, config("b", {"judged": "yes"})).status == 422


def test_parameters_are_objects_of_the_param_kind(server: Direct) -> None:
    policy(
        server,
        {"expression": "int(object.data.size) <= int(params.data.most)"},
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        matchConditions=[{"name": "others", "expression": "object.metadata.name != 'limits'"}],
    )
    assert server.ask("POST", MAPS, config("limits", most="3")).status == 201
    bind(server, "Deny", paramRef={"name": "limits", "namespace": "default", "parameterNotFoundAction": "Deny"})
    assert server.ask("POST", MAPS, config("b", size="3")).status == 201
    assert server.ask("POST", MAPS, config("c", size="4")).status == 422
    assert server.ask("DELETE", f"{MAPS}/limits").status == 200
    missing = server.ask("POST", MAPS, config("a", size="1"))
    assert missing.status == 422
    assert "no params found for policy binding" in missing.body["message"]


def test_policies_apply_to_deletions_without_a_new_object(server: Direct) -> None:
    assert server.ask("POST", MAPS, config("a")).status == 201
    on_deletion = {**ON_MAPS, "operations": ["DELETE"]}
    validation = {"expression": "object == null && oldObject.metadata.name != 'a' && request.operation == 'DELETE'"}
    policy(server, validation, matchConstraints={"resourceRules": [on_deletion]})
    bind(server, "Deny")
    assert server.ask("POST", MAPS, config("b")).status == 201
    assert server.ask("DELETE", f"{MAPS}/b").status == 200
    answer = server.ask("DELETE", f"{MAPS}/a")
    assert (answer.status, answer.body["details"]["name"]) == (422, "a")
    assert server.ask("GET", f"{MAPS}/a").status == 200


class TestCostBudget:
    """Kubernetes: apiserver/pkg/admission/plugin, cel/condition.go and policy/validating/validator.go."""

    SPENT = "validation failed due to running out of cost budget, no further validation rules will be run"
    TEN = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"

    @pytest.fixture
    def evaluated(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """Give each policy a budget of 1,000; return the costs of the evaluated programs."""
        costs: list[int] = []
        evaluate = CelProgram.__call__

        def record(program: CelProgram, variables: dict[str, Any]) -> Any:  # noqa: ANN401
            try:
                return evaluate(program, variables)
            finally:
                costs.append(program.last_cost)

        monkeypatch.setattr(CelProgram, "__call__", record)
        for module in ("validating_policies", "expressions"):
            monkeypatch.setattr(
                f"batkube.api.admission.dynamic.{module}.Evaluation",
                lambda expressions, inputs, variables, budget=0: Evaluation(expressions, inputs, variables, 1_000),
            )
        return costs

    def test_no_expression_is_evaluated_after_the_budget_is_spent(self, server: Direct, evaluated: list[int]) -> None:
        rule = f"{self.TEN}.all(x, {self.TEN}.all(y, x + y >= 0)) || size('{{}}') == 1"
        policy(server, *({"expression": rule.format(number)} for number in range(60)))
        bind(server, "Deny")

        answer = server.ask("POST", MAPS, config("a"))

        assert answer.status == 422
        assert answer.body["details"]["causes"] == [
            {"message": f"ValidatingAdmissionPolicy 'rule' with binding 'bound' denied request: {self.SPENT}"}
        ]
        assert sum(evaluated[:-1]) <= 1_000

    def test_variables_share_the_budget(self, server: Direct, evaluated: list[int]) -> None:
        variables = [
            {"name": f"v{number}", "expression": f"{self.TEN}.all(x, {self.TEN}.all(y, x + y >= -{number}))"}
            for number in range(60)
        ]
        used = " && ".join(f"variables.{each['name']}" for each in variables)
        policy(server, {"expression": used}, variables=variables)
        bind(server, "Deny")

        answer = server.ask("POST", MAPS, config("a"))

        assert answer.body["message"].endswith(f"denied request: {self.SPENT}")
        assert len(evaluated) <= 4

    def test_a_variable_that_fails_is_evaluated_once(self, server: Direct, evaluated: list[int]) -> None:
        variables = [{"name": "missing", "expression": "object.data.missing"}]
        policy(server, {"expression": f"{self.TEN}.exists(x, variables.missing == x) || true"}, variables=variables)
        bind(server, "Deny")

        assert server.ask("POST", MAPS, config("a")).status == 201
        assert len(evaluated) == 2

    def test_a_policy_whose_budget_is_spent_may_be_ignored(self, server: Direct, evaluated: list[int]) -> None:
        rule = f"{self.TEN}.all(x, {self.TEN}.all(y, {self.TEN}.all(z, true)))"
        policy(server, {"expression": "false"}, {"expression": rule}, failurePolicy="Ignore")
        bind(server, "Deny")

        assert server.ask("POST", MAPS, config("a")).status == 201, "the other validations do not count either"

    def test_message_expressions_share_the_budget(self, server: Direct, evaluated: list[int]) -> None:
        message = f"string({self.TEN}.all(x, {self.TEN}.all(y, {self.TEN}.all(z, true))))"
        policy(server, {"expression": "false", "messageExpression": message}, {"expression": "1 == 2"})
        bind(server, "Deny")

        answer = server.ask("POST", MAPS, config("a"))

        assert answer.body["message"].endswith(f"denied request: failed messageExpression: {self.SPENT}")
        assert len(evaluated) == 3

    @pytest.mark.parametrize(("failures", "status"), [("Fail", 422), ("Ignore", 201)])
    def test_match_conditions_have_a_budget(
        self, server: Direct, evaluated: list[int], failures: str, status: int
    ) -> None:
        rule = f"{self.TEN}.all(x, {self.TEN}.all(y, x + y >= 0)) || size('{{}}') == 1"
        conditions = [{"name": f"c{number}", "expression": rule.format(number)} for number in range(20)]
        policy(server, {"expression": "false"}, matchConditions=conditions, failurePolicy=failures)
        bind(server, "Deny")

        answer = server.ask("POST", MAPS, config("a"))

        assert answer.status == status
        assert failures == "Ignore" or answer.body["message"].endswith(f"denied request: {self.SPENT}")
        assert len(evaluated) <= 4
