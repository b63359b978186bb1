"""Validation of ValidatingAdmissionPolicies and bindings (Kubernetes: pkg/apis/admissionregistration/validation)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from batkube.api.cel.checker import Scope
from batkube.api.cel.types import DYN, CelType
from batkube.api.groups.admissionregistration.scope import scope_with_parameters, scope_with_variables
from batkube.api.groups.admissionregistration.validation import (
    FAILURE_POLICIES,
    MATCH_POLICIES,
    check_match_conditions,
    check_rule,
)
from batkube.api.groups.kind_model.cel_expressions import check_expression
from batkube.api.validation.metadata import check_conditions, check_metadata, check_selector
from batkube.api.validation.names import (
    byte_length,
    dns_1035_label,
    dns_subdomain,
    path_segment,
    qualified_name,
    subdomain_name,
)
from batkube.api.validation.problems import Problems, mark_repeats
from batkube.api.validation.rules import Object, ValidationRules

_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_ACTIONS = ("Audit", "Deny", "Warn")
_RESERVED = frozenset(
    [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
_is_identifier = re.compile("[_a-zA-Z][_a-zA-Z0-9]*").fullmatch
_NO_VALIDATIONS = "validations or auditAnnotations must contain at least one item"


def check_required_choice(value: str | None, allowed: Sequence[str], path: str, problems: Problems) -> None:
    """Report a value that is not set or not supported."""
    if value is None:
        problems.required(path)
    elif value not in allowed:
        problems.not_supported(path, value, allowed)


def check_param_kind(kind: Mapping[str, Any], path: str, problems: Problems) -> None:
    """Check the kind of a policy's parameters."""
    version = kind.get("apiVersion", "")
    group, _, number = version.rpartition("/")
    if not version:
        problems.required(f"{path}.apiVersion")
    elif version.count("/") > 1:
        problems.invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}")
    else:
        if group and (wrong := dns_subdomain(group)):
            problems.invalid(f"{path}.apiVersion", group, ",".join(wrong))
        if not number:
            problems.invalid(f"{path}.apiVersion", version, "version must be specified")
        elif wrong := dns_1035_label(number):
            problems.invalid(f"{path}.apiVersion", number, ",".join(wrong))
    if not (name := kind.get("kind", "")):
        problems.required(f"{path}.kind")
    elif wrong := dns_1035_label(name.lower()):
        detail = f"may have mixed case, but should otherwise match: {','.join(wrong)}"
        problems.invalid(f"{path}.kind", name, detail)


def check_match_resources(
    match: Mapping[str, Any], path: str, problems: Problems, operations: Sequence[str] = ()
) -> None:
    """Check the match constraints of a policy or binding; `operations` are those allowed, if not all."""
    check_required_choice(match.get("matchPolicy"), MATCH_POLICIES, f"{path}.matchPolicy", problems)
    for field in ("namespaceSelector", "objectSelector"):
        if match.get(field) is None:
            problems.required(f"{path}.{field}")
        else:
            check_selector(match[field], f"{path}.{field}", problems)
    for field in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(match.get(field) or ()):
            at, names = f"{path}.{field}[{index}]", rule.get("resourceNames") or []
            for number, (name, is_repeated) in enumerate(zip(names, mark_repeats(names), strict=True)):
                problems.all_invalid(f"{at}.resourceNames[{number}]", name, path_segment(name, False))
                if is_repeated:
                    problems.duplicate(f"{at}.resourceNames[{number}]", name)
            check_rule(rule, at, problems)
    for rule in (match.get("resourceRules") or ()) if operations else ():
        for operation in rule.get("operations") or ():
            if operation not in operations:
                problems.not_supported(f"{path}.resourceRules.operations", operation, operations)


def check_policy(new: Object, old: Object | None, problems: Problems, operations: Sequence[str] = ()) -> Scope:
    """Check the fields that all policies have, up to the variables; return the scope of later expressions.

    Match conditions that an update does not change are not checked again: they were valid when they were stored.
    """
    check_metadata(new["metadata"], subdomain_name, False, problems)
    spec, before = new.get("spec", {}), None if old is None else old.get("spec", {})
    check_required_choice(spec.get("failurePolicy"), FAILURE_POLICIES, "spec.failurePolicy", problems)
    scope = scope_with_parameters(spec.get("paramKind") is not None)
    if (kind := spec.get("paramKind")) is not None:
        check_param_kind(kind, "spec.paramKind", problems)
    if (match := spec.get("matchConstraints")) is None:
        problems.required("spec.matchConstraints")
    else:
        check_match_resources(match, "spec.matchConstraints", problems, operations)
        if not match.get("resourceRules"):
            problems.required("spec.matchConstraints.resourceRules")
    if before is None or any(spec.get(field) != before.get(field) for field in ("paramKind", "matchConditions")):
        check_match_conditions(spec.get("matchConditions") or (), scope, "spec.matchConditions", problems)
    return _check_variables(spec, scope, problems)


def _validate_policy(new: Object, problems: Problems, old: Object | None = None) -> None:
    policy_scope, spec = check_policy(new, old, problems), new.get("spec", {})
    checks, notes = spec.get("validations") or (), spec.get("auditAnnotations") or []
    if not checks and not notes:
        problems.required("spec.validations", _NO_VALIDATIONS)
        problems.required("spec.auditAnnotations", _NO_VALIDATIONS)
    for index, check in enumerate(checks):
        _check_validation(check, policy_scope, f"spec.validations[{index}]", problems)
    _check_audit_annotations(notes, new["metadata"].get("name", ""), policy_scope, problems)


def _check_variables(spec: Mapping[str, Any], scope: Scope, problems: Problems) -> Scope:
    """Check the variables of a policy, each of which may use earlier ones; return the scope with all of them."""
    types: dict[str, CelType] = {}
    for index, variable in enumerate(spec.get("variables") or ()):
        kind = _check_variable(variable, scope_with_variables(scope, dict(types)), f"spec.variables[{index}]", problems)
        types[variable.get("name", "")] = kind
    return scope_with_variables(scope, types)


def _check_variable(variable: Mapping[str, Any], scope: Scope, path: str, problems: Problems) -> CelType:
    name, text = variable.get("name", ""), variable.get("expression", "")
    if not name.strip():
        problems.required(f"{path}.name", "name is not specified")
    elif not _is_identifier(name) or name in _RESERVED:
        problems.invalid(f"{path}.name", name, "must be a valid CEL identifier")
    if not text.strip():
        problems.required(f"{path}.expression", "expression is not specified")
        return DYN
    return check_expression(text, scope, f"{path}.expression", problems)


def _check_validation(check: Mapping[str, Any], scope: Scope, path: str, problems: Problems) -> None:
    text, words, message = (check.get(field, "") for field in ("expression", "messageExpression", "message"))
    if not text.strip():
        problems.required(f"{path}.expression", "expression is not specified")
    else:
        check_expression(text, scope, f"{path}.expression", problems, "bool")
    if words and not words.strip():
        problems.invalid(f"{path}.messageExpression", words, "must be non-empty if specified")
    elif words:
        check_expression(words, scope, f"{path}.messageExpression", problems, "string")
    if message and not message.strip():
        problems.invalid(f"{path}.message", message, "must be non-empty if specified")
    elif "\n" in message.strip() or "\r" in message.strip():
        problems.invalid(f"{path}.message", message, "must not contain line breaks")
    if (reason := check.get("reason")) is not None and reason not in _REASONS:
        problems.not_supported(f"{path}.reason", reason, _REASONS)


def _check_audit_annotations(
    annotations: Sequence[Mapping[str, Any]], policy: str, scope: Scope, problems: Problems
) -> None:
    if len(annotations) > 20:
        problems.invalid("spec.auditAnnotations", list(annotations), "must not have more than 20 auditAnnotations")
    seen: set[str] = set()
    for index, note in enumerate(annotations):
        path, key, text = f"spec.auditAnnotations[{index}]", note.get("key", ""), note.get("valueExpression", "")
        if policy:
            problems.all_invalid(f"{path}.key", f"{policy}/{key}", qualified_name(f"{policy}/{key}"))
        else:
            problems.invalid(f"{path}.key", key, "requires metadata.name be non-empty")
        if not text.strip():
            problems.required(f"{path}.valueExpression", "valueExpression is not specified")
        elif byte_length(text.strip()) > 5 * 1024:
            problems.required(f"{path}.valueExpression", "must not exceed 5120 bytes in length")
        else:
            check_expression(text.strip(), scope, f"{path}.valueExpression", problems, "string", "null_type")
        if key in seen:
            problems.duplicate(f"{path}.key", key)
        seen.add(key)


def _validate_policy_update(new: Object, old: Object, problems: Problems) -> None:
    _validate_policy(new, problems, old)


def _validate_policy_status_update(new: Object, old: Object, problems: Problems) -> None:
    status = new.get("status", {})
    warnings = (status.get("typeChecking") or {}).get("expressionWarnings") or ()
    for index, warning in enumerate(warnings):
        path = f"status.typeChecking.expressionWarnings[{index}]"
        for field in ("warning", "fieldRef"):
            if not warning.get(field, "").strip():
                problems.required(f"{path}.{field}")
    check_conditions(status.get("conditions") or (), "status.conditions", problems)


def check_binding(value: Object, problems: Problems, operations: Sequence[str] = ()) -> None:
    """Check the fields that all bindings have."""
    check_metadata(value["metadata"], subdomain_name, False, problems)
    spec = value.get("spec", {})
    if not (name := spec.get("policyName")):
        problems.required("spec.policyName")
    else:
        problems.all_invalid("spec.policyName", name, subdomain_name(name, False))
    if (reference := spec.get("paramRef")) is not None:
        check_param_reference(reference, "spec.paramRef", problems)
    if (match := spec.get("matchResources")) is not None:
        check_match_resources(match, "spec.matchResources", problems, operations)


def _validate_binding(value: Object, problems: Problems) -> None:
    check_binding(value, problems)
    _check_actions(value.get("spec", {}).get("validationActions") or [], problems)


def check_param_reference(reference: Mapping[str, Any], path: str, problems: Problems) -> None:
    """Check a binding's reference to parameters."""
    name, selector = reference.get("name", ""), reference.get("selector")
    both = "name and selector are mutually exclusive"
    if name:
        problems.all_invalid(f"{path}.name", name, path_segment(name, False))
        if selector is not None:
            problems.forbidden(f"{path}.name", both)
    if selector is not None:
        check_selector(selector, f"{path}.selector", problems)
        if name:
            problems.forbidden(f"{path}.selector", both)
    if not name and selector is None:
        problems.required(path, "one of name or selector must be specified")
    action = reference.get("parameterNotFoundAction") or None
    check_required_choice(action, ("Deny", "Allow"), f"{path}.parameterNotFoundAction", problems)


def _check_actions(actions: list[str], problems: Problems) -> None:
    path = "spec.validationActions"
    for index, (action, is_repeated) in enumerate(zip(actions, mark_repeats(actions), strict=True)):
        if action not in _ACTIONS:
            problems.not_supported(f"{path}[{index}]", action, _ACTIONS)
        if is_repeated:
            problems.duplicate(f"{path}[{index}]", action)
    if "Deny" in actions and "Warn" in actions:
        reason = "repeating the same validation failure information in the API response and headers serves no purpose"
        problems.invalid(path, actions, f"must not contain both Deny and Warn ({reason})")
    if not actions:
        problems.required(path, "at least one validation action is required")


def _validate_binding_update(new: Object, old: Object, problems: Problems) -> None:
    _validate_binding(new, problems)


VALIDATING_ADMISSION_POLICY_RULES = ValidationRules(
    _validate_policy, _validate_policy_update, _validate_policy_status_update
)
VALIDATING_ADMISSION_POLICY_BINDING_RULES = ValidationRules(_validate_binding, _validate_binding_update)
