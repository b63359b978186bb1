"""MutatingAdmissionPolicies: CEL expressions that change objects on create and update.

They run before mutating webhooks, in the order of their names, which is arbitrary in kube-apiserver (Kubernetes:
apiserver/pkg/admission/plugin/policy/mutating/dispatcher.go).
"""

from __future__ import annotations

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
from batkube.api.admission.dynamic.mutations import MutationFailed, apply_configuration, apply_json_patch
from batkube.api.admission.dynamic.reinvocation import ReinvocationContext
from batkube.api.admission.request import AdmissionRequest
from batkube.api.requests.statuses import Failure
from batkube.cluster.store import KubeObject, Store

POLICY = "mutatingadmissionpolicies.admissionregistration.k8s.io"
BINDING = "mutatingadmissionpolicybindings.admissionregistration.k8s.io"


class MutatingPolicies:
    """The mutating policies of one server."""

    #: The kind without which no policy runs.
    configured_by = frozenset({BINDING})

    def __init__(self, store: Store, expressions: ExpressionCache, versions: VersionConverter) -> None:
        self._bound_policies = BoundPolicies(store, versions, POLICY, BINDING)
        self._expressions = expressions
        self._version_converter = versions

    def mutate(self, request: AdmissionRequest, context: ReinvocationContext) -> None:
        """Run the policies that are due in this round; raises Failure if one of them fails."""
        # Policies are matched against the object as it is at the start of the round.
        invocations = list(self._bound_policies.invocations_for(request))
        problems = [each for each in invocations if isinstance(each, PolicyProblem)]
        context.begin_round(request.value)
        has_run = False
        for invocation in invocations:
            if isinstance(invocation, PolicyProblem) or not self._conditions_hold(invocation, request, problems):
                continue
            if not context.should_run(invocation.identity):
                continue
            before = dict(request.value)
            has_run |= self._apply_mutations(invocation, request, problems)
            reinvoke = invocation.policy["spec"].get("reinvocationPolicy") == "IfNeeded"
            context.record_run(invocation.identity, changed=request.value != before, reinvoke=reinvoke)
        if has_run:
            # kube-apiserver treats the object as changed if a mutation was applied, even if it had no effect.
            context.record_change()
        context.end_round(request.value)
        fatal = [each for each in problems if each.policy["spec"].get("failurePolicy") != "Ignore"]
        if fatal:
            raise _denial(fatal, request)

    def _expression_inputs(self, invocation: PolicyInvocation, request: AdmissionRequest) -> dict[str, Any]:
        value, old = versioned_objects(request, invocation.target, self._version_converter)
        return expression_inputs(request, invocation.target, value, old, invocation.params)

    def _conditions_hold(
        self, invocation: PolicyInvocation, request: AdmissionRequest, problems: list[PolicyProblem]
    ) -> bool:
        """Return whether the match conditions of a policy hold; record a problem if they cannot be evaluated."""
        try:
            return match_conditions_hold(
                invocation.policy["spec"], self._expressions, self._expression_inputs(invocation, request)
            )
        except EvaluationFailed as problem:
            problems.append(PolicyProblem(invocation.policy, invocation.binding, str(problem), "Invalid"))
            return False

    def _apply_mutations(
        self, invocation: PolicyInvocation, request: AdmissionRequest, problems: list[PolicyProblem]
    ) -> bool:
        """Apply the mutations of a policy in order; return whether any was applied."""
        has_run = False
        for mutation in invocation.policy["spec"].get("mutations") or ():
            try:
                has_run |= self._apply_mutation(invocation, mutation, request)
            except (EvaluationFailed, MutationFailed) as problem:
                problems.append(PolicyProblem(invocation.policy, invocation.binding, str(problem), "Invalid"))
        return has_run

    def _apply_mutation(self, invocation: PolicyInvocation, mutation: KubeObject, request: AdmissionRequest) -> bool:
        # Each mutation has its own budget, and its variables see the object as the previous mutations left it.
        evaluation = Evaluation(
            self._expressions,
            self._expression_inputs(invocation, request),
            invocation.policy["spec"].get("variables") or (),
        )
        is_patch = mutation["patchType"] == "JSONPatch"
        try:
            mutated = evaluation.value(mutation["jsonPatch" if is_patch else "applyConfiguration"]["expression"])
        except UnsupportedExpression:
            return False
        before = self._version_converter.to_version(request.value, request.resource, invocation.target)
        value = (
            apply_json_patch(mutated, before) if is_patch else apply_configuration(mutated, before, invocation.target)
        )
        if invocation.target is not request.resource and not invocation.target.custom:
            # kube-apiserver fails to convert the object back from the policy's version (dispatcher.go, dispatchOne).
            kinds = f"({invocation.target.schema.go}) to ({request.resource.schema.go})"
            raise MutationFailed(f"converting {kinds}: unknown conversion")
        value = self._version_converter.decode_and_default(invocation.target, value, strict=is_patch)
        value = self._version_converter.to_version(value, invocation.target, request.resource)
        request.value.clear()
        request.value.update(value)
        return True


def _denial(problems: list[PolicyProblem], request: AdmissionRequest) -> Failure:
    """Return the failure of a denied request: the first problem is the message, and all of them are causes."""
    refusal = request.forbidden("")
    texts = [_denial_text(problem) for problem in problems]
    details = {**(refusal.details or {}), "causes": [{"message": text} for text in texts]}
    return Failure(refusal.code, problems[0].reason or refusal.reason, texts[0], details)


def _denial_text(problem: PolicyProblem) -> str:
    if problem.binding is None:
        return f'policy "{problem.policy["metadata"]["name"]}" denied request: {problem.message}'
    return f"policy {problem.text}"
