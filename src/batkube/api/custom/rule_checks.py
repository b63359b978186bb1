"""Whether the expressions of x-kubernetes-validations make sense for their schema.

Kubernetes: apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go and pkg/apiserver/schema/cel/
compilation.go. What an expression would cost there is not estimated. An expression that is beyond our interpreter
passes, and is reported as not modelled when the kind is served.
"""

from __future__ import annotations

from typing import Any

from batkube.api.cel.checking import Scope
from batkube.api.cel.programs import CelProgram
from batkube.api.cel.trees import SourceError, Unsupported
from batkube.api.checks.problems import Problems
from batkube.api.custom.go_definitions import quoted_rule
from batkube.api.custom.rules import scope_of
from batkube.api.custom.structural import RawSchema, schema_at, structural


def rule_problems(raw: RawSchema, path: str) -> Problems:
    """Return what is wrong with the rules of a structural schema."""
    problems = Problems()
    _visit(raw, path, "", problems, is_resource=True)
    return problems


def _visit(raw: RawSchema, path: str, uncorrelated: str, problems: Problems, *, is_resource: bool = False) -> None:
    """Check the rules from the inside out; `uncorrelated` is the first place above that has no traceable past."""
    additional, items = schema_at(raw, "additionalProperties"), schema_at(raw, "items")
    if additional is not None:
        _visit(additional, f"{path}.additionalProperties", uncorrelated, problems)
    for name, part in (raw.get("properties") or {}).items():
        _visit(part, f"{path}.properties[{name}]", uncorrelated, problems)
    if items is not None:
        in_list = uncorrelated or ("" if raw.get("x-kubernetes-list-type") == "map" else path)
        _visit(items, f"{path}.items", in_list, problems)
    rules = raw.get("x-kubernetes-validations") or []
    if rules:
        is_resource = is_resource or raw.get("x-kubernetes-embedded-resource") is True
        schema = structural(raw)
        for index, rule in enumerate(rules):
            optional = rule.get("optionalOldSelf") is True
            scope = scope_of(schema, is_resource=is_resource, optional_old=optional)
            if scope is not None:
                place = f"{path}.x-kubernetes-validations[{index}]"
                _check_rule(rule, scope, place, uncorrelated, problems)


def _check_rule(rule: dict[str, Any], scope: Scope, path: str, uncorrelated: str, problems: Problems) -> None:
    program = _checked(rule.get("rule", ""), scope, "compilation failed: ", rule, f"{path}.rule", problems)
    if program is None:
        return
    if program.type.name not in ("bool", "dyn"):
        problems.invalid(f"{path}.rule", quoted_rule(rule), "cel expression must evaluate to a bool")
        return
    expression = rule.get("messageExpression")
    if expression:
        place = f"{path}.messageExpression"
        message = _checked(expression, scope, "messageExpression compilation failed: ", rule, place, problems)
        if message is not None and message.type.name not in ("string", "dyn"):
            problems.invalid(place, quoted_rule(rule), "messageExpression must evaluate to a string")
    if "oldSelf" in program.names:
        if uncorrelated:
            problem = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelated}"
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
