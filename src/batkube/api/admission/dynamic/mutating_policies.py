"""MutatingAdmissionPolicies: expressions that change what is written, where a binding says that they do.

Kubernetes: apiserver/pkg/admission/plugin/policy/mutating/dispatcher.go. They act before the webhooks that change
objects, and in the order of their names, which the real server leaves to chance. Deletions have nothing to change.
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

    def __init__(self, store: Store, expressions: ExpressionCache, versions: VersionConverter) -> None:
        self._bound_policies = BoundPolicies(store, versions, POLICY, BINDING)
        self._expressions = expressions
        self._version_converter = versions

    @property
    def any_bound(self) -> bool:
        """Whether any policy is bound."""
        return self._bound_policies.any_bound

    def mutate(self, attempt: AdmissionRequest, turns: ReinvocationContext) -> None:
        """Let policies change an object, those whose turn it is; refuse it if one of them cannot."""
        if not self.any_bound:
            return
        # All are chosen before any acts, by the object as it is at the beginning of the round.
        chosen = list(self._bound_policies.invocations_for(attempt))
        problems = [one for one in chosen if isinstance(one, PolicyProblem)]
        turns.begin_round(attempt.value)
        has_acted = False
        for one in chosen:
            if isinstance(one, PolicyProblem) or not self._conditions_hold(one, attempt, problems):
                continue
            if not turns.should_run(one.identity):
                continue
            before = dict(attempt.value)
            has_acted |= self._apply_mutations(one, attempt, problems)
            again = one.policy["spec"].get("reinvocationPolicy") == "IfNeeded"
            turns.record_run(one.identity, changed=attempt.value != before, again=again)
        if has_acted:
            # The real server takes an object for changed that a mutation was made on, whatever came of it.
            turns.record_change()
        turns.end_round(attempt.value)
        refused = [one for one in problems if one.policy["spec"].get("failurePolicy") != "Ignore"]
        if refused:
            raise _denial(refused, attempt)

    def _expression_inputs(self, one: PolicyInvocation, attempt: AdmissionRequest) -> dict[str, Any]:
        value, old = versioned_objects(attempt, one.target, self._version_converter)
        return expression_inputs(attempt, one.target, value, old, one.params)

    def _conditions_hold(self, one: PolicyInvocation, attempt: AdmissionRequest, problems: list[PolicyProblem]) -> bool:
        """Return whether the conditions of a policy hold; what keeps them from being evaluated is a problem."""
        try:
            return match_conditions_hold(one.policy["spec"], self._expressions, self._expression_inputs(one, attempt))
        except EvaluationFailed as problem:
            problems.append(PolicyProblem(one.policy, one.binding, str(problem), "Invalid"))
            return False

    def _apply_mutations(self, one: PolicyInvocation, attempt: AdmissionRequest, problems: list[PolicyProblem]) -> bool:
        """Make the mutations of a policy, one after the other; return whether any was made."""
        has_acted = False
        for mutation in one.policy["spec"].get("mutations") or ():
            try:
                has_acted |= self._apply_mutation(one, mutation, attempt)
            except (EvaluationFailed, MutationFailed) as problem:
                problems.append(PolicyProblem(one.policy, one.binding, str(problem), "Invalid"))
        return has_acted

    def _apply_mutation(self, one: PolicyInvocation, mutation: KubeObject, attempt: AdmissionRequest) -> bool:
        # Each mutation has its own budget, and sees variables of the object as it is by then.
        evaluation = Evaluation(
            self._expressions, self._expression_inputs(one, attempt), one.policy["spec"].get("variables") or ()
        )
        is_patch = mutation["patchType"] == "JSONPatch"
        try:
            made = evaluation.value(mutation["jsonPatch" if is_patch else "applyConfiguration"]["expression"])
        except UnsupportedExpression:
            return False
        before = self._version_converter.to_version(attempt.value, attempt.resource, one.target)
        value = apply_json_patch(made, before) if is_patch else apply_configuration(made, before, one.target)
        if one.target is not attempt.resource and not one.target.custom:
            # The real server does not find the way back from the version that the policy wants (dispatchOne).
            kinds = f"({one.target.schema.go}) to ({attempt.resource.schema.go})"
            raise MutationFailed(f"converting {kinds}: unknown conversion")
        value = self._version_converter.decode_and_default(one.target, value, strict=is_patch)
        value = self._version_converter.to_version(value, one.target, attempt.resource)
        attempt.value.clear()
        attempt.value.update(value)
        return True


def _denial(problems: list[PolicyProblem], attempt: AdmissionRequest) -> Failure:
    """Return the refusal of an attempt: the first problem is the message, and all of them are causes."""
    refusal = attempt.forbidden("")
    texts = [_denial_text(one) for one in problems]
    details = {**(refusal.details or {}), "causes": [{"message": text} for text in texts]}
    return Failure(refusal.code, problems[0].reason or refusal.reason, texts[0], details)


def _denial_text(problem: PolicyProblem) -> str:
    if problem.binding is None:
        return f'policy "{problem.policy["metadata"]["name"]}" denied request: {problem.message}'
    return f"policy {problem.text}"
