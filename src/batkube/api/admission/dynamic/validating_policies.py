"""ValidatingAdmissionPolicies: CEL expressions that reject objects on create, update and delete.

Kubernetes: apiserver/pkg/admission/plugin/policy/validating (validator.go, dispatcher.go).

Expressions see untyped objects. CONNECT requests such as exec never reach the policies, since the server rejects them.
Audit annotations are not evaluated, since there is no audit log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from batkube.api.admission.dynamic.bound_policies import BoundPolicies, PolicyInvocation, PolicyProblem
from batkube.api.admission.dynamic.expressions import (
    BudgetExceeded,
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
#: Maximal size of the result of a messageExpression (Kubernetes: apiserver/pkg/apis/cel/config.go,
#: MaxEvaluatedMessageExpressionSizeBytes).
_MESSAGE_BYTES_MAX = 5 * 1024


class ValidatingPolicies:
    """The validating policies of one server."""

    #: The kind without which no policy runs.
    configured_by = frozenset({BINDING})

    def __init__(self, store: Store, expressions: ExpressionCache, versions: VersionConverter) -> None:
        self._bound_policies = BoundPolicies(store, versions, POLICY, BINDING)
        self._expressions = expressions
        self._version_converter = versions

    def validate(self, request: AdmissionRequest) -> None:
        """Run the bound policies; add warnings, and raise the first denial."""
        denied: list[PolicyProblem] = []
        for invocation in self._bound_policies.invocations_for(request):
            if isinstance(invocation, PolicyProblem):
                # A misconfigured policy or binding denies the request whatever its validationActions are.
                denied += [invocation] * (not _ignores_failures(invocation.policy))
                continue
            actions = invocation.binding["spec"].get("validationActions") or ()
            for problem in self._violations(invocation, request):
                if "Warn" in actions:
                    name, binding = invocation.policy["metadata"]["name"], invocation.binding["metadata"]["name"]
                    source = f"ValidatingAdmissionPolicy '{name}' with binding '{binding}'"
                    request.warnings.append(f"Validation failed for {source}: {problem.message}")
                if "Deny" in actions:
                    denied.append(problem)
        if denied:
            raise _denial(denied[0], request)

    def _violations(self, invocation: PolicyInvocation, request: AdmissionRequest) -> Iterator[PolicyProblem]:
        spec = invocation.policy["spec"]
        value, old = versioned_objects(request, invocation.target, self._version_converter)
        inputs = expression_inputs(request, invocation.target, value, old, invocation.params)
        try:
            if not match_conditions_hold(spec, self._expressions, inputs):
                return
        except EvaluationFailed as problem:
            yield PolicyProblem(invocation.policy, invocation.binding, str(problem))
            return
        evaluation = Evaluation(self._expressions, inputs, spec.get("variables") or ())
        try:
            failed = list(_failed_validations(spec.get("validations") or (), evaluation))
        except BudgetExceeded as problem:
            failed = [({}, str(problem))]
        for validation, error in failed:
            message, reason = error, ""
            if not error:
                try:
                    message, reason = _failure_message(validation, evaluation), validation.get("reason") or "Invalid"
                except BudgetExceeded as problem:
                    message = error = f"failed messageExpression: {problem}"
            if not error or not _ignores_failures(invocation.policy):
                yield PolicyProblem(invocation.policy, invocation.binding, message, reason)


def _failed_validations(validations: Sequence[KubeObject], evaluation: Evaluation) -> Iterator[tuple[KubeObject, str]]:
    """Yield the validations that do not hold, each with its error, or "" if it was evaluated to false."""
    for validation in validations:
        try:
            if evaluation.value(validation["expression"]) is not True:
                yield validation, ""
        except UnsupportedExpression:
            continue
        except BudgetExceeded:
            raise
        except EvaluationFailed as problem:
            yield validation, str(problem)


def _ignores_failures(policy: KubeObject) -> bool:
    return bool(policy["spec"].get("failurePolicy") == "Ignore")


def _failure_message(validation: KubeObject, evaluation: Evaluation) -> str:
    """Return the message of a failed validation."""
    # Kubernetes: apiserver/pkg/admission/plugin/policy/validating/validator.go, Validate.
    message: Any = None
    if validation.get("messageExpression"):
        try:
            message = evaluation.value(validation["messageExpression"])
        except BudgetExceeded:
            raise
        except (EvaluationFailed, UnsupportedExpression):
            message = None
    # A messageExpression whose result is not a string, is empty, too long or has several lines is ignored.
    message = message.strip() if isinstance(message, str) else ""
    if message and "\n" not in message and len(message.encode()) <= _MESSAGE_BYTES_MAX:
        return str(message)
    return validation.get("message", "").strip() or f"failed expression: {validation['expression'].strip()}"


def _denial(problem: PolicyProblem, request: AdmissionRequest) -> Failure:
    message, reason = f"ValidatingAdmissionPolicy {problem.text}", problem.reason or "Invalid"
    refusal = request.forbidden(message)
    details = {**(refusal.details or {}), "causes": [{"message": message}]}
    return Failure(_CODES.get(reason, 422), reason, refusal.message, details)
