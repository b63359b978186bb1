"""Validation of the CEL expressions in x-kubernetes-validations against their schema.

An expression that our interpreter does not support passes; a fidelity note reports it when the kind is served.

Kubernetes: apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go and
pkg/apiserver/schema/cel/compilation.go.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from batkube.api.cel.checker import Scope
from batkube.api.cel.estimation.sizes import SizeLimits
from batkube.api.cel.programs import CelProgram
from batkube.api.cel.syntax.nodes import SourceError, Unsupported
from batkube.api.custom.definitions.go_structs import go_rule
from batkube.api.custom.definitions.rule_costs import CostBudget, child_cardinality, total_cost
from batkube.api.custom.instances.cel_rules import rule_scope
from batkube.api.custom.schemas.size_limits import size_limits
from batkube.api.custom.schemas.structural import RawSchema, parse_structural, subschema
from batkube.api.validation.problems import Problems


class _RuleInContext(NamedTuple):
    """A rule, with the type and cardinality of the values that it validates."""

    rule: dict[str, Any]
    scope: Scope
    path: str
    uncorrelated: str
    extent: SizeLimits
    cardinality: int | None


def validate_rules(raw: RawSchema, path: str, *, is_unchanged: bool = False) -> Problems:
    """Validate the rules of a structural schema; `is_unchanged` if the old definition had the same schema."""
    check = _RuleValidator(is_unchanged=is_unchanged)
    check.visit(raw, path, "", 1, is_resource=True)
    check.costs.check_total(path)
    return check.problems


class _RuleValidator:
    """Validation of all rules of one schema."""

    def __init__(self, *, is_unchanged: bool) -> None:
        self.problems = Problems()
        self.costs = CostBudget(self.problems, is_unchanged=is_unchanged)

    def visit(
        self, raw: RawSchema, path: str, uncorrelated: str, cardinality: int | None, *, is_resource: bool = False
    ) -> None:
        """Validate the rules, the innermost first.

        `uncorrelated` is the closest ancestor whose old value cannot be correlated (no `oldSelf`). `cardinality` is the
        maximum number of the schema's values in one object, None if unbounded.
        """
        additional, items = subschema(raw, "additionalProperties"), subschema(raw, "items")
        below = child_cardinality(cardinality, raw)
        if additional is not None:
            self.visit(additional, f"{path}.additionalProperties", uncorrelated, below)
        for name, part in (raw.get("properties") or {}).items():
            self.visit(part, f"{path}.properties[{name}]", uncorrelated, below)
        if items is not None:
            in_list = uncorrelated or ("" if raw.get("x-kubernetes-list-type") == "map" else path)
            self.visit(items, f"{path}.items", in_list, below)
        rules = raw.get("x-kubernetes-validations") or []
        if rules:
            is_resource = is_resource or raw.get("x-kubernetes-embedded-resource") is True
            schema = parse_structural(raw)
            extent = size_limits(schema, is_resource=is_resource)
            for index, rule in enumerate(rules):
                optional = rule.get("optionalOldSelf") is True
                scope = rule_scope(schema, is_resource=is_resource, optional_old=optional)
                if scope is not None and extent is not None:
                    rule_path = f"{path}.x-kubernetes-validations[{index}]"
                    self._check_rule(_RuleInContext(rule, scope, rule_path, uncorrelated, extent, cardinality))

    def _check_rule(self, at: _RuleInContext) -> None:
        rule, path, problems = at.rule, at.path, self.problems
        program = _compile(rule.get("rule", ""), at.scope, "compilation failed: ", rule, f"{path}.rule", problems)
        if program is None:
            return
        if program.type.name not in ("bool", "dyn"):
            problems.invalid(f"{path}.rule", go_rule(rule), "cel expression must evaluate to a bool")
            return
        cost = total_cost(program.cost_max(at.extent), at.cardinality, at.extent)
        self.costs.add_rule("rule", cost, f"{path}.rule")
        expression = rule.get("messageExpression")
        if expression:
            expression_path = f"{path}.messageExpression"
            message = _compile(
                expression, at.scope, "messageExpression compilation failed: ", rule, expression_path, problems
            )
            if message is not None and message.type.name not in ("string", "dyn"):
                problems.invalid(expression_path, go_rule(rule), "messageExpression must evaluate to a string")
            elif message is not None:
                self.costs.add_rule("messageExpression", message.cost_max(at.extent), expression_path)
        if "oldSelf" in program.identifiers:
            if at.uncorrelated:
                problem = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {at.uncorrelated}"
                problems.invalid(f"{path}.rule", rule["rule"], problem)
        elif rule.get("optionalOldSelf") is not None:
            problem = "may not be set if oldSelf is not used in rule"
            problems.invalid(f"{path}.optionalOldSelf", rule["optionalOldSelf"], problem)


def _compile(
    text: str, scope: Scope, failed: str, rule: dict[str, Any], path: str, problems: Problems
) -> CelProgram | None:
    try:
        return CelProgram(text, scope)
    except SourceError as problem:
        problems.invalid(path, go_rule(rule), f"{failed}{problem}")
    except Unsupported:
        return None
    return None
