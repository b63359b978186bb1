"""Evaluation of a schema's CEL rules (x-kubernetes-validations) on objects.

The runtime cost is counted as in kube-apiserver. If one rule or all rules together exceed their budget, evaluation
stops and the object is rejected.

Kubernetes: apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go.
"""

from __future__ import annotations

import contextlib
from typing import Any, NoReturn

import msgspec

from batkube.api.cel.checker import Scope
from batkube.api.cel.evaluation.costs import OBJECT_BUDGET, CostExceeded
from batkube.api.cel.programs import CelProgram
from batkube.api.cel.syntax.nodes import SourceError, Unsupported
from batkube.api.cel.types import CelType
from batkube.api.cel.values import NO_OVERLOAD, OPTIONAL_NONE, CelError, CelOptional
from batkube.api.custom.instances.ratcheting import NO_OLD_VALUE, is_unchanged, old_item_lookup, old_property
from batkube.api.custom.instances.value_validation import NO_FIELD
from batkube.api.custom.schemas.cel_types import cel_type, cel_value
from batkube.api.custom.schemas.field_paths import BadFieldPath, resolve_field_path
from batkube.api.custom.schemas.structural import Json, Rule, StructuralSchema
from batkube.api.validation import field_errors
from batkube.api.validation.field_errors import FieldError

_MESSAGE_BYTES_MAX = 5 * 1024


class CompiledRule(msgspec.Struct, frozen=True):
    """A compiled rule."""

    rule: Rule
    program: CelProgram
    message: CelProgram | None
    uses_old_self: bool
    #: The path below the value at which a failure is reported.
    field: str


class _RuleTree(msgspec.Struct, frozen=True):
    """The rules of a schema and of the schemas below it, without branches that have no rules."""

    schema: StructuralSchema
    is_resource: bool
    rules: tuple[CompiledRule, ...]
    properties: dict[str, _RuleTree]
    additional: _RuleTree | None
    items: _RuleTree | None


class _ValueInContext(msgspec.Struct, frozen=True):
    """A value to validate, and its old value."""

    value: Any
    #: The old value, UNKNOWN if it cannot be correlated.
    old: Any
    path: str
    #: Whether it is part of a value that has not changed at all.
    within_unchanged: bool


def rule_scope(schema: StructuralSchema, *, is_resource: bool, optional_old: bool) -> Scope | None:
    """Return the variables of a rule with their types; None if expressions cannot access the value."""
    kind = cel_type(schema, is_resource=is_resource)
    if kind is None:
        return None
    return {"self": kind, "oldSelf": CelType("optional_type", (kind,)) if optional_old else kind}


class RuleSet:
    """All rules of a version's schema."""

    def __init__(self, schema: StructuralSchema, *, is_resource: bool = True) -> None:
        #: The unsupported rules, and why; each needs a fidelity note.
        self.unsupported: list[str] = []
        self._rules = self._compile(schema, is_resource=is_resource)
        self.has_rules = self._rules is not None

    def validate(
        self, value: Json, old: Json | None, path: str = "", warnings: list[str] | None = None
    ) -> list[FieldError]:
        """Return the violations of all rules; transition rules (with `oldSelf`) run on updates only.

        Violations in values that the update does not change, and that the old object had too, are added to `warnings`
        instead.
        """
        errors: list[FieldError] = []
        if self._rules is not None:
            target = _ValueInContext(value, NO_OLD_VALUE if old is None else old, path, within_unchanged=False)
            with contextlib.suppress(_BudgetExhausted):
                _RuleEvaluation(errors, [] if warnings is None else warnings).evaluate(self._rules, target)
        return errors

    def _compile(self, schema: StructuralSchema, *, is_resource: bool) -> _RuleTree | None:
        properties = {
            name: compiled
            for name, part in schema.properties.items()
            if (compiled := self._compile(part, is_resource=part.embedded)) is not None
        }
        below = [
            None if part is None else self._compile(part, is_resource=part.embedded)
            for part in (schema.additional, schema.items)
        ]
        rules = tuple(filter(None, (self._compile_rule(rule, schema, is_resource) for rule in schema.rules)))
        if not rules and not properties and not any(below):
            return None
        return _RuleTree(schema, is_resource, rules, properties, *below)

    def _compile_rule(self, rule: Rule, schema: StructuralSchema, is_resource: bool) -> CompiledRule | None:
        scope = rule_scope(schema, is_resource=is_resource, optional_old=rule.optional_old_self is True)
        if scope is None:
            return None
        try:
            program = CelProgram(rule.rule, scope)
            message = CelProgram(rule.message_expression, scope) if rule.message_expression else None
        except (SourceError, Unsupported) as problem:
            self.unsupported.append(f"{rule.rule}: {problem}")
            return None
        return CompiledRule(rule, program, message, "oldSelf" in program.identifiers, _error_field(rule, schema))


def _error_field(rule: Rule, schema: StructuralSchema) -> str:
    try:
        return resolve_field_path(rule.field_path, schema).text if rule.field_path else ""
    except BadFieldPath:
        return ""


class _BudgetExhausted(Exception):
    """The cost budget is used up; evaluation stops."""


class _RuleEvaluation:
    """The evaluation of all rules on one object, within a cost budget."""

    def __init__(self, errors: list[FieldError], warnings: list[str]) -> None:
        self._errors = errors
        self._warnings = warnings
        self._budget = OBJECT_BUDGET

    def evaluate(self, rules: _RuleTree, target: _ValueInContext) -> None:
        """Evaluate the rules of a value and of all values in it."""
        value, old = target.value, target.old
        if value is None:
            return
        if rules.rules:
            self._evaluate_rules(rules, target)
        if not isinstance(value, dict | list):
            return
        held = target.within_unchanged if old is NO_OLD_VALUE else is_unchanged(value, old, rules.schema)
        if isinstance(value, list) and rules.items is not None:
            past = old_item_lookup(old, rules.schema)
            for index, item in enumerate(value):
                self.evaluate(rules.items, _ValueInContext(item, past(item), f"{target.path}[{index}]", held))
        elif isinstance(value, dict):
            for key, item in value.items():
                part = rules.properties.get(key)
                path = f"{target.path}.{key}" if target.path else key
                if part is None:
                    if rules.additional is None or key in rules.schema.properties:
                        continue
                    part, path = rules.additional, f"{target.path}[{key}]"
                self.evaluate(part, _ValueInContext(item, old_property(old, key), path, held))

    def _evaluate_rules(self, rules: _RuleTree, target: _ValueInContext) -> None:
        kind = rules.schema.type
        has_old = target.old is not NO_OLD_VALUE and target.old is not None
        field = target.path or NO_FIELD
        seen = cel_value(target.value, rules.schema, is_resource=rules.is_resource)
        before = cel_value(target.old, rules.schema, is_resource=rules.is_resource) if has_old else None
        for compiled in rules.rules:
            is_optional = compiled.rule.optional_old_self is True
            if compiled.uses_old_self and not has_old and not is_optional:
                continue
            variables = {"self": seen, "oldSelf": before}
            if is_optional:
                variables["oldSelf"] = CelOptional(True, before) if has_old else OPTIONAL_NONE
            error = self._evaluate_rule(compiled, variables, field, kind)
            if error is not None and not compiled.uses_old_self and _is_ratcheted(rules, target):
                self._warnings.append(f"{error.field}: {error.message}")
            elif error is not None:
                self._errors.append(error)

    def _evaluate_rule(
        self, compiled: CompiledRule, variables: dict[str, Any], field: str, kind: str
    ) -> FieldError | None:
        """Return the violation of a rule; an evaluation error is never ratcheted, but reported at once."""
        rule = compiled.rule
        try:
            holds = compiled.program(variables)
        except CostExceeded as problem:
            explanation = "no further validation rules will be run due to call cost exceeds limit for rule"
            self._abort(field, kind, f"'{problem}': {explanation}: {_rule_text(rule)}")
        except CelError as problem:
            self._charge(compiled.program, field, kind)
            if str(problem).startswith(NO_OVERLOAD):
                explanation = "call arguments did not match a supported operator, function or macro signature for rule"
                text = f"'{problem}': {explanation}: {_rule_text(rule)}"
            else:
                text = f"{problem} evaluating rule: {_rule_text(rule)}"
            self._errors.append(field_errors.invalid(field, kind, text))
            return None
        self._charge(compiled.program, field, kind)
        if holds is True:
            return None
        if compiled.field:
            field = compiled.field if field == NO_FIELD else f"{field}.{compiled.field}"
        message = _message(compiled, variables)
        if compiled.message is not None:
            self._charge(compiled.message, field, kind)
        return _field_error(rule.reason, field, kind, message)

    def _charge(self, program: CelProgram, field: str, kind: str) -> None:
        self._budget -= program.last_cost
        if self._budget < 0:
            detail = "validation failed due to running out of cost budget, no further validation rules will be run"
            self._abort(field, kind, detail)

    def _abort(self, field: str, kind: str, problem: str) -> NoReturn:
        self._errors.append(field_errors.invalid(field, kind, problem))
        raise _BudgetExhausted


def _is_ratcheted(rules: _RuleTree, target: _ValueInContext) -> bool:
    """Return whether the value is unchanged and the old one violated the rule too."""
    if target.old is NO_OLD_VALUE:
        return target.within_unchanged
    return is_unchanged(target.value, target.old, rules.schema)


def _message(compiled: CompiledRule, variables: dict[str, Any]) -> str:
    if compiled.message is not None:
        try:
            text = compiled.message(variables)
        except (CelError, CostExceeded):
            text = ""
        text = text.strip() if isinstance(text, str) else ""
        if text and "\n" not in text and len(text.encode()) <= _MESSAGE_BYTES_MAX:
            return text
    return compiled.rule.message.strip() or f"failed rule: {compiled.rule.rule.strip()}"


def _rule_text(rule: Rule) -> str:
    return rule.message.strip() or rule.rule.strip()


def _field_error(reason: str, field: str, kind: str, message: str) -> FieldError:
    if reason == "FieldValueForbidden":
        return field_errors.forbidden(field, message)
    if reason == "FieldValueRequired":
        return field_errors.required(field, message)
    if reason == "FieldValueDuplicate":
        return field_errors.duplicate(field, kind)
    return field_errors.invalid(field, kind, message)
