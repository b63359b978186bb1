"""Whether the expressions of x-kubernetes-validations make sense for their schema.

Kubernetes: apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go and pkg/apiserver/schema/cel/
compilation.go. An expression that is beyond our interpreter passes, and is reported as not modelled when the kind is
served.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from batkube.api.cel.checking import Scope
from batkube.api.cel.extents import Extent
from batkube.api.cel.programs import CelProgram
from batkube.api.cel.trees import SourceError, Unsupported
from batkube.api.custom.extents import extent_of
from batkube.api.custom.go_definitions import quoted_rule
from batkube.api.custom.rule_costs import RuleCosts, multiplied, repeated
from batkube.api.custom.rules import scope_of
from batkube.api.custom.structural import RawSchema, schema_at, structural
from batkube.api.validation.problems import Problems


class _RuleAtPlace(NamedTuple):
    """A rule with what is known of the values it is about."""

    rule: dict[str, Any]
    scope: Scope
    path: str
    uncorrelated: str
    extent: Extent
    cardinality: int | None


def rule_problems(raw: RawSchema, path: str, *, is_unchanged: bool = False) -> Problems:
    """Return what is wrong with the rules of a structural schema; `is_unchanged` if the definition had it before."""
    check = _RuleCheck(is_unchanged=is_unchanged)
    check.visit(raw, path, "", 1, is_resource=True)
    check.costs.check_total(path)
    return check.problems


class _RuleCheck:
    """One check of all rules of a schema."""

    def __init__(self, *, is_unchanged: bool) -> None:
        self.problems = Problems()
        self.costs = RuleCosts(self.problems, is_unchanged=is_unchanged)

    def visit(
        self, raw: RawSchema, path: str, uncorrelated: str, cardinality: int | None, *, is_resource: bool = False
    ) -> None:
        """Check the rules from the inside out.

        `uncorrelated` is the first place above that has no traceable past, `cardinality` how many values of the schema
        one object can have, None if nothing says so.
        """
        additional, items = schema_at(raw, "additionalProperties"), schema_at(raw, "items")
        below = multiplied(cardinality, raw)
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
            schema = structural(raw)
            extent = extent_of(schema, is_resource=is_resource)
            for index, rule in enumerate(rules):
                optional = rule.get("optionalOldSelf") is True
                scope = scope_of(schema, is_resource=is_resource, optional_old=optional)
                if scope is not None and extent is not None:
                    place = f"{path}.x-kubernetes-validations[{index}]"
                    self._check_rule(_RuleAtPlace(rule, scope, place, uncorrelated, extent, cardinality))

    def _check_rule(self, at: _RuleAtPlace) -> None:
        rule, path, problems = at.rule, at.path, self.problems
        program = _checked(rule.get("rule", ""), at.scope, "compilation failed: ", rule, f"{path}.rule", problems)
        if program is None:
            return
        if program.type.name not in ("bool", "dyn"):
            problems.invalid(f"{path}.rule", quoted_rule(rule), "cel expression must evaluate to a bool")
            return
        cost = repeated(program.cost_most(at.extent), at.cardinality, at.extent)
        self.costs.add("rule", cost, f"{path}.rule")
        expression = rule.get("messageExpression")
        if expression:
            place = f"{path}.messageExpression"
            message = _checked(expression, at.scope, "messageExpression compilation failed: ", rule, place, problems)
            if message is not None and message.type.name not in ("string", "dyn"):
                problems.invalid(place, quoted_rule(rule), "messageExpression must evaluate to a string")
            elif message is not None:
                self.costs.add("messageExpression", message.cost_most(at.extent), place)
        if "oldSelf" in program.names:
            if at.uncorrelated:
                problem = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {at.uncorrelated}"
                problems.invalid(f"{path}.rule", rule["rule"], problem)
        elif rule.get("optionalOldSelf") is not None:
            problem = "may not be set if oldSelf is not used in rule"
            problems.invalid(f"{path}.optionalOldSelf", rule["optionalOldSelf"], problem)


def _checked(
    text: str, scope: Scope, failed: str, rule: dict[str, Any], path: str, problems: Problems
) -> CelProgram | None:
    try:
        return CelProgram(text, scope)
    except SourceError as problem:
        problems.invalid(path, quoted_rule(rule), f"{failed}{problem}")
    except Unsupported:
        return None
    return None
