"""Evaluate the CEL expressions of policies and match conditions, with their inputs and cost budgets.

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

#: The cost budget of all match conditions of a webhook or policy (Kubernetes: apiserver/pkg/apis/cel/config.go,
#: RuntimeCELCostBudgetMatchConditions).
_CONDITIONS_BUDGET = OBJECT_BUDGET // 4
#: How many compiled expressions are cached, and up to which length.
_CACHE_SIZE, _MAX_CACHED_LENGTH = 512, 16_384
_INPUT_NAMES = ("object", "oldObject", "request", "params", "namespaceObject", "variables")
_UNSUPPORTED_NOTE = FidelityNote("api", "an expression of an admission policy is not supported and was skipped")


class EvaluationFailed(Exception):
    """An expression failed or exceeded its budget; the message is kube-apiserver's."""


class BudgetExceeded(EvaluationFailed):
    """The cost budget of a policy is used up."""

    def __init__(self) -> None:
        super().__init__("validation failed due to running out of cost budget, no further validation rules will be run")


class UnsupportedExpression(Exception):
    """An expression uses a feature that we do not support; a fidelity note has been added."""


class ExpressionCache:
    """Caches the compiled expressions of policies and webhooks."""

    def __init__(self, notes: FidelityNotes) -> None:
        self._notes = notes
        self._compile = memoized(_CACHE_SIZE, longest=_MAX_CACHED_LENGTH)(_compile)

    def program(self, text: str) -> CelProgram:
        """Return the compiled expression; raises UnsupportedExpression."""
        program = self._compile(text)
        if program is None:
            self._notes.add(_UNSUPPORTED_NOTE, example=text)
            raise UnsupportedExpression
        return program


def _compile(text: str) -> CelProgram | None:
    """Return the compiled expression; None if it is not supported."""
    try:
        return CelProgram(text, {**dict.fromkeys(_INPUT_NAMES, DYN), **PATCH_MESSAGE_TYPES})
    except (SourceError, Unsupported):
        return None


class _Budget:
    """The cost that the expressions of a policy may still have."""

    def __init__(self, remaining: int) -> None:
        self._remaining = remaining

    def spend(self, cost: int) -> None:
        """Subtract a cost; raises BudgetExceeded."""
        self._remaining -= cost
        if self._remaining < 0:
            raise BudgetExceeded


class Evaluation:
    """Evaluates expressions that share variables and a cost budget."""

    def __init__(
        self,
        expressions: ExpressionCache,
        inputs: dict[str, Any],
        variables: Sequence[KubeObject] = (),
        budget: int = OBJECT_BUDGET,
    ) -> None:
        self._expressions = expressions
        self._budget = _Budget(budget)
        self._inputs = {**inputs, "variables": _Variables(variables, inputs, expressions, self._budget)}

    def value(self, text: str) -> Any:  # noqa: ANN401 - any value of CEL
        """Return the value of an expression; raises EvaluationFailed or UnsupportedExpression.

        Once the budget is exceeded, nothing is evaluated any more.
        """
        self._budget.spend(0)
        program = self._expressions.program(text)
        try:
            return program(self._inputs)
        except (CelError, CostExceeded) as problem:
            raise EvaluationFailed(f"expression '{text}' resulted in error: {problem}") from problem
        finally:
            self._budget.spend(program.last_cost)


class _Variables(dict[str, Any]):
    """The variables of a policy, evaluated lazily; a variable may use earlier ones."""

    def __init__(
        self, variables: Sequence[KubeObject], inputs: dict[str, Any], expressions: ExpressionCache, budget: _Budget
    ) -> None:
        super().__init__({each["name"]: None for each in variables})
        self._unevaluated: dict[str, str] = {each["name"]: each["expression"] for each in variables}
        self._inputs = inputs
        self._expressions = expressions
        self._budget = budget

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - any value of CEL
        """Return the value of a variable, evaluating it on first use."""
        text = self._unevaluated.get(name)
        if text is not None:
            self[name] = self._evaluate(name, text)
            del self._unevaluated[name]
        value = super().__getitem__(name)
        if isinstance(value, CelError):
            raise CelError(str(value))
        return value

    def _evaluate(self, name: str, text: str) -> Any:  # noqa: ANN401 - any value of CEL, or the error
        program = self._expressions.program(text)
        try:
            return program({**self._inputs, "variables": self})
        except (CelError, CostExceeded) as problem:
            return CelError(f'composited variable "{name}" fails to evaluate: {problem}')
        finally:
            self._budget.spend(program.last_cost)


def match_conditions_hold(spec: KubeObject, expressions: ExpressionCache, inputs: dict[str, Any]) -> bool:
    """Return whether all match conditions of a webhook or policy hold.

    If a condition fails to evaluate, the failure policy decides: `Ignore` returns False, `Fail` raises
    EvaluationFailed. Conditions do not see `namespaceObject` (Kubernetes:
    apiserver/pkg/admission/plugin/webhook/matchconditions/matcher.go, Match).
    """
    conditions = spec.get("matchConditions") or ()
    if not conditions:
        return True
    evaluation = Evaluation(
        expressions, {**inputs, "namespaceObject": None}, spec.get("variables") or (), _CONDITIONS_BUDGET
    )
    problems: dict[str, None] = {}
    for condition in conditions:
        try:
            if evaluation.value(condition["expression"]) is False:
                return False
        except UnsupportedExpression:
            continue
        except BudgetExceeded:
            if spec.get("failurePolicy") == "Ignore":
                return False
            raise
        except EvaluationFailed as problem:
            problems[str(problem)] = None
    if problems and spec.get("failurePolicy") != "Ignore":
        raise EvaluationFailed(", ".join(problems) if len(problems) == 1 else f"[{', '.join(problems)}]")
    return not problems


def expression_inputs(
    request: AdmissionRequest,
    target: Resource,
    value: KubeObject | None,
    old: KubeObject | None,
    params: KubeObject | None,
) -> dict[str, Any]:
    """Return the inputs of expressions, with the objects in the version of `target`."""
    namespace = "" if request.resource.storage == "namespaces" else request.namespace
    name = request.name or ((value or {}).get("metadata") or {}).get("name", "")
    user = request.user
    fields = {
        "kind": group_version_kind(target),
        "resource": group_version_resource(target),
        "requestKind": group_version_kind(request.resource),
        "requestResource": group_version_resource(request.resource),
        **({"subResource": request.subresource} if request.subresource else {}),
        **({"requestSubResource": request.subresource} if request.subresource else {}),
        **({"name": name} if name else {}),
        **({"namespace": request.namespace} if request.namespace else {}),
        "operation": request.operation,
        "dryRun": request.dry_run,
        "userInfo": {} if user is None else user_info(user),
        **({"options": request.options} if request.options else {}),
    }
    return {
        "object": value,
        "oldObject": old,
        "request": fields,
        "params": params,
        "namespaceObject": request.store.get("namespaces", Key(namespace)) if namespace else None,
    }
