"""ValidatingAdmissionPolicies: expressions that judge what is written, where a binding says that they do.

Kubernetes: apiserver/pkg/admission/plugin/policy/validating (validator.go, dispatcher.go). Expressions see plain
objects, without the types of their kinds. Policies judge creations, updates and deletions; connections (exec and the
like) are refused anyway. Audit annotations are evaluated by nobody: there is no audit log.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from batkube.api.admission.dynamic.bound_policies import BoundPolicies, PolicyInvocation, PolicyProblem
from batkube.api.admission.dynamic.expressions import (
    Evaluation,
    EvaluationFailed,
    ExpressionCache,
    UnsupportedExpression,
    expression_inputs,
    match_conditions_hold,
)
from batkube.api.admission.dynamic.matching import VersionConverter, versioned_objects
from batkube.api.admission.request import AdmissionRequest
from batkube.api.requests.statuses import Failure
from batkube.cluster.store import KubeObject, Store

POLICY = "validatingadmissionpolicies.admissionregistration.k8s.io"
BINDING = "validatingadmissionpolicybindings.admissionregistration.k8s.io"
_CODES = {"Unauthorized": 401, "Forbidden": 403, "Invalid": 422, "RequestEntityTooLarge": 413}
#: Of a message that an expression makes (apis/cel/config.go: MaxEvaluatedMessageExpressionSizeBytes).
_MESSAGE_BYTES_MAX = 5 * 1024


class ValidatingPolicies:
    """The validating policies of one server."""

    def __init__(self, store: Store, expressions: ExpressionCache, versions: VersionConverter) -> None:
        self._bound_policies = BoundPolicies(store, versions, POLICY, BINDING)
        self._expressions = expressions
        self._version_converter = versions

    @property
    def any_bound(self) -> bool:
        """Whether any policy is bound."""
        return self._bound_policies.any_bound

    def validate(self, attempt: AdmissionRequest) -> None:
        """Refuse or warn of what a bound policy has objections to; of several the first one is told."""
        denied: list[PolicyProblem] = []
        for one in self._bound_policies.invocations_for(attempt) if self.any_bound else ():
            if isinstance(one, PolicyProblem):
                # A binding that cannot be used denies, whatever its actions are.
                denied += [one] * (not _ignores_failures(one.policy))
                continue
            actions = one.binding["spec"].get("validationActions") or ()
            for problem in self._violations(one, attempt):
                if "Warn" in actions:
                    name, binding = one.policy["metadata"]["name"], one.binding["metadata"]["name"]
                    by = f"ValidatingAdmissionPolicy '{name}' with binding '{binding}'"
                    attempt.warnings.append(f"Validation failed for {by}: {problem.message}")
                if "Deny" in actions:
                    denied.append(problem)
        if denied:
            raise _denial(denied[0], attempt)

    def _violations(self, one: PolicyInvocation, attempt: AdmissionRequest) -> Iterator[PolicyProblem]:
        spec = one.policy["spec"]
        value, old = versioned_objects(attempt, one.target, self._version_converter)
        seen = expression_inputs(attempt, one.target, value, old, one.params)
        try:
            if not match_conditions_hold(spec, self._expressions, seen):
                return
        except EvaluationFailed as problem:
            yield PolicyProblem(one.policy, one.binding, str(problem))
            return
        evaluation = Evaluation(self._expressions, seen, spec.get("variables") or ())
        for validation in spec.get("validations") or ():
            try:
                if evaluation.value(validation["expression"]) is True:
                    continue
            except UnsupportedExpression:
                continue
            except EvaluationFailed as problem:
                if not _ignores_failures(one.policy):
                    yield PolicyProblem(one.policy, one.binding, str(problem))
                continue
            message, reason = _failure_message(validation, evaluation), validation.get("reason") or "Invalid"
            yield PolicyProblem(one.policy, one.binding, message, reason)


def _ignores_failures(policy: KubeObject) -> bool:
    return bool(policy["spec"].get("failurePolicy") == "Ignore")


def _failure_message(validation: KubeObject, evaluation: Evaluation) -> str:
    """Return what a validation that does not hold says."""
    told: Any = None
    if validation.get("messageExpression"):
        try:
            told = evaluation.value(validation["messageExpression"])
        except (EvaluationFailed, UnsupportedExpression):
            told = None
    # What is no text, empty, too long or of several lines is not used.
    told = told.strip() if isinstance(told, str) else ""
    if told and "\n" not in told and len(told.encode()) <= _MESSAGE_BYTES_MAX:
        return str(told)
    return validation.get("message", "").strip() or f"failed expression: {validation['expression'].strip()}"


def _denial(problem: PolicyProblem, attempt: AdmissionRequest) -> Failure:
    message, reason = f"ValidatingAdmissionPolicy {problem.text}", problem.reason or "Invalid"
    refusal = attempt.forbidden(message)
    details = {**(refusal.details or {}), "causes": [{"message": message}]}
    return Failure(_CODES.get(reason, 422), reason, refusal.message, details)
