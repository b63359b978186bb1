"""ValidatingAdmissionPolicies: expressions that judge what is written, where a binding says that they do.

Kubernetes: apiserver/pkg/admission/plugin/policy/validating (validator.go, dispatcher.go) and policy/matching.
Expressions see plain objects, without the types of their kinds. Policies judge creations, updates and deletions;
connections (exec and the like) are refused anyway. Audit annotations are evaluated by nobody: there is no audit log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from batkube.api.admission.attempts import Attempt
from batkube.api.admission.conditions import Expressions, seen_by_expressions
from batkube.api.admission.policy_matching import matches
from batkube.api.cel.costs import CostExceeded
from batkube.api.cel.values import CelError
from batkube.api.requests.statuses import Failure
from batkube.cluster.kinds import Resource
from batkube.cluster.selectors import selector_of
from batkube.cluster.store import Key, KubeObject, Store

POLICY = "validatingadmissionpolicies.admissionregistration.k8s.io"
BINDING = "validatingadmissionpolicybindings.admissionregistration.k8s.io"
_GROUP = "admissionregistration.k8s.io"
_CODES = {"Unauthorized": 401, "Forbidden": 403, "Invalid": 422, "RequestEntityTooLarge": 413}

ResourceOfKind = Callable[[str, str, str], Resource | None]
"""Finds a kind by group, version and name."""


class Verdict(NamedTuple):
    """What an expression that did not hold says: a message, and the reason for the client."""

    message: str
    reason: str


class Policies:
    """The admission policies of one server."""

    def __init__(self, store: Store, kind_of: ResourceOfKind, expressions: Expressions) -> None:
        self._store = store
        self._kind_of = kind_of
        self._expressions = expressions

    @property
    def are_there(self) -> bool:
        """Whether any policy is bound."""
        return bool(self._store.entries(BINDING))

    def judge(self, attempt: Attempt) -> None:
        """Refuse or warn of what a bound policy has objections to."""
        bindings = self._store.entries(BINDING)
        if not bindings or attempt.resource.group == _GROUP:
            return
        for binding, _ in list(bindings.values()):
            policy = self._store.get(POLICY, Key(binding["spec"]["policyName"]))
            if policy is not None and self._applies(policy, binding, attempt):
                for params in self._parameters(policy, binding, attempt):
                    self._judge_by(policy, binding, params, attempt)

    def _applies(self, policy: KubeObject, binding: KubeObject, attempt: Attempt) -> bool:
        scope = binding["spec"].get("matchResources")
        return matches(policy["spec"].get("matchConstraints") or {}, attempt) and (
            scope is None or matches(scope, attempt)
        )

    # Parameters

    def _parameters(self, policy: KubeObject, binding: KubeObject, attempt: Attempt) -> list[KubeObject | None]:
        """Return the objects that a policy is evaluated with, one after the other; None for none."""
        kind, reference = policy["spec"].get("paramKind"), binding["spec"].get("paramRef")
        if kind is None or reference is None:
            return [None]
        group, _, version = kind["apiVersion"].rpartition("/")
        resource = self._kind_of(group, version, kind["kind"])
        objects = [] if resource is None else list(self._referred(resource, reference, attempt))
        if objects or reference.get("parameterNotFoundAction") == "Allow":
            return [*objects]
        problem = "no params found for policy binding with `Deny` parameterNotFoundAction"
        self._fail(policy, binding, f"failed to configure binding: {problem}", attempt)
        return []

    def _referred(self, resource: Resource, reference: KubeObject, attempt: Attempt) -> Iterator[KubeObject]:
        prefix = f"{reference.get('namespace') or attempt.namespace}/" if resource.namespaced else ""
        if reference.get("name"):
            found = self._store.get(resource.storage, Key(f"{prefix}{reference['name']}"))
            if found is not None:
                yield found
            return
        selector = selector_of(reference.get("selector"))
        for key, (one, _) in self._store.entries(resource.storage).items():
            if key.startswith(prefix) and selector.matches(one["metadata"].get("labels")):
                yield one

    # Expressions

    def _judge_by(self, policy: KubeObject, binding: KubeObject, params: KubeObject | None, attempt: Attempt) -> None:
        spec = policy["spec"]
        seen = seen_by_expressions(attempt, params)
        seen["variables"] = _Variables(spec.get("variables") or (), seen, self._expressions.value)
        try:
            conditions = [self._expressions.value(one["expression"], seen) for one in spec.get("matchConditions") or ()]
            if any(value is False for value in conditions):
                return
            verdicts = [self._verdict(one, seen) for one in spec.get("validations") or ()]
        except (CelError, CostExceeded) as problem:
            self._fail(policy, binding, str(problem), attempt)
            return
        for verdict in verdicts:
            if verdict is not None:
                self._act(policy, binding, verdict, attempt)

    def _verdict(self, validation: KubeObject, seen: dict[str, Any]) -> Verdict | None:
        """Return what a validation that does not hold says, or None."""
        if self._expressions.value(validation["expression"], seen) is True:
            return None
        message = validation.get("message") or f"failed expression: {validation['expression'].strip()}"
        if validation.get("messageExpression"):
            try:
                told = self._expressions.value(validation["messageExpression"], seen)
            except (CelError, CostExceeded):
                told = None
            # What is no text, empty or of several lines is not used (validator.go).
            if isinstance(told, str) and told.strip() and "\n" not in told:
                message = told.strip()
        return Verdict(message, validation.get("reason") or "Invalid")

    # What follows

    def _fail(self, policy: KubeObject, binding: KubeObject, problem: str, attempt: Attempt) -> None:
        """Refuse what could not be judged, unless the policy lets that pass."""
        if policy["spec"].get("failurePolicy", "Fail") == "Fail":
            self._act(policy, binding, Verdict(problem, "Invalid"), attempt)

    def _act(self, policy: KubeObject, binding: KubeObject, verdict: Verdict, attempt: Attempt) -> None:
        names = f"ValidatingAdmissionPolicy '{policy['metadata']['name']}'"
        bound = f"with binding '{binding['metadata']['name']}'"
        actions = binding["spec"].get("validationActions") or ()
        if "Warn" in actions:
            attempt.warnings.append(f"Validation failed for {names} {bound}: {verdict.message}")
        if "Deny" in actions:
            message = f"{names} {bound} denied request: {verdict.message}"
            refusal = attempt.refused(message)
            details = {**(refusal.details or {}), "causes": [{"message": message}]}
            raise Failure(_CODES.get(verdict.reason, 422), verdict.reason, refusal.message, details)


class _Variables(dict[str, Any]):
    """The variables of a policy, each evaluated when it is first asked for; they may use those before them."""

    def __init__(
        self,
        variables: Sequence[KubeObject],
        seen: dict[str, Any],
        value: Callable[[str, dict[str, Any]], Any],
    ) -> None:
        super().__init__({one["name"]: None for one in variables})
        self._expressions: dict[str, str] = {one["name"]: one["expression"] for one in variables}
        self._seen = seen
        self._value = value

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - any value of CEL
        """Return a variable's value."""
        expression = self._expressions.get(name)
        if expression is not None:
            self[name] = self._value(expression, {**self._seen, "variables": self})
            del self._expressions[name]
        return super().__getitem__(name)
