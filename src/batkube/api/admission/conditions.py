"""Expressions of policies and of webhooks' conditions: what they see, what they may cost, and what comes of them.

Kubernetes: apiserver/pkg/admission/plugin/cel and plugin/webhook/matchconditions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from batkube.api.admission.attempts import Attempt, kind_named, resource_named, user_named
from batkube.api.cel.checking import MESSAGES
from batkube.api.cel.costs import OBJECT_BUDGET, CostExceeded
from batkube.api.cel.programs import CelProgram
from batkube.api.cel.trees import SourceError, Unsupported
from batkube.api.cel.types import DYN
from batkube.api.cel.values import CelError
from batkube.cluster.kinds import Resource
from batkube.cluster.store import Key, KubeObject
from batkube.kernel.fidelity import FidelityNote, FidelityNotes
from batkube.kernel.remembering import remembered

#: What all conditions of one webhook or policy may cost (apis/cel/config.go: RuntimeCELCostBudgetMatchConditions).
_CONDITIONS_BUDGET = OBJECT_BUDGET // 4
#: So many expressions are remembered, unless they are very long: policies come and go.
_REMEMBERED, _LONGEST = 512, 16_384
_SEEN = ("object", "oldObject", "request", "params", "namespaceObject", "variables")
_UNKNOWN = FidelityNote("api", "an expression of an admission policy cannot be evaluated, and is left out")
_OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"


class NoValue(Exception):
    """An expression has none: it failed, or cost too much. The message is that of the real server."""


class Unknown(Exception):
    """An expression is beyond this server, which has been noted."""


class Expressions:
    """The expressions of all policies and webhooks; those in use are read once."""

    def __init__(self, notes: FidelityNotes) -> None:
        self._notes = notes
        self._read = remembered(_REMEMBERED, longest=_LONGEST)(_read)

    def program(self, text: str) -> CelProgram:
        """Return an expression, ready to run. Raises Unknown."""
        program = self._read(text)
        if program is None:
            self._notes.add(_UNKNOWN, example=text)
            raise Unknown
        return program


def _read(text: str) -> CelProgram | None:
    """Return an expression, ready to run; None if it cannot be evaluated."""
    try:
        return CelProgram(text, {**dict.fromkeys(_SEEN, DYN), **MESSAGES})
    except (SourceError, Unsupported):
        return None


class Evaluation:
    """Expressions that are evaluated together: they share variables, and what they may cost."""

    def __init__(
        self,
        expressions: Expressions,
        seen: dict[str, Any],
        variables: Sequence[KubeObject] = (),
        budget: int = OBJECT_BUDGET,
    ) -> None:
        self._expressions = expressions
        self._variables = _Variables(variables, seen, expressions)
        self._seen = {**seen, "variables": self._variables}
        self._left = budget

    def value(self, text: str) -> Any:  # noqa: ANN401 - any value of CEL
        """Return the value of an expression. Raises NoValue, or Unknown."""
        program = self._expressions.program(text)
        failure: Exception | None = None
        value = None
        try:
            value = program(self._seen)
        except (CelError, CostExceeded) as problem:
            failure = problem
        self._left -= program.cost + self._variables.spent()
        if self._left < 0:
            raise NoValue(_OUT_OF_BUDGET)
        if failure is not None:
            raise NoValue(f"expression '{text}' resulted in error: {failure}") from failure
        return value


class _Variables(dict[str, Any]):
    """The variables of a policy, each evaluated when it is first asked for; they may use those before them."""

    def __init__(self, variables: Sequence[KubeObject], seen: dict[str, Any], expressions: Expressions) -> None:
        super().__init__({one["name"]: None for one in variables})
        self._texts: dict[str, str] = {one["name"]: one["expression"] for one in variables}
        self._seen = seen
        self._expressions = expressions
        self._spent = 0

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - any value of CEL
        """Return a variable's value."""
        text = self._texts.get(name)
        if text is not None:
            program = self._expressions.program(text)
            try:
                self[name] = program({**self._seen, "variables": self})
            except (CelError, CostExceeded) as problem:
                raise CelError(f'composited variable "{name}" fails to evaluate: {problem}') from problem
            finally:
                self._spent += program.cost
            del self._texts[name]
        return super().__getitem__(name)

    def spent(self) -> int:
        """Return what variables have cost since this was last asked."""
        spent, self._spent = self._spent, 0
        return spent


def conditions_hold(spec: KubeObject, expressions: Expressions, seen: dict[str, Any]) -> bool:
    """Return whether all conditions of a webhook or policy hold: one that fails does not, where failures are ignored.

    Raises NoValue where they are not. Conditions see no namespace (matchconditions/matcher.go hands them none).
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
        except Unknown:
            continue
        except NoValue as problem:
            problems[str(problem)] = None
    if problems and spec.get("failurePolicy") != "Ignore":
        raise NoValue(", ".join(problems) if len(problems) == 1 else f"[{', '.join(problems)}]")
    return not problems


def seen_by_expressions(
    attempt: Attempt, target: Resource, value: KubeObject | None, old: KubeObject | None, params: KubeObject | None
) -> dict[str, Any]:
    """Return what expressions see, with the objects in the version of `target`."""
    is_namespace = attempt.resource.storage == "namespaces"
    place = "" if is_namespace else attempt.namespace
    name = attempt.name or ((value or {}).get("metadata") or {}).get("name", "")
    user = attempt.user
    request = {
        "kind": kind_named(target),
        "resource": resource_named(target),
        "requestKind": kind_named(attempt.resource),
        "requestResource": resource_named(attempt.resource),
        **({"subResource": attempt.subresource} if attempt.subresource else {}),
        **({"requestSubResource": attempt.subresource} if attempt.subresource else {}),
        **({"name": name} if name else {}),
        **({"namespace": attempt.namespace} if attempt.namespace else {}),
        "operation": attempt.operation,
        "dryRun": attempt.dry_run,
        "userInfo": {} if user is None else user_named(user),
        **({"options": attempt.options} if attempt.options else {}),
    }
    return {
        "object": value,
        "oldObject": old,
        "request": request,
        "params": params,
        "namespaceObject": attempt.store.get("namespaces", Key(place)) if place else None,
    }
