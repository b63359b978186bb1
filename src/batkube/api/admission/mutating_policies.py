"""MutatingAdmissionPolicies: expressions that change what is written, where a binding says that they do.

Kubernetes: apiserver/pkg/admission/plugin/policy/mutating/dispatcher.go. They act before the webhooks that change
objects, and in the order of their names, which the real server leaves to chance. Deletions have nothing to change.
"""

from __future__ import annotations

from typing import Any

from batkube.api.admission.attempts import Attempt
from batkube.api.admission.bound_policies import BoundPolicies, Invocation, PolicyProblem
from batkube.api.admission.conditions import (
    Evaluation,
    Expressions,
    NoValue,
    Unknown,
    conditions_hold,
    seen_by_expressions,
)
from batkube.api.admission.mutations import NotMutated, applied, patched
from batkube.api.admission.policy_matching import KindVersions, shown_objects
from batkube.api.admission.reinvocations import ChangeRounds
from batkube.api.requests.statuses import Failure
from batkube.cluster.store import KubeObject, Store

POLICY = "mutatingadmissionpolicies.admissionregistration.k8s.io"
BINDING = "mutatingadmissionpolicybindings.admissionregistration.k8s.io"


class MutatingPolicies:
    """The mutating policies of one server."""

    def __init__(self, store: Store, expressions: Expressions, versions: KindVersions) -> None:
        self._bound = BoundPolicies(store, versions, POLICY, BINDING)
        self._expressions = expressions
        self._versions = versions

    @property
    def are_there(self) -> bool:
        """Whether any policy is bound."""
        return self._bound.are_there

    def mutate(self, attempt: Attempt, turns: ChangeRounds) -> None:
        """Let policies change an object, those whose turn it is; refuse it if one of them cannot."""
        if not self.are_there:
            return
        # All are chosen before any acts, by the object as it is at the beginning of the round.
        chosen = list(self._bound.about(attempt))
        problems = [one for one in chosen if isinstance(one, PolicyProblem)]
        turns.begin(attempt.value)
        has_acted = False
        for one in chosen:
            if isinstance(one, PolicyProblem) or not self._concerns(one, attempt, problems):
                continue
            if not turns.is_due(one.identity):
                continue
            before = dict(attempt.value)
            has_acted |= self._act(one, attempt, problems)
            again = one.policy["spec"].get("reinvocationPolicy") == "IfNeeded"
            turns.acted(one.identity, changed=attempt.value != before, again=again)
        if has_acted:
            # The real server takes an object for changed that a mutation was made on, whatever came of it.
            turns.changed()
        turns.end(attempt.value)
        refused = [one for one in problems if one.policy["spec"].get("failurePolicy") != "Ignore"]
        if refused:
            raise _refusal(refused, attempt)

    def _seen(self, one: Invocation, attempt: Attempt) -> dict[str, Any]:
        value, old = shown_objects(attempt, one.target, self._versions)
        return seen_by_expressions(attempt, one.target, value, old, one.params)

    def _concerns(self, one: Invocation, attempt: Attempt, problems: list[PolicyProblem]) -> bool:
        """Return whether the conditions of a policy hold; what keeps them from being evaluated is a problem."""
        try:
            return conditions_hold(one.policy["spec"], self._expressions, self._seen(one, attempt))
        except NoValue as problem:
            problems.append(PolicyProblem(one.policy, one.binding, str(problem), "Invalid"))
            return False

    def _act(self, one: Invocation, attempt: Attempt, problems: list[PolicyProblem]) -> bool:
        """Make the mutations of a policy, one after the other; return whether any was made."""
        has_acted = False
        for mutation in one.policy["spec"].get("mutations") or ():
            try:
                has_acted |= self._mutate(one, mutation, attempt)
            except (NoValue, NotMutated) as problem:
                problems.append(PolicyProblem(one.policy, one.binding, str(problem), "Invalid"))
        return has_acted

    def _mutate(self, one: Invocation, mutation: KubeObject, attempt: Attempt) -> bool:
        # Each mutation has its own budget, and sees variables of the object as it is by then.
        evaluation = Evaluation(self._expressions, self._seen(one, attempt), one.policy["spec"].get("variables") or ())
        is_patch = mutation["patchType"] == "JSONPatch"
        try:
            made = evaluation.value(mutation["jsonPatch" if is_patch else "applyConfiguration"]["expression"])
        except Unknown:
            return False
        before = self._versions.shown(attempt.value, attempt.resource, one.target)
        value = patched(made, before) if is_patch else applied(made, before, one.target)
        if one.target is not attempt.resource and not one.target.custom:
            # The real server does not find the way back from the version that the policy wants (dispatchOne).
            kinds = f"({one.target.schema.go}) to ({attempt.resource.schema.go})"
            raise NotMutated(f"converting {kinds}: unknown conversion")
        value = self._versions.completed(one.target, value, strict=is_patch)
        value = self._versions.shown(value, one.target, attempt.resource)
        attempt.value.clear()
        attempt.value.update(value)
        return True


def _refusal(problems: list[PolicyProblem], attempt: Attempt) -> Failure:
    """Return the refusal of an attempt: the first problem is the message, and all of them are causes."""
    refusal = attempt.refused("")
    texts = [_told(one) for one in problems]
    details = {**(refusal.details or {}), "causes": [{"message": text} for text in texts]}
    return Failure(refusal.code, problems[0].reason or refusal.reason, texts[0], details)


def _told(problem: PolicyProblem) -> str:
    if problem.binding is None:
        return f'policy "{problem.policy["metadata"]["name"]}" denied request: {problem.message}'
    return f"policy {problem.text}"
