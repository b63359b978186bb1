"""Validation of webhook configurations (Kubernetes: pkg/apis/admissionregistration/validation).

They are validated even if webhooks are not called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from batkube.api.cel.checker import Scope
from batkube.api.groups.admissionregistration.scope import REQUEST_SCOPE
from batkube.api.groups.kind_model.cel_expressions import check_expression
from batkube.api.validation.metadata import check_metadata, check_selector
from batkube.api.validation.names import dns_subdomain, qualified_name, subdomain_name
from batkube.api.validation.problems import Problems
from batkube.api.validation.rules import Object, ValidationRules, no_further_checks
from batkube.api.validation.webhooks import check_review_versions, check_webhook_client

FAILURE_POLICIES = ("Fail", "Ignore")
MATCH_POLICIES = ("Equivalent", "Exact")
REINVOCATION_POLICIES = ("IfNeeded", "Never")
_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES = ("*", "Cluster", "Namespaced")
_REVIEWS = ("v1", "v1beta1")


def check_choice(value: str | None, allowed: Sequence[str], path: str, problems: Problems) -> None:
    """Report a value that is set but not supported."""
    if value is not None and value not in allowed:
        problems.not_supported(path, value, allowed)


def _check_fully_qualified(name: str, path: str, problems: Problems) -> None:
    if not name:
        problems.required(path)
    elif wrong := dns_subdomain(name):
        problems.invalid(path, name, ",".join(wrong))
    elif name.count(".") < 2:
        problems.invalid(path, name, "should be a domain with at least three segments separated by dots")


def check_rule(rule: Mapping[str, Any], path: str, problems: Problems) -> None:
    """Check a rule: operations, groups, versions, resources."""
    operations = rule.get("operations") or []
    if not operations:
        problems.required(f"{path}.operations")
    if len(operations) > 1 and "*" in operations:
        problems.invalid(f"{path}.operations", operations, "if '*' is present, must not specify other operations")
    for index, operation in enumerate(operations):
        check_choice(operation, _OPERATIONS, f"{path}.operations[{index}]", problems)
    for field, noun in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = rule.get(field) or []
        if not values:
            problems.required(f"{path}.{field}")
        if len(values) > 1 and "*" in values:
            problems.invalid(f"{path}.{field}", values, f"if '*' is present, must not specify other {noun}")
    for index, version in enumerate(rule.get("apiVersions") or ()):
        if not version:
            problems.required(f"{path}.apiVersions[{index}]")
    _check_resources(rule.get("resources") or [], f"{path}.resources", problems)
    check_choice(rule.get("scope"), _SCOPES, f"{path}.scope", problems)


def _check_resources(resources: list[str], path: str, problems: Problems) -> None:
    if not resources:
        problems.required(path)
    any_part_of: set[str] = set()
    part_of_any: set[str] = set()
    has_plain = False
    for index, text in enumerate(resources):
        resource, slash, part = text.partition("/")
        if not text:
            problems.required(f"{path}[{index}]")
        elif not slash:
            has_plain = text != "*"
        else:
            if resource in any_part_of:
                detail = f"if '{resource}/*' is present, must not specify {text}"
                problems.invalid(f"{path}[{index}]", text, detail)
            if part in part_of_any:
                problems.invalid(f"{path}[{index}]", text, f"if '*/{part}' is present, must not specify {text}")
            if part == "*":
                any_part_of.add(resource)
            if resource == "*":
                part_of_any.add(part)
    if len(resources) > 1 and "*/*" in resources:
        problems.invalid(path, resources, "if '*/*' is present, must not specify other resources")
    if "*" in resources and has_plain:
        detail = "if '*' is present, must not specify other resources without subresources"
        problems.invalid(path, resources, detail)


def check_match_conditions(
    conditions: Sequence[Mapping[str, Any]], scope: Scope, path: str, problems: Problems
) -> None:
    """Check match conditions: CEL expressions that select requests."""
    if len(conditions) > 64:
        problems.too_many(path, len(conditions), 64)
    names: set[str] = set()
    for index, condition in enumerate(conditions):
        at, name, text = f"{path}[{index}]", condition.get("name", ""), condition.get("expression", "").strip()
        if not text:
            problems.required(f"{at}.expression")
        else:
            check_expression(text, scope, f"{at}.expression", problems, "bool")
        if not name:
            problems.required(f"{at}.name")
            continue
        problems.all_invalid(f"{at}.name", name, qualified_name(name))
        if name in names:
            problems.duplicate(f"{at}.name", name)
        names.add(name)


def _check_hook(hook: Mapping[str, Any], path: str, problems: Problems, *, conditions: bool) -> None:
    _check_fully_qualified(hook.get("name", ""), f"{path}.name", problems)
    for index, rule in enumerate(hook.get("rules") or ()):
        check_rule(rule, f"{path}.rules[{index}]", problems)
    check_choice(hook.get("failurePolicy"), FAILURE_POLICIES, f"{path}.failurePolicy", problems)
    check_choice(hook.get("matchPolicy"), MATCH_POLICIES, f"{path}.matchPolicy", problems)
    if hook.get("sideEffects") is None:
        problems.required(f"{path}.sideEffects", f"must specify one of {', '.join(_SIDE_EFFECTS)}")
    check_choice(hook.get("sideEffects"), _SIDE_EFFECTS, f"{path}.sideEffects", problems)
    seconds = hook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= 30:
        detail = "the timeout value must be between 1 and 30 seconds"
        problems.invalid(f"{path}.timeoutSeconds", seconds, detail)
    for field in ("namespaceSelector", "objectSelector"):
        check_selector(hook.get(field), f"{path}.{field}", problems)
    check_choice(hook.get("reinvocationPolicy"), REINVOCATION_POLICIES, f"{path}.reinvocationPolicy", problems)
    check_webhook_client(hook.get("clientConfig") or {}, f"{path}.clientConfig", problems)
    if conditions:
        check_match_conditions(hook.get("matchConditions") or (), REQUEST_SCOPE, f"{path}.matchConditions", problems)


def _validate_webhooks(value: Object, problems: Problems, *, conditions: bool = True) -> None:
    check_metadata(value["metadata"], subdomain_name, False, problems)
    names: set[str] = set()
    for index, hook in enumerate(value.get("webhooks") or ()):
        path, name = f"webhooks[{index}]", hook.get("name", "")
        _check_hook(hook, path, problems, conditions=conditions)
        reviews, nothing = hook.get("admissionReviewVersions") or [], f"must specify one of {', '.join(_REVIEWS)}"
        check_review_versions(reviews, f"{path}.admissionReviewVersions", problems, _REVIEWS, nothing)
        if name in names:
            problems.duplicate(f"{path}.name", name)
        elif name:
            names.add(name)


def _validate_webhooks_update(new: Object, old: Object, problems: Problems) -> None:
    conditions = [
        [hook.get("matchConditions") for hook in configuration.get("webhooks") or ()] for configuration in (new, old)
    ]
    _validate_webhooks(new, problems, conditions=conditions[0] != conditions[1])


WEBHOOK_RULES = ValidationRules(_validate_webhooks, _validate_webhooks_update, no_further_checks)
