"""Expressions of policies and of webhooks' conditions: what they see, what they may cost, and what comes of them.

Kubernetes: apiserver/pkg/admission/plugin/cel and plugin/webhook/matchconditions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from batkube.api.admission.request import AdmissionRequest, group_version_kind, group_version_resource, user_info
from batkube.api.cel.checker import PATCH_MESSAGE_TYPES
from batkube.api.cel.evaluation.costs import OBJECT_BUDGET, CostExceeded
from batkube.api.cel.programs import CelProgram
from batkube.api.cel.syntax.nodes import SourceError, Unsupported
from batkube.api.cel.types import DYN
from batkube.api.cel.values import CelError
from batkube.cluster.kinds import Resource
from batkube.cluster.store import Key, KubeObject
from batkube.kernel.fidelity import FidelityNote, FidelityNotes
from batkube.kernel.memo import memoized

#: What all conditions of one webhook or policy may cost (apis/cel/config.go: RuntimeCELCostBudgetMatchConditions).
_CONDITIONS_BUDGET = OBJECT_BUDGET // 4
#: So many expressions are remembered, unless they are very long: policies come and go.
_CACHE_SIZE, _MAX_CACHED_LENGTH = 512, 16_384
_INPUT_NAMES = ("object", "oldObject", "request", "params", "namespaceObject", "variables")
_UNSUPPORTED_NOTE = FidelityNote("api", "an expression of an admission policy cannot be evaluated, and is left out")
_OUT_OF_BUDGET_MESSAGE = "validation failed due to running out of cost budget, no further validation rules will be run"


class EvaluationFailed(Exception):
    """An expression has none: it failed, or cost too much. The message is that of the real server."""


class UnsupportedExpression(Exception):
    """An expression is beyond this server, which has been noted."""


class ExpressionCache:
    """The expressions of all policies and webhooks; those in use are read once."""

    def __init__(self, notes: FidelityNotes) -> None:
        self._notes = notes
        self._compile = memoized(_CACHE_SIZE, longest=_MAX_CACHED_LENGTH)(_compile)

    def program(self, text: str) -> CelProgram:
        """Return an expression, ready to run. Raises Unknown."""
        program = self._compile(text)
        if program is None:
            self._notes.add(_UNSUPPORTED_NOTE, example=text)
            raise UnsupportedExpression
        return program


def _compile(text: str) -> CelProgram | None:
    """Return an expression, ready to run; None if it cannot be evaluated."""
    try:
        return CelProgram(text, {**dict.fromkeys(_INPUT_NAMES, DYN), **PATCH_MESSAGE_TYPES})
    except (SourceError, Unsupported):
        return None


class Evaluation:
    """Expressions that are evaluated together: they share variables, and what they may cost."""

    def __init__(
        self,
        expressions: ExpressionCache,
        seen: dict[str, Any],
        variables: Sequence[KubeObject] = (),
        budget: int = OBJECT_BUDGET,
    ) -> None:
        self._expressions = expressions
        self._variables = _Variables(variables, seen, expressions)
        self._inputs = {**seen, "variables": self._variables}
        self._remaining_budget = budget

    def value(self, text: str) -> Any:  # noqa: ANN401 - any value of CEL
        """Return the value of an expression. Raises EvaluationFailed, or Unknown."""
        program = self._expressions.program(text)
        failure: Exception | None = None
        value = None
        try:
            value = program(self._inputs)
        except (CelError, CostExceeded) as problem:
            failure = problem
        self._remaining_budget -= program.last_cost + self._variables.take_cost()
        if self._remaining_budget < 0:
            raise EvaluationFailed(_OUT_OF_BUDGET_MESSAGE)
        if failure is not None:
            raise EvaluationFailed(f"expression '{text}' resulted in error: {failure}") from failure
        return value


class _Variables(dict[str, Any]):
    """The variables of a policy, each evaluated when it is first asked for; they may use those before them."""

    def __init__(self, variables: Sequence[KubeObject], seen: dict[str, Any], expressions: ExpressionCache) -> None:
        super().__init__({one["name"]: None for one in variables})
        self._unevaluated: dict[str, str] = {one["name"]: one["expression"] for one in variables}
        self._inputs = seen
        self._expressions = expressions
        self._cost = 0

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - any value of CEL
        """Return a variable's value."""
        text = self._unevaluated.get(name)
        if text is not None:
            program = self._expressions.program(text)
            try:
                self[name] = program({**self._inputs, "variables": self})
            except (CelError, CostExceeded) as problem:
                raise CelError(f'composited variable "{name}" fails to evaluate: {problem}') from problem
            finally:
                self._cost += program.last_cost
            del self._unevaluated[name]
        return super().__getitem__(name)

    def take_cost(self) -> int:
        """Return what variables have cost since this was last asked."""
        spent, self._cost = self._cost, 0
        return spent


def match_conditions_hold(spec: KubeObject, expressions: ExpressionCache, seen: dict[str, Any]) -> bool:
    """Return whether all conditions of a webhook or policy hold: one that fails does not, where failures are ignored.

    Raises EvaluationFailed where they are not. Conditions see no namespace (matchconditions/matcher.go hands them
    none).
    """
    conditions = spec.get("matchConditions") or ()
    if not conditions:
        return True
    evaluation = Evaluation(
        expressions, {**seen, "namespaceObject": None}, spec.get("variables") or (), _CONDITIONS_BUDGET
    )
    problems: dict[str, None] = {}
    for condition in conditions:
        try:
            if evaluation.value(condition["expression"]) is False:
                return False
        except UnsupportedExpression:
            continue
        except EvaluationFailed as problem:
            problems[str(problem)] = None
    if problems and spec.get("failurePolicy") != "Ignore":
        raise EvaluationFailed(", ".join(problems) if len(problems) == 1 else f"[{', '.join(problems)}]")
    return not problems


def expression_inputs(
    attempt: AdmissionRequest,
    target: Resource,
    value: KubeObject | None,
    old: KubeObject | None,
    params: KubeObject | None,
) -> dict[str, Any]:
    """Return what expressions see, with the objects in the version of `target`."""
    is_namespace = attempt.resource.storage == "namespaces"
    place = "" if is_namespace else attempt.namespace
    name = attempt.name or ((value or {}).get("metadata") or {}).get("name", "")
    user = attempt.user
    request = {
        "kind": group_version_kind(target),
        "resource": group_version_resource(target),
        "requestKind": group_version_kind(attempt.resource),
        "requestResource": group_version_resource(attempt.resource),
        **({"subResource": attempt.subresource} if attempt.subresource else {}),
        **({"requestSubResource": attempt.subresource} if attempt.subresource else {}),
        **({"name": name} if name else {}),
        **({"namespace": attempt.namespace} if attempt.namespace else {}),
        "operation": attempt.operation,
        "dryRun": attempt.dry_run,
        "userInfo": {} if user is None else user_info(user),
        **({"options": attempt.options} if attempt.options else {}),
    }
    return {
        "object": value,
        "oldObject": old,
        "request": request,
        "params": params,
        "namespaceObject": attempt.store.get("namespaces", Key(place)) if place else None,
    }
